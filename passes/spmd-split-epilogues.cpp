// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-split-epilogues.cpp - activations out of products -------------===//

#include "dialects/spmd/SpmdDialect.h"
#include "passes/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDSPLITEPILOGUES
#include "passes/Passes.h.inc"
} // namespace mtp

/// The op of an activation on `x`; null if there is none.
static Operation *activationOp(OpBuilder &builder, Location loc,
                               spmd::Activation activation, Value x) {
  switch (activation) {
  case spmd::Activation::relu:
    return ReluOp::create(builder, loc, x.getType(), x);
  case spmd::Activation::silu:
    return SiluOp::create(builder, loc, x.getType(), x);
  case spmd::Activation::gelu_erf:
    return GeluOp::create(builder, loc, x.getType(), x, /*tanh=*/false);
  case spmd::Activation::gelu_tanh:
    return GeluOp::create(builder, loc, x.getType(), x, /*tanh=*/true);
  case spmd::Activation::none:
    return nullptr;
  }
  return nullptr;
}

namespace {
struct SplitActivation : OpRewritePattern<spmd::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(spmd::MatmulOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.setInsertionPointAfter(op);
    Operation *activation =
        activationOp(rewriter, op.getLoc(), op.getActivation(), op.getResult());
    if (!activation)
      return failure();
    rewriter.replaceAllUsesExcept(op.getResult(), activation->getResult(0),
                                  activation);
    rewriter.modifyOpInPlace(op,
                             [&] { op.setActivation(spmd::Activation::none); });
    return success();
  }
};

struct SpmdSplitEpilogues
    : mtp::impl::SpmdSplitEpiloguesBase<SpmdSplitEpilogues> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitActivation>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
