// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-overlap-collectives.cpp - work beside collectives -------------===//
//
// Between the collective before it and its own place, a collective waits only
// for what it is computed from. The rest, such as the gradients of weights,
// goes behind it, and runs while it is under way:
//
//   dx = matmul(dy, w)                dx = matmul(dy, w)
//   dw = matmul(x, dy)          ->    sum = all_reduce(dx)
//   sum = all_reduce(dx)              dw = matmul(x, dy)
//   ... = fused(sum)                  ... = fused(sum)
//
// An op goes behind one collective at most: what it reads is not held longer.
// Collectives keep their order, which is the same on all ranks.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Overlap.h"
#include "dialects/spmd/SpmdDialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDOVERLAPCOLLECTIVES
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {

class Scheduler {
public:
  explicit Scheduler(mlir::Block &block) : block(block) {}

  void run() {
    SmallVector<Operation *> segment;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isa<spmd::CollectiveOpInterface>(op)) {
        segment.push_back(&op);
        continue;
      }
      op.setAttr(kOverlaps, UnitAttr::get(op.getContext()));
      segment = delay(&op, segment);
    }
  }

private:
  /// Puts the ops of `segment` that `collective` doesn't need behind it; these.
  SmallVector<Operation *> delay(Operation *collective,
                                 ArrayRef<Operation *> segment) {
    llvm::DenseSet<Operation *> needed{collective};
    SmallVector<Operation *> later;
    for (Operation *op : llvm::reverse(segment)) {
      bool stays = delayed.contains(op) || op->getNumOperands() == 0 ||
                   !isMemoryEffectFree(op) ||
                   llvm::any_of(op->getUsers(), [&](Operation *user) {
                     return needed.contains(user);
                   });
      if (stays)
        needed.insert(op);
      else
        later.push_back(op);
    }
    // `later` is in reverse: each goes right behind the collective.
    for (Operation *op : later) {
      op->moveAfter(collective);
      delayed.insert(op);
    }
    return SmallVector<Operation *>(llvm::reverse(later));
  }

  mlir::Block &block;
  llvm::DenseSet<Operation *> delayed;
};

struct SpmdOverlapCollectives
    : mtp::impl::SpmdOverlapCollectivesBase<SpmdOverlapCollectives> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isDeclaration() && func.getBody().hasOneBlock())
        Scheduler(func.getBody().front()).run();
  }
};
} // namespace
