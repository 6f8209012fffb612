// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsNorm.cpp - normalizations ----------------------------------------===//
//
// Normal forms: LayerNormalization: epsilon; scale and bias have the shape of the
// last dimensions. RMSNormalization: epsilon; over the last dimension.
//
//===----------------------------------------------------------------------===//
#include "compiler/frontend/onnx/OpContext.h"

namespace mtp::onnx {

namespace {

/// Input `i` in the shape of the normalized dimensions.
void expandTo(OpContext &op, size_t i, const Shape &shape, const char *what) {
  Shape given = op.shape(i);
  while (given.size() > shape.size() && given.front() == 1)
    given.erase(given.begin());
  if (op.broadcast(given, shape) != shape)
    op.invalid(std::string(what) + " of shape " + text(op.shape(i)) + " does not broadcast to " + text(shape));
  DType type = op.type(i);
  int value = op.node.inputs[i];
  if (given != op.shape(i))
    value = op.emit("Reshape", {value}, {}, type, given);
  if (given != shape)
    value = op.emit("Expand", {value}, {}, type, shape);
  op.node.inputs[i] = value;
}

void inferLayerNorm(OpContext &op) {
  Shape shape = op.shape(0);
  int64_t axis = op.axis(op.intAttr("axis", -1), op.rank(0));
  if (op.wants(1) || op.wants(2))
    op.unsupported("mean and deviation as outputs");
  if (op.intAttr("stash_type", 1) != 1)
    op.unsupported("stash_type = " + std::to_string(op.intAttr("stash_type", 1)));
  if (op.type(1) != op.type(0))
    op.unsupported("a scale of another type");
  Shape last(shape.begin() + axis, shape.end());
  DType type = op.type(0);
  expandTo(op, 1, last, "the scale");
  if (op.has(2))
    expandTo(op, 2, last, "the bias");
  double epsilon = op.floatAttr("epsilon", 1e-5);
  op.node.attributes.clear();
  op.set("epsilon", epsilon);
  op.output(0, type, std::move(shape));
}

void inferRmsNorm(OpContext &op) {
  Shape shape = op.shape(0);
  DType type = op.type(0);
  int64_t axis = op.axis(op.intAttr("axis", -1), op.rank(0));
  if (op.intAttr("stash_type", 1) != 1)
    op.unsupported("stash_type = " + std::to_string(op.intAttr("stash_type", 1)));
  if (op.type(1) != type)
    op.unsupported("a scale of another type");
  expandTo(op, 1, Shape(shape.begin() + axis, shape.end()), "the scale");
  double epsilon = op.floatAttr("epsilon", 1e-5);
  op.node.attributes.clear();
  op.set("epsilon", epsilon);
  if (axis == static_cast<int64_t>(shape.size()) - 1)
    return op.output(0, type, std::move(shape));
  Shape flat(shape.begin(), shape.begin() + axis);
  flat.push_back(1);
  for (size_t d = axis; d < shape.size(); ++d)
    flat.back() *= shape[d];
  int x = op.emit("Reshape", {op.node.inputs[0]}, {}, type, flat);
  int scale = op.emit("Reshape", {op.node.inputs[1]}, {}, type, {flat.back()});
  int normed = op.emit("RMSNormalization", {x, scale}, op.node.attributes, type, flat);
  op.node.op = "Reshape";
  op.node.attributes.clear();
  op.node.inputs = {normed};
  op.output(0, type, std::move(shape));
}

/// (x - mean) / sqrt(variance + epsilon) * scale + bias along dimension 1.
void inferBatchNorm(OpContext &op) {
  if (op.intAttr("training_mode", 0))
    op.unsupported("training_mode");
  for (size_t i = 1; i < op.numOutputs(); ++i)
    if (op.wants(i))
      op.unsupported("statistics as outputs");
  Shape shape = op.shape(0);
  DType type = op.type(0);
  if (shape.size() < 2)
    op.invalid("it needs two dimensions");
  Shape channel(shape.size() - 1, 1);
  channel[0] = shape[1];
  std::vector<int> parts;
  for (size_t i = 1; i <= 4; ++i) {
    if (op.shape(i) != Shape{shape[1]} || op.type(i) != type)
      op.invalid("input " + std::to_string(i) + " has shape " + text(op.shape(i)));
    parts.push_back(op.emit("Reshape", {op.node.inputs[i]}, {}, type, channel));
  }
  Attribute epsilon;
  epsilon.kind = Attribute::Kind::Float;
  epsilon.f = op.floatAttr("epsilon", 1e-5);
  int deviation = op.emit("mtp.add_scalar", {parts[3]}, {{"value", epsilon}}, type, channel);
  deviation = op.emit("Sqrt", {deviation}, {}, type, channel);
  int factor = op.emit("Div", {parts[0], deviation}, {}, type, channel);
  int centered = op.emit("Sub", {op.node.inputs[0], parts[2]}, {}, type, shape);
  int scaled = op.emit("Mul", {centered, factor}, {}, type, shape);
  op.node.op = "Add";
  op.node.attributes.clear();
  op.node.inputs = {scaled, parts[1]};
  op.node.outputs.resize(1);
  op.output(0, type, std::move(shape));
}

} // namespace

void addNormRules(OpTable &table) {
  table["LayerNormalization"] = {17, 2, 3, 3, {"axis", "epsilon", "stash_type"}, inferLayerNorm};
  table["RMSNormalization"] = {23, 2, 2, 1, {"axis", "epsilon", "stash_type"}, inferRmsNorm};
  table["BatchNormalization"] = {9, 5, 5, 5, {"epsilon", "momentum", "training_mode"}, inferBatchNorm};
  table["mtp.add_scalar"] = {INT64_MAX, 1, 1, 1, {}, nullptr};
}

} // namespace mtp::onnx
