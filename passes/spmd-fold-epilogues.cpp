// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-fold-epilogues.cpp - bias and activation of products ----------===//

#include "dialects/spmd/SpmdDialect.h"
#include "passes/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDFOLDEPILOGUES
#include "passes/Passes.h.inc"
} // namespace mtp

/// matmul(x, w) + b -> a product with a bias, where b is one row.
struct FoldBias : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op,
                                PatternRewriter &rewriter) const override {
    for (bool right : {false, true}) {
      auto product = op->getOperand(right).getDefiningOp<MatMulOp>();
      Value bias = op->getOperand(!right);
      if (!product || !product->hasOneUse() ||
          op.getType() != product.getType())
        continue;
      RankedTensorType type = op.getType();
      if (!isa<FloatType>(type.getElementType()) ||
          bias.getType() != RankedTensorType::get({type.getShape().back()},
                                                  type.getElementType()))
        continue;
      rewriter.replaceOpWithNewOp<spmd::MatmulOp>(
          op, type, product.getLhs(), product.getRhs(), bias,
          spmd::Activation::none, product.getTransposeLhs(),
          product.getTransposeRhs());
      return success();
    }
    return failure();
  }
};

/// The activation that an op is, nothing if it is none.
static std::optional<spmd::Activation> activationOf(Operation *op) {
  if (isa<ReluOp>(op))
    return spmd::Activation::relu;
  if (isa<SiluOp>(op))
    return spmd::Activation::silu;
  if (auto gelu = dyn_cast<GeluOp>(op))
    return gelu.getTanh() ? spmd::Activation::gelu_tanh
                          : spmd::Activation::gelu_erf;
  return std::nullopt;
}

/// activation(product) -> a product with that activation. Only f32: kernels
/// compute activations of other types faster than the library does.
struct FoldActivation : RewritePattern {
  explicit FoldActivation(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    std::optional<spmd::Activation> activation = activationOf(op);
    auto product = activation
                       ? op->getOperand(0).getDefiningOp<spmd::MatmulOp>()
                       : nullptr;
    if (!product || !product->hasOneUse() ||
        product.getActivation() != spmd::Activation::none ||
        !product.getType().getElementType().isF32())
      return failure();
    rewriter.replaceOpWithNewOp<spmd::MatmulOp>(
        op, op->getResult(0).getType(), product.getLhs(), product.getRhs(),
        product.getBias(), *activation, product.getTransposeLhs(),
        product.getTransposeRhs());
    return success();
  }
};

namespace {
struct SpmdFoldEpilogues : mtp::impl::SpmdFoldEpiloguesBase<SpmdFoldEpilogues> {
  FrozenRewritePatternSet patterns;

  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<FoldBias, FoldActivation>(context);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() override {
    if (failed(applyPatternsGreedily(getOperation(), patterns)))
      signalPassFailure();
  }
};
} // namespace
