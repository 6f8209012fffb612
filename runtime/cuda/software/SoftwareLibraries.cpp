// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/software/SoftwareLibraries.h"
#include "runtime/cuda/software/Engine.h"

using namespace mtp::cuda;

extern "C" {
#define MTP_DECLARE(member, symbol, parameters) int mtp_##symbol parameters;
MTP_DRIVER_FUNCTIONS(MTP_DECLARE)
MTP_CUBLASLT_FUNCTIONS(MTP_DECLARE)
MTP_NCCL_FUNCTIONS(MTP_DECLARE)
#undef MTP_DECLARE
const char *mtp_cublasLtGetStatusString(int status);
const char *mtp_ncclGetErrorString(int status);
const char *mtp_ncclGetLastError(NcclHandle *comm);
void mtp_touches(const Touched *ranges, size_t count);
const char *mtp_kernelFault();
}

Libraries mtp::software::libraries(int devices, uint64_t memoryBytes) {
  Libraries result;
#define MTP_FILL(member, symbol, parameters)                                   \
  result.driver.member = mtp_##symbol;
  MTP_DRIVER_FUNCTIONS(MTP_FILL)
#undef MTP_FILL
#define MTP_FILL(member, symbol, parameters) result.blas.member = mtp_##symbol;
  MTP_CUBLASLT_FUNCTIONS(MTP_FILL)
#undef MTP_FILL
#define MTP_FILL(member, symbol, parameters) result.nccl.member = mtp_##symbol;
  MTP_NCCL_FUNCTIONS(MTP_FILL)
#undef MTP_FILL
  result.driver.touches = mtp_touches;
  result.driver.kernelFault = mtp_kernelFault;
  result.blas.statusText = mtp_cublasLtGetStatusString;
  result.nccl.errorText = mtp_ncclGetErrorString;
  result.nccl.lastError = mtp_ncclGetLastError;
  result.devices = devices;
  result.nccl.version(&result.ncclVersion);
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  engine.settings.memoryBytes = memoryBytes;
  // Times mean nothing, so there is nothing to choose.
  engine.settings.products = 1;
  return result;
}
