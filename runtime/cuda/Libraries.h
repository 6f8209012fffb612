// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Libraries.h - driver, cuBLASLt and NCCL, loaded when asked for -----===//
//
// Nothing of CUDA is linked: each library is a table of functions that is
// filled when a program of device "cuda" is about to run.
//
// For tests, and for nothing else, MTP_CUDA_RECORDER names a library that
// stands in for all three (runtime/cuda/software): the absolute path of a file.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_LIBRARIES_H
#define MTP_RUNTIME_CUDA_LIBRARIES_H

#include "runtime/cuda/api/CublasLtApi.h"
#include "runtime/cuda/api/DriverApi.h"
#include "runtime/cuda/api/NcclApi.h"
#include "runtime/support/Error.h"

#include <string>
#include <vector>

namespace mtp::cuda {

/// Where to look for each library, first hit wins.
struct LibraryNames {
  std::vector<std::string> driver = {"libcuda.so.1"};
  std::vector<std::string> blas = {"libcublasLt.so.13", "libcublasLt.so.12"};
  std::vector<std::string> nccl = {"libnccl.so.2"};
  std::string prefix; ///< of all functions: what stands in has "mtp_cuInit"
  /// The defaults, or what the environment says. Throws RuntimeError.
  static LibraryNames ofThisProcess();
};

struct Libraries {
  DriverApi driver;
  CublasLtApi blas; ///< null unless it was asked for
  NcclApi nccl;     ///< null unless it was asked for
  int devices = 0;  ///< GPUs that the driver sees, at least 1
  int ncclVersion = 0;
};

/// What a program needs.
struct LibraryNeeds {
  bool blas = true, nccl = true;
};

/// Loads and starts what is needed. Throws RuntimeError of exit code 6 that
/// names the library, the function or the device that is missing. Libraries
/// stay loaded until the process ends.
Libraries loadLibraries(const LibraryNames &names, const LibraryNeeds &needs);

/// Communicators that GPUs have.
inline const std::vector<std::string> kCommunicators = {"nccl", "loopback"};

/// Whether `ranks` ranks that talk by `comm` can run here: the error that
/// loading would give, or exit 2 for a mesh that the devices don't hold. Takes
/// far less than a second.
Error checkMachine(const std::string &comm, int64_t ranks);

/// Throws RuntimeError unless there is a device for each rank: `ranks` for
/// "nccl", one for "loopback".
void checkDevices(const std::string &comm, int64_t ranks, int devices);

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_LIBRARIES_H
