// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Abi.h - the one interface between compiled code and the runtime ----===//
//
// Plain C. A compiled artifact holds one hermetic shared object with exactly
// one exported symbol, `mtp_kernels`. The runtime calls it once and gets the
// table of kernels. What runs when is not code but data: the program of the
// artifact (runtime/artifact/Artifact.h), a list of kernel launches, library
// calls and collectives that the runtime verifies before it executes it.
//
// The shared object has no undefined symbols: whatever a kernel needs from
// outside (double precision math, exact sine and cosine) it reaches through
// `MtpRank::math`.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_ABI_H
#define MTP_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Raised with every change of a structure below; part of the artifact.
#define MTP_ABI_VERSION 1

/// Scalar functions that kernels don't expand inline. Units: radians.
typedef struct MtpMath {
  double (*exp)(double);
  double (*expm1)(double);
  double (*log)(double);
  double (*log1p)(double);
  double (*sin)(double);
  double (*cos)(double);
  double (*tanh)(double);
  double (*erf)(double);
  double (*pow)(double, double);
  double (*fmod)(double, double);
  float (*expf)(float);
  float (*expm1f)(float);
  float (*logf)(float);
  float (*log1pf)(float);
  float (*sinf)(float);
  float (*cosf)(float);
  float (*tanhf)(float);
  float (*erff)(float);
  float (*powf)(float, float);
  float (*fmodf)(float, float);
} MtpMath;

/// What a kernel sees of the rank that runs it. Constant during a step, except
/// for `*fault`.
typedef struct MtpRank {
  uint64_t abiVersion; ///< MTP_ABI_VERSION
  const MtpMath *math;
  /// Values that differ from rank to rank (offsets of blocks, valid extents,
  /// mesh coordinates), in the order of Artifact::rankValues.
  const int64_t *rankValues;
  int64_t step; ///< optimizer step, from 0
  int64_t seed; ///< user's seed
  void *stream; ///< 0 on CPU
  /// A kernel that meets an index outside of its table stores the 1-based
  /// number of its fault message (Artifact::faults) here (relaxed, any winner).
  int64_t *fault;
} MtpRank;

/// A kernel computes the slice [begin, end) of its outermost parallel
/// iterations. `buffers` are the base addresses of its operands in the order
/// of the launch; results included. Every slice writes disjoint memory, so that
/// slices may run at the same time.
typedef void (*MtpKernel)(const MtpRank *rank, char *const *buffers,
                          int64_t begin, int64_t end);

typedef struct MtpKernelTable {
  uint64_t abiVersion;
  uint64_t count;
  const MtpKernel *kernels;
} MtpKernelTable;

/// The one exported symbol.
typedef const MtpKernelTable *(*MtpKernelsEntry)(void);
#define MTP_KERNELS_SYMBOL "mtp_kernels"

#ifdef __cplusplus
} // extern "C"
#endif

#endif // MTP_ABI_H
