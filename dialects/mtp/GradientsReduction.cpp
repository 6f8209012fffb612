// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GradientsReduction.cpp - gradients of reductions, softmax, norms ---===//

#include "dialects/mtp/Gradient.h"
#include "dialects/mtp/RuleSupport.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::detail;
using Gradients = MutableArrayRef<Value>;

namespace {

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Shape of a reduction's result with the reduced dimensions kept as 1.
template <typename Op> SmallVector<int64_t> keptShape(Op op) {
  SmallVector<int64_t> shape(typeOf(op.getInput()).getShape());
  for (int64_t dim : op.getDims())
    shape[dim] = 1;
  return shape;
}

LogicalResult reduceSumGradient(ReduceSumOp op, GradientBuilder &b,
                                ValueRange g, Gradients d) {
  Value x = op.getInput();
  if (b.wants(0u))
    d[0] = b.broadcast(b.reshape(g[0], keptShape(op)), typeOf(x).getShape(), x);
  return success();
}

/// All elements that equal the extremum share g.
template <typename Op>
LogicalResult reduceExtremumGradient(Op op, GradientBuilder &b, ValueRange g,
                                     Gradients d) {
  if (!b.wants(0u))
    return success();
  Value x = op.getInput(), zero = b.zero(x);
  SmallVector<int64_t> kept = keptShape(op);
  Value hit = b.compare(Compare::eq, x, b.reshape(op.getResult(), kept));
  Value count = b.reduceSum(b.select(hit, b.scalar(x, 1), zero), op.getDims(),
                            /*keep=*/true);
  d[0] = b.select(hit, b.div(b.reshape(g[0], kept), count), zero);
  return success();
}

/// The product of the other elements, also where some are zero: with one zero
/// in a row only it has a cotangent, with more none has.
LogicalResult reduceProdGradient(ReduceProdOp op, GradientBuilder &b,
                                 ValueRange g, Gradients d) {
  if (!b.wants(0u))
    return success();
  Value x = op.getInput(), zero = b.zero(x), one = b.scalar(x, 1);
  SmallVector<int64_t> kept = keptShape(op);
  Value isZero = b.compare(Compare::eq, x, zero);
  Value zeros = b.reduceSum(b.select(isZero, one, zero), op.getDims(),
                            /*keep=*/true);
  Value others = b.select(isZero, one, x);
  Value product = b.make<ReduceProdOp>(
      b.typed(kept, x), others, op.getDimsAttr(), b.builder().getUnitAttr());
  Value atZero = b.select(b.compare(Compare::eq, zeros, one), product, zero);
  Value elsewhere = b.select(b.compare(Compare::eq, zeros, zero),
                             b.div(product, others), zero);
  d[0] = b.mul(b.reshape(g[0], kept), b.select(isZero, atZero, elsewhere));
  return success();
}

LogicalResult topKGradient(TopKOp op, GradientBuilder &b, ValueRange g,
                           Gradients d) {
  Value x = op.getInput();
  if (g[0] && b.wants(0u))
    d[0] = b.makeFor<ScatterElementsOp>(x, b.zerosFor(x), op.getIndices(), g[0],
                                        op.getDim(), Combine::add);
  return success();
}

LogicalResult cumsumGradient(CumsumOp op, GradientBuilder &b, ValueRange g,
                             Gradients d) {
  if (b.wants(0u))
    d[0] = b.makeFor<CumsumOp>(
        op.getInput(), g[0], op.getDimAttr(), op.getExclusiveAttr(),
        op.getReverse() ? UnitAttr() : b.builder().getUnitAttr());
  return success();
}

//===----------------------------------------------------------------------===//
// Softmax, norms, rotary
//===----------------------------------------------------------------------===//

template <typename Op, typename GradientOp>
LogicalResult softmaxGradient(Op op, GradientBuilder &b, ValueRange g,
                              Gradients d) {
  if (b.wants(0u))
    d[0] = b.makeFor<GradientOp>(op.getInput(), op.getResult(), g[0],
                                 op.getDimAttr());
  return success();
}

/// The input's is an op of its own; the scale's is the sum of g · n, where n is
/// the op with scale 1 and without bias.
LogicalResult layerNormGradient(LayerNormOp op, GradientBuilder &b,
                                ValueRange g, Gradients d) {
  Value x = op.getInput(), scale = op.getScale();
  if (b.wants(0u))
    d[0] =
        b.makeFor<LayerNormGradientOp>(x, x, scale, g[0], op.getEpsilonAttr());
  if (b.wants(1u)) {
    Value normal =
        b.make<LayerNormOp>(b.plain(x), x, b.splat(b.plain(scale), 1), Value(),
                            op.getEpsilonAttr());
    d[1] = b.sumTo(b.mul(g[0], normal), scale);
  }
  if (op.getBias() && b.wants(2u))
    d[2] = b.sumTo(g[0], op.getBias());
  return success();
}

LogicalResult rmsNormGradient(RmsNormOp op, GradientBuilder &b, ValueRange g,
                              Gradients d) {
  Value x = op.getInput(), scale = op.getScale();
  if (b.wants(0u))
    d[0] = b.makeFor<RmsNormGradientOp>(x, x, scale, g[0], op.getEpsilonAttr());
  if (b.wants(1u)) {
    Value normal = b.make<RmsNormOp>(b.plain(x), x, b.splat(b.plain(scale), 1),
                                     op.getEpsilonAttr());
    d[1] = b.sumTo(b.mul(g[0], normal), scale);
  }
  return success();
}

/// Rotation back by the same angle. For the tables, with pairs (x1, x2) and
/// (g1, g2): dcos = g1 x1 + g2 x2, dsin = g2 x1 - g1 x2.
LogicalResult rotaryGradient(RotaryOp op, GradientBuilder &b, ValueRange g,
                             Gradients d) {
  Value x = op.getInput(), cos = op.getCos(), sin = op.getSin();
  if (b.wants(0u))
    d[0] =
        b.makeFor<RotaryOp>(x, g[0], cos, b.neg(sin), op.getInterleavedAttr());
  if (!b.wants(1u) && !b.wants(2u))
    return success();
  int64_t last = typeOf(x).getRank() - 1, half = typeOf(cos).getShape().back();
  auto part = [&](Value value, int64_t which) {
    return op.getInterleaved() ? b.slice(value, last, which, half, 2)
                               : b.slice(value, last, which * half, half);
  };
  Value x1 = part(x, 0), x2 = part(x, 1), g1 = part(g[0], 0),
        g2 = part(g[0], 1);
  if (b.wants(1u))
    d[1] = b.sumTo(b.add(b.mul(g1, x1), b.mul(g2, x2)), cos);
  if (b.wants(2u))
    d[2] = b.sumTo(b.sub(b.mul(g2, x1), b.mul(g1, x2)), sin);
  return success();
}

} // namespace

void mtp::detail::registerReductionGradients(MLIRContext *context) {
  attachGradient<&reduceSumGradient>(context);
  attachGradient<&reduceExtremumGradient<ReduceMaxOp>>(context);
  attachGradient<&reduceExtremumGradient<ReduceMinOp>>(context);
  attachGradient<&reduceProdGradient>(context);
  attachGradient<&topKGradient>(context);
  attachGradient<&cumsumGradient>(context);
  attachGradient<&softmaxGradient<SoftmaxOp, SoftmaxGradientOp>>(context);
  attachGradient<&softmaxGradient<LogSoftmaxOp, LogSoftmaxGradientOp>>(context);
  attachGradient<&layerNormGradient>(context);
  attachGradient<&rmsNormGradient>(context);
  attachGradient<&rotaryGradient>(context);
}
