// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Fusion.h - which ops become one kernel -----------------------------===//
//
// Groups grow from their last op (the root) against the order of the program. A
// producer joins if it then need not be stored, or is cheap enough to be
// computed again (a constant, a broadcast, a conversion), or can be stored on
// the way (a residual sum that is normalized and used later). How a value is
// read decides:
//
//   full     element by element, in the order in which the group runs
//   prefix   one element for each of the leading positions (a mean with its
//            dimension kept): it is computed before the loop over the rest
//   other    anywhere (behind a transpose, a slice, a broadcast over rows)
//
// Ops that sweep over rows join only if they are read full or prefix, and all
// of a group have the same rows. An op with expensive elements joins only if no
// element would be computed twice.
//
// Invariants: the ops of a group and its operands precede the root; uses of
// other results than the root's follow it, so a group can stand where its root
// stood. Every op is owned by at most one group; copies are not owned.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_FUSION_H
#define MTP_COMPILER_CODEGEN_FUSION_H

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace mtp {

struct FusionGroup {
  mlir::Operation *root = nullptr;
  llvm::SmallVector<mlir::Operation *> ops; ///< in program order, the root last
  llvm::DenseSet<mlir::Operation *>
      owned; ///< no longer needed outside; others are copied
  llvm::SmallVector<mlir::Value> results; ///< the root's first
};

/// Groups of a block, the last of the program first.
std::vector<FusionGroup> planFusion(mlir::Block &block);

/// Makes a `spmd.fused` of a group, at its root. To be called in the order of
/// planFusion: a group may copy ops that an earlier part of the program owns.
void outlineGroup(const FusionGroup &group);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_FUSION_H
