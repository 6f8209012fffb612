// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RaiseNorm.cpp - LayerNorm and RMSNorm ------------------------------===//
//
//   rms_norm    x / sqrt(mean(x²) + e) · w, in any order
//   layer_norm  d / sqrt(mean(d²) + e) · w + b, where d = x - mean(x)
//
//===----------------------------------------------------------------------===//

#include "passes/raise/Match.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::raise;

namespace {
/// `mean(x²) + e` of the last dimension.
bool matchMeanSquare(Value value, Value &input, double &epsilon) {
  Sum sum = flattenSum(value);
  if (sum.terms.size() != 1 || sum.offset < 0)
    return false;
  Value square = matchMeanOfLast(sum.terms[0]);
  input = square ? matchSquare(square) : Value();
  epsilon = sum.offset;
  return static_cast<bool>(input);
}

/// Value with size-1 leading dimensions dropped: a (1,1,d) scale as (d).
Value asVector(PatternRewriter &rewriter, Location loc, Value value) {
  auto type = typeOf(value);
  if (type.getRank() == 1)
    return value;
  auto vector =
      RankedTensorType::get({type.getNumElements()}, type.getElementType());
  return ReshapeOp::create(rewriter, loc, vector, value);
}

/// True if `value` is a vector over the last dimension of `like`.
bool isLastDimVector(Value value, Value like) {
  int64_t last = typeOf(like).getShape().back();
  return typeOf(value).getRank() >= 1 &&
         typeOf(value).getNumElements() == last &&
         typeOf(value).getShape().back() == last;
}

/// What is normalized and by which root mean square: x · rsqrt(ms) or
/// x / sqrt(ms), where ms = mean(x²) + e.
bool matchNormalized(Value value, Value &input, double &epsilon) {
  Value data, meanSquare;
  if (auto div = value.getDefiningOp<DivOp>()) {
    auto sqrt = div.getRhs().getDefiningOp<SqrtOp>();
    if (!sqrt)
      return false;
    data = div.getLhs();
    meanSquare = sqrt.getInput();
  } else if (auto mul = value.getDefiningOp<MulOp>()) {
    bool right = static_cast<bool>(matchRsqrt(mul.getRhs()));
    data = right ? mul.getLhs() : mul.getRhs();
    meanSquare = matchRsqrt(right ? mul.getRhs() : mul.getLhs());
  }
  Value squared;
  if (!meanSquare || !matchMeanSquare(meanSquare, squared, epsilon) ||
      squared != data)
    return false;
  input = data;
  return true;
}

struct RaiseRmsNorm : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [scale, normed] : {std::pair(op.getLhs(), op.getRhs()),
                                 std::pair(op.getRhs(), op.getLhs())}) {
      Value input;
      double epsilon;
      if (!matchNormalized(normed, input, epsilon) ||
          !isLastDimVector(scale, input) || input.getType() != op.getType())
        continue;
      rewriter.replaceOpWithNewOp<RmsNormOp>(
          op, op.getType(), input, asVector(rewriter, op.getLoc(), scale),
          rewriter.getF64FloatAttr(epsilon));
      return success();
    }
    return failure();
  }
};

/// x if `value` is x - mean(x) over the last dimension.
Value matchCentered(Value value) {
  auto sub = value.getDefiningOp<SubOp>();
  return sub && matchMeanOfLast(sub.getRhs()) == sub.getLhs() ? sub.getLhs()
                                                              : Value();
}

/// rms_norm(x - mean(x), w) + b, after the product with w was raised.
struct RaiseLayerNorm : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [bias, normed] : {std::pair(op.getLhs(), op.getRhs()),
                                std::pair(op.getRhs(), op.getLhs())}) {
      auto rms = normed.getDefiningOp<RmsNormOp>();
      Value input = rms ? matchCentered(rms.getInput()) : Value();
      if (!input || !isLastDimVector(bias, input) ||
          input.getType() != op.getType())
        continue;
      rewriter.replaceOpWithNewOp<LayerNormOp>(
          op, op.getType(), input, rms.getScale(),
          asVector(rewriter, op.getLoc(), bias), rms.getEpsilonAttr());
      return success();
    }
    return failure();
  }
};
} // namespace

void raise::populateNormPatterns(RewritePatternSet &patterns) {
  patterns.add<RaiseRmsNorm, RaiseLayerNorm>(patterns.getContext());
}
