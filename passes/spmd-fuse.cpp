// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-fuse.cpp - groups of ops become spmd.fused --------------------===//

#include "compiler/codegen/Fusion.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDFUSE
#include "passes/Passes.h.inc"
} // namespace mtp

/// Erases pure ops without uses. Users stand behind producers: one walk from
/// the end.
static void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

namespace {
struct SpmdFusePass : mtp::impl::SpmdFuseBase<SpmdFusePass> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isDeclaration() || !func.getBody().hasOneBlock())
        continue;
      Block &block = func.getBody().front();
      // A kernel may then hold values that are stored.
      for (auto store : llvm::to_vector(block.getOps<spmd::StoreOp>()))
        store->moveBefore(block.getTerminator());
      eraseUnused(block);
      // There are no gradients any more: these are identities.
      for (Operation &op : llvm::make_early_inc_range(block))
        if (isa<StopGradientOp, BarrierOp>(op)) {
          op.getResult(0).replaceAllUsesWith(op.getOperand(0));
          op.erase();
        } else if (auto dropout = dyn_cast<DropoutOp>(op);
                   dropout && !dropout.getTraining() &&
                   dropout.getMask().use_empty()) {
          dropout.getResult().replaceAllUsesWith(dropout.getInput());
          op.erase();
        }
      for (const FusionGroup &group : planFusion(block))
        outlineGroup(group);
      eraseUnused(block);
    }
  }
};
} // namespace
