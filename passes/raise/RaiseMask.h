// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RaiseMask.h - masks of attention scores ----------------------------===//
#ifndef MTP_PASSES_RAISE_RAISEMASK_H
#define MTP_PASSES_RAISE_RAISEMASK_H

#include "passes/raise/Match.h"

namespace mtp::raise {

/// A boolean that keeps scores where it is `keeps`, and sets the others to
/// `masked`.
struct SelectedMask {
  mlir::Value condition;
  bool keeps = true;
  double masked = 0;
};

/// All that masks the scores, outermost first.
struct MaskParts {
  llvm::SmallVector<mlir::Value, 2> added;
  llvm::SmallVector<SelectedMask, 2> selected;
};

/// What mtp.attention takes.
struct BuiltMask {
  mlir::Value mask; ///< null, boolean or float
  bool causal = false;
  int64_t causalOffset = 0;
  /// A row without any key becomes the mean of all values (a finite mask value
  /// makes all scores equal).
  bool uniformRows = false;
};

/// The offset o if `condition` is true exactly where key j ≤ query i + o, for
/// `queries` x `keys`: a comparison of counters, or a constant.
std::optional<int64_t> matchCausal(mlir::Value condition, int64_t queries,
                                   int64_t keys);

/// Combines the parts. A causal part becomes a flag and is not stored; booleans
/// stay booleans where all masked values agree. `rank` is that of the scores
/// (3: (n,s,t), given to attention as (n,1,s,t)). Returns nothing if a mask
/// does not broadcast to the scores.
std::optional<BuiltMask> buildMask(mlir::PatternRewriter &rewriter,
                                   mlir::Location loc, const MaskParts &parts,
                                   int64_t queries, int64_t keys, int64_t rank,
                                   mlir::Type element);

} // namespace mtp::raise

#endif // MTP_PASSES_RAISE_RAISEMASK_H
