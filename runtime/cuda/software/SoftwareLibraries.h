// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SoftwareLibraries.h - a driver that needs no GPU -------------------===//
//
// What Recorder.h describes, as the tables that the rest of runtime/cuda works
// with. A module is a KernelImage: its kernels run on the CPU when the work of
// a stream comes to them.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_SOFTWARE_SOFTWARELIBRARIES_H
#define MTP_RUNTIME_CUDA_SOFTWARE_SOFTWARELIBRARIES_H

#include "runtime/cuda/Libraries.h"

namespace mtp::software {

/// Driver, cuBLASLt and NCCL of this process, with `devices` devices that have
/// `memoryBytes` each.
cuda::Libraries libraries(int devices, uint64_t memoryBytes);

} // namespace mtp::software

#endif // MTP_RUNTIME_CUDA_SOFTWARE_SOFTWARELIBRARIES_H
