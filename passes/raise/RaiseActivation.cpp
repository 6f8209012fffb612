// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RaiseActivation.cpp - GELU (both) and SiLU -------------------------===//

#include "passes/raise/Match.h"

#include <cmath>

using namespace mlir;
using namespace mtp;
using namespace mtp::raise;

namespace {
bool near(double value, double expected) {
  return std::abs(value - expected) <= 1e-5 * std::abs(expected);
}

/// True if `value` is x + 0.044715 x³.
bool matchCubic(Value value, Value x) {
  // x itself is a sum, where a bias has been added.
  Sum sum = flattenSum(value, x);
  if (sum.offset != 0 || sum.terms.size() != 2)
    return false;
  for (int i = 0; i < 2; ++i) {
    Product cube = flattenProduct(sum.terms[1 - i]);
    if (sum.terms[i] != x || !near(cube.scale, 0.044715))
      continue;
    if (cube.factors.size() == 3 &&
        llvm::all_of(cube.factors, [&](Value f) { return f == x; }))
      return true;
    auto pow = cube.factors.size() == 1 ? cube.factors[0].getDefiningOp<PowOp>()
                                        : PowOp();
    if (pow && pow.getLhs() == x && isSplat(pow.getRhs(), 3))
      return true;
  }
  return false;
}

enum class Gelu { None, Erf, Tanh };

/// The factor 1 + erf(x / sqrt 2) or 1 + tanh(sqrt(2/pi) (x + 0.044715 x³)).
Gelu matchGate(Value value, Value x) {
  Sum sum = flattenSum(value);
  if (sum.terms.size() != 1 || !near(sum.offset, 1))
    return Gelu::None;
  if (auto erf = sum.terms[0].getDefiningOp<ErfOp>()) {
    Product inner = flattenProduct(erf.getInput());
    bool fits = inner.factors.size() == 1 && inner.factors[0] == x &&
                near(inner.scale, M_SQRT1_2);
    return fits ? Gelu::Erf : Gelu::None;
  }
  if (auto tanh = sum.terms[0].getDefiningOp<TanhOp>()) {
    Product inner = flattenProduct(tanh.getInput());
    bool fits = inner.factors.size() == 1 &&
                near(inner.scale, std::sqrt(2 / M_PI)) &&
                matchCubic(inner.factors[0], x);
    return fits ? Gelu::Tanh : Gelu::None;
  }
  return Gelu::None;
}

/// 0.5 · x · gate, in any order.
struct RaiseGelu : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op,
                                PatternRewriter &rewriter) const override {
    Product product = flattenProduct(op);
    if (product.factors.size() != 2 || !near(product.scale, 0.5))
      return failure();
    for (int i = 0; i < 2; ++i) {
      Value x = product.factors[i];
      Gelu gelu = matchGate(product.factors[1 - i], x);
      if (gelu == Gelu::None || x.getType() != op.getType())
        continue;
      rewriter.replaceOpWithNewOp<GeluOp>(op, op.getType(), x,
                                          gelu == Gelu::Tanh);
      return success();
    }
    return failure();
  }
};

/// x · sigmoid(x). A gate's product with another value stays a product.
struct RaiseSilu : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [x, gate] : {std::pair(op.getLhs(), op.getRhs()),
                           std::pair(op.getRhs(), op.getLhs())}) {
      auto sigmoid = gate.getDefiningOp<SigmoidOp>();
      if (!sigmoid || sigmoid.getInput() != x || x.getType() != op.getType())
        continue;
      rewriter.replaceOpWithNewOp<SiluOp>(op, op.getType(), x);
      return success();
    }
    return failure();
  }
};
} // namespace

void raise::populateActivationPatterns(RewritePatternSet &patterns) {
  patterns.add<RaiseGelu, RaiseSilu>(patterns.getContext());
}
