// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-simplify.cpp - the graph as planning expects it ----------------===//

#include "passes/Passes.h"
#include "passes/mtp-simplify-patterns.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPSIMPLIFY
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
class MtpSimplify : public mtp::impl::MtpSimplifyBase<MtpSimplify> {
  FrozenRewritePatternSet patterns;

  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    mtp::populateShapePatterns(set);
    mtp::populateProductPatterns(set);
    mtp::populateElementwisePatterns(set);
    mtp::populateParameterPatterns(set);
    mtp::populateSlicePatterns(set);
    mtp::populateIndexPatterns(set);
    patterns = std::move(set);
    return success();
  }

  /// The patterns build types without layouts.
  LogicalResult refuseLayouts() {
    WalkResult found =
        getOperation().walk([](Operation *op) {
          for (Type type : op->getResultTypes())
            if (mtp::layoutOf(type)) {
              op->emitError()
                  << "has a layout; mtp-simplify runs before a plan is applied";
              return WalkResult::interrupt();
            }
          return WalkResult::advance();
        });
    return failure(found.wasInterrupted());
  }

  /// Equal values first, so that patterns see all uses of a weight; and again
  /// afterwards, for what they created.
  void runOnOperation() override {
    if (failed(refuseLayouts()))
      return signalPassFailure();
    eliminateCommonSubexpressions();
    GreedyRewriteConfig config;
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    if (failed(applyPatternsGreedily(getOperation(), patterns, config)))
      return signalPassFailure();
    eliminateCommonSubexpressions();
  }

  void eliminateCommonSubexpressions() {
    DominanceInfo dominance(getOperation());
    IRRewriter rewriter(&getContext());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }
};
} // namespace
