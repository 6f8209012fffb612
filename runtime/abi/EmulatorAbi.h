// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- EmulatorAbi.h - a GPU kernel as a function of the host -------------===//
//
// Plain C. An artifact of device "cuda-emulated" is one of device "cuda" whose
// object is not PTX but a shared object of the CPU. Each of its kernels is the
// code of one thread, an MtpKernel that is called so:
//
//   kernel(thread, parameters, 0, 0)
//
// `thread` is an MtpEmulatedThread in place of the MtpRank, `parameters` are
// those of the launch. Whatever a thread can't do by itself (it meets others,
// or memory is to be watched) is a call of one of its functions. The number
// `site` says which operation of the kernel calls.
//
// The last function of the table stores the address of a text, a description of
// the others, at the address parameters[0]. It is JSON:
//
//   {"kernels": [{
//     "symbol": "softmax_3",
//     "parameters": [{"bytes": 64, "written": false, "granule": 4,
//                     "align": 16}, ...],   bytes -1: not known, a number
//     "arrays": [{"begin": 0, "bytes": 64, "granule": 4}, ...],  shared memory
//     "shared": 64,                         bytes of all arrays
//     "sites": [{"kind": "load", "memory": "parameter", "index": 1,
//                "bytes": 4, "mode": "", "where": "..."}, ...]
//   }]}
//
// `granule`: no access of that memory is narrower. `memory` is "parameter",
// "array" or "any" (a pointer that came from memory). `kind` is one of
//
//   load, store, atomic, barrier
//   shuffle    mode xor, up, down, idx
//   vote       mode any, all, uni, ballot
//   mma        mode "<type> <k>": m16n8k<k> of f16, bf16 or tf32, sums in f32
//   ldmatrix   mode "<matrices> <row|col>": col is transposed
//   copy, commit, wait    asynchronous copies to shared memory
//
//===----------------------------------------------------------------------===//
#ifndef MTP_EMULATOR_ABI_H
#define MTP_EMULATOR_ABI_H

#include "runtime/abi/Abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What emulated code sees of its thread.
typedef struct MtpEmulatedThread {
  int64_t thread[3], block[3]; ///< own numbers: x, y, z
  int64_t blockSize[3], gridSize[3];
  char *shared; ///< shared memory of the block
  const MtpMath *math;
  /// Before each access of memory.
  void (*access)(struct MtpEmulatedThread *thread, int64_t site, void *address);
  /// Returns when all threads of the block are there.
  void (*barrier)(struct MtpEmulatedThread *thread, int64_t site);
  /// Returns when all threads of the warp are there; `operands` are what this
  /// thread gives, and what it gets, by kind of the site:
  ///   shuffle: u64 value, i64 offset, i64 width -> u64 value, i64 valid
  ///   vote:    u64 value, i64 mask -> u64 result
  ///   mma:     the registers of A, of B, of C, each a u64 -> four of D
  ///   ldmatrix: u64 address -> a u64 for each matrix
  void (*warp)(struct MtpEmulatedThread *thread, int64_t site, void *operands);
  /// Asynchronous copies of this thread. `operands`, by kind of the site:
  ///   copy:    u64 destination, u64 source, i64 bytes to read (those of the
  ///            site that are left become zero), i64 site of the reading
  ///   commit:  none
  ///   wait:    i64 groups that may still be under way
  void (*async)(struct MtpEmulatedThread *thread, int64_t site, void *operands);
} MtpEmulatedThread;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // MTP_EMULATOR_ABI_H
