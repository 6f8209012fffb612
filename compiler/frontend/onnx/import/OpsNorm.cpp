// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsNorm.cpp - normalizations ---------------------------------------===//

#include "compiler/frontend/onnx/import/Importer.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

namespace {
std::vector<int64_t> dimsFrom(int64_t axis, int64_t rank) {
  std::vector<int64_t> dims;
  for (int64_t dim = axis; dim < rank; ++dim)
    dims.push_back(dim);
  return dims;
}

/// All inputs have the type of the first.
void checkNormTypes(NodeContext &n) {
  for (size_t i = 1; i < n.numInputs(); ++i)
    if (n.has(i) && n.type(i) != n.type(0))
      n.unsupported(std::string("inputs of types ") + name(n.type(0)) +
                    " and " + name(n.type(i)));
}

/// 1 / sqrt(x + epsilon).
Value inverseRoot(Emit &e, Value x, double epsilon) {
  return e.unary<RsqrtOp>(e.binary<AddOp>(x, e.scalar(elementOf(x), epsilon)));
}

void layerNormalization(NodeContext &n) {
  Emit &e = n.emit;
  checkNormTypes(n);
  int64_t axis = n.axis(n.intAttr("axis", -1), n.rank(0));
  double epsilon = n.floatAttr("epsilon", 1e-5);
  Value x = n.value(0), scale = n.value(1),
        bias = n.has(2) ? n.value(2) : Value();
  Shape tail(n.shape(0).begin() + axis, n.shape(0).end());
  bool plain = n.shape(1) == tail && (!bias || n.shape(2) == tail);
  if (plain && !n.wants(1) && !n.wants(2))
    return n.out(0, LayerNormOp::create(e.b(), e.loc, x.getType(), x, scale,
                                        bias, e.b().getF64FloatAttr(epsilon)));
  std::vector<int64_t> dims = dimsFrom(axis, n.rank(0));
  Value mean = e.mean(x, dims, true);
  Value centered = e.binary<SubOp>(x, mean);
  Value inverse = inverseRoot(
      e, e.mean(e.binary<MulOp>(centered, centered), dims, true), epsilon);
  Value result = e.binary<MulOp>(e.binary<MulOp>(centered, inverse), scale);
  n.out(0, bias ? e.binary<AddOp>(result, bias) : result);
  n.out(1, mean);
  n.out(2, inverse);
}

void rmsNormalization(NodeContext &n) {
  Emit &e = n.emit;
  int64_t axis = n.axis(n.intAttr("axis", -1), n.rank(0));
  double epsilon = n.floatAttr("epsilon", 1e-5);
  if (!isFloat(n.type(1)))
    n.invalid("the scale is not made of floats");
  Value x = n.value(0), scale = n.value(1);
  if (axis == n.rank(0) - 1 && n.shape(1) == Shape{n.shape(0).back()} &&
      n.type(0) == n.type(1))
    return n.out(0, RmsNormOp::create(e.b(), e.loc, x.getType(), x, scale,
                                      e.b().getF64FloatAttr(epsilon)));
  Value squares =
      e.mean(e.binary<MulOp>(x, x), dimsFrom(axis, n.rank(0)), true);
  Value normed = e.binary<MulOp>(x, inverseRoot(e, squares, epsilon));
  n.out(0, e.binary<MulOp>(e.convert(normed, elementOf(scale)), scale));
}

/// A vector over the channels, shaped to broadcast over (n, c, spatial..).
Value overChannels(NodeContext &n, Value vector) {
  Shape shape(n.rank(0) - 1, 1);
  shape[0] = shapeOf(vector)[0];
  return n.emit.reshape(vector, shape);
}

void batchNormalization(NodeContext &n) {
  Emit &e = n.emit;
  checkNormTypes(n);
  if (n.intAttr("training_mode", 0) || n.wants(1))
    n.unsupported("training mode");
  if (n.rank(0) < 2)
    n.invalid("the input has no channels");
  Value x = n.value(0);
  Value scale = e.binary<MulOp>(
      n.value(1), inverseRoot(e, n.value(4), n.floatAttr("epsilon", 1e-5)));
  Value shift = e.binary<SubOp>(n.value(2), e.binary<MulOp>(n.value(3), scale));
  n.out(0, e.binary<AddOp>(e.binary<MulOp>(x, overChannels(n, scale)),
                           overChannels(n, shift)));
}

void instanceNormalization(NodeContext &n) {
  Emit &e = n.emit;
  checkNormTypes(n);
  Value x = n.value(0);
  std::vector<int64_t> dims = dimsFrom(2, n.rank(0));
  Value centered = e.binary<SubOp>(x, e.mean(x, dims, true));
  Value inverse =
      inverseRoot(e, e.mean(e.binary<MulOp>(centered, centered), dims, true),
                  n.floatAttr("epsilon", 1e-5));
  Value normed = e.binary<MulOp>(centered, inverse);
  n.out(0, e.binary<AddOp>(e.binary<MulOp>(normed, overChannels(n, n.value(1))),
                           overChannels(n, n.value(2))));
}

void lpNormalization(NodeContext &n) {
  Emit &e = n.emit;
  int64_t axis = n.axis(n.intAttr("axis", -1), n.rank(0)),
          p = n.intAttr("p", 2);
  if (p != 1 && p != 2)
    n.invalid("p is " + std::to_string(p));
  Value x = n.value(0);
  Value norm = p == 1 ? e.reduce<ReduceSumOp>(e.unary<AbsOp>(x), axis, true)
                      : e.unary<SqrtOp>(e.reduce<ReduceSumOp>(
                            e.binary<MulOp>(x, x), axis, true));
  Value zero = e.scalar(elementOf(x), 0), one = e.scalar(elementOf(x), 1);
  n.out(0, e.binary<DivOp>(
               x, e.select(e.compare(Compare::eq, norm, zero), one, norm)));
}
} // namespace

void mtp::onnx::addNormOps(OpTable &table) {
  table["LayerNormalization"] = {
      layerNormalization, 17, 2, {"axis", "epsilon", "stash_type"}};
  table["RMSNormalization"] = {
      rmsNormalization, 23, 2, {"axis", "epsilon", "stash_type"}};
  table["BatchNormalization"] = {
      batchNormalization, 1, 5, {"epsilon", "momentum", "training_mode"}};
  table["InstanceNormalization"] = {instanceNormalization, 1, 3, {"epsilon"}};
  table["LpNormalization"] = {lpNormalization, 1, 1, {"axis", "p"}};
}
