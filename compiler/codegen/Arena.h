// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Arena.h - one allocation for everything between two steps ----------===//
#ifndef MTP_COMPILER_CODEGEN_ARENA_H
#define MTP_COMPILER_CODEGEN_ARENA_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace mtp {

/// Bytes that are needed from step `first` to step `last`, both included.
struct ArenaSpan {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
  int64_t offset = 0; ///< found by planArena, a multiple of 64
};

/// Bytes needed at the step that needs most: no arena is smaller.
int64_t arenaLoad(llvm::ArrayRef<ArenaSpan> spans);

/// Gives each span an offset so that no two that are needed at the same step
/// overlap; returns the bytes of the arena. Larger spans first, each in the
/// smallest gap that holds it; equal ones in the given order.
///
///   step      0 1 2 3        offset
///   a 128 B   x x . .        0
///   b 64 B    . x x .        128
///   c 128 B   . . x x        0        a is gone
///
/// If that needs more than the load, two other orders are tried, those spans
/// first that lie beside most bytes and those that begin first, and each again
/// with the spans in front that ended highest. The least is taken: it is never
/// more than by the first order, and seldom more than the load. To reach the
/// load is not always possible, and to find the least is NP-hard.
int64_t planArena(llvm::MutableArrayRef<ArenaSpan> spans);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_ARENA_H
