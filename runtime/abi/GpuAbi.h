// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuAbi.h - what a kernel on a GPU sees of its rank -----------------===//
//
// Plain C, in device memory. Kernels read it at every launch, so that a step
// that is replayed as a graph sees the values of its own run.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_GPU_ABI_H
#define MTP_GPU_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// All addresses are those of device memory.
typedef struct MtpGpuRank {
  const int64_t *rankValues; ///< as MtpRank::rankValues
  int64_t step;              ///< optimizer step, from 0
  int64_t seed;              ///< user's seed
  int64_t *fault;            ///< as MtpRank::fault
} MtpGpuRank;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // MTP_GPU_ABI_H
