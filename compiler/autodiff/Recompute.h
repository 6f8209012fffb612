// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Recompute.h - forward values computed again for the backward -------===//
//
// A differentiated program keeps every forward value that the backward reads,
// until it reads it. Here the forward is cut into segments, only what passes
// from one segment to the next is kept, and what the backward needs of a
// segment is computed again, right before it needs it:
//
//   forward    x0 - segment 1 - x1 - segment 2 - x2 - head - loss
//   backward        g0 - [1 again] - g1 - [2 again] - g2 - head
//
// A boundary is a position where one activation alone is live: the residual
// stream. (An activation depends on an argument and on a parameter; masks and
// position tables don't count, nor does an earlier boundary that stays in use
// for long, such as an encoder's output.) A segment has a product at least. The
// last one, whose backward comes first, is not computed again.
//
// Before that the forward is sorted, the longest way to an op first, so that an
// encoder stands before the decoder.
//
// Only the ops that the backward needs are repeated: the product that ends a
// segment, and the reduction behind it, are not. Random numbers are functions
// of attributes and arguments, so repeated masks are equal.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_AUTODIFF_RECOMPUTE_H
#define MTP_COMPILER_AUTODIFF_RECOMPUTE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mtp::autodiff {

struct RecomputeCounts {
  int segments = 0; ///< with the last one, which is never computed again
  int clones = 0;   ///< ops
};

/// Makes the copy of a forward's op one of the backward.
void markAgain(mlir::Operation *copy);

/// Rewrites a function that `differentiate` has made; one without a backward
/// stays as it is. Of the segments that can be, the first `layers` are computed
/// again, -1 for all: those are the ones whose values are kept for longest.
RecomputeCounts recomputeLayers(mlir::func::FuncOp function,
                                int64_t layers = -1);

} // namespace mtp::autodiff

#endif // MTP_COMPILER_AUTODIFF_RECOMPUTE_H
