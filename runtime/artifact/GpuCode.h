// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuCode.h - device code of an artifact for CUDA --------------------===//
//
// An artifact of device "cuda" has PTX where others have a shared object: one
// module, text, in Artifact::object. Its program is the list of instructions of
// every artifact, with two differences: a kernel instruction launches the
// GpuKernel of its index, and the only library kind is "matmul" (cuBLASLt);
// attention, sorting and the like are kernels, too.
//
// A kernel takes 64-bit device addresses: that of the MtpGpuRank of the rank
// (runtime/abi/GpuAbi.h), then its buffers in the order of the instruction.
//
// For what the communicators of one device add by themselves, the module has
//
//   mtp_reduce_<sum|max|min>_<dtype>(out, in, count)
//
// (out[i] = out[i] op in[i]; a one-dimensional grid of any size) for every
// reduction and type among the collective sites.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_ARTIFACT_GPUCODE_H
#define MTP_RUNTIME_ARTIFACT_GPUCODE_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mtp {

/// How a kernel is launched.
struct GpuKernel {
  std::string symbol;                    ///< of the entry in the PTX module
  std::array<int64_t, 3> grid{1, 1, 1};  ///< blocks in x, y, z
  std::array<int64_t, 3> block{1, 1, 1}; ///< threads of a block
  int64_t sharedBytes = 0;               ///< dynamic shared memory
};

/// Empty for other devices.
struct GpuCode {
  std::string arch;               ///< least compute capability: "sm_90"
  std::vector<GpuKernel> kernels; ///< as Artifact::kernelNames
};

} // namespace mtp

#endif // MTP_RUNTIME_ARTIFACT_GPUCODE_H
