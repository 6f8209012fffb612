// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsCreation.cpp - operators that make tensors -----------------------===//
#include "compiler/frontend/onnx/Evaluate.h"
#include "compiler/frontend/onnx/TensorReader.h"

#include <cmath>

namespace mtp::onnx {

namespace {

void inferConstant(OpContext &op) {
  auto given = [&](const char *name) -> const Attribute * {
    auto at = op.node.attributes.find(name);
    return at == op.node.attributes.end() ? nullptr : &at->second;
  };
  if (const Attribute *tensor = given("value")) {
    if (!tensor->tensor)
      op.invalid("its value is not a tensor");
    if (!tensor->tensor->foreignType.empty())
      op.unsupported("element type " + tensor->tensor->foreignType);
    return op.alias(0, op.addLiteral(*tensor->tensor));
  }
  if (const Attribute *value = given("value_int")) {
    Constant scalar = vectorOf({value->i});
    scalar.shape = {};
    return op.constant(0, std::move(scalar));
  }
  if (const Attribute *value = given("value_ints"))
    return op.constant(0, vectorOf(value->ints));
  DType type = op.effective(DType::F32);
  if (const Attribute *value = given("value_float"))
    return op.constant(0, scalarOf(type, value->f));
  if (const Attribute *value = given("value_floats")) {
    Constant vector;
    vector.type = type;
    vector.floats = value->floats;
    vector.shape = {static_cast<int64_t>(value->floats.size())};
    return op.constant(0, std::move(vector));
  }
  op.unsupported("a value that is neither tensor, integer nor float");
}

void inferConstantOfShape(OpContext &op) {
  Shape shape = op.takeInts(0, "the shape");
  Constant value = scalarOf(op.effective(DType::F32), 0);
  auto given = op.node.attributes.find("value");
  if (given != op.node.attributes.end()) {
    if (!given->second.tensor || !given->second.tensor->foreignType.empty() || given->second.tensor->elements() != 1)
      op.invalid("its value is not a tensor of one element");
    value = op.loadTensor(*given->second.tensor);
  }
  for (int64_t extent : shape)
    if (extent < 0)
      op.invalid("shape " + text(shape) + " is not valid");
  value.shape = shape;
  value.splat = true;
  op.constant(0, std::move(value));
}

void inferRange(OpContext &op) {
  auto start = op.take(0, "the start"), limit = op.take(1, "the limit"), delta = op.take(2, "the step");
  if (start->elements() != 1 || limit->elements() != 1 || delta->elements() != 1)
    op.invalid("start, limit and delta are not scalars");
  double count = 0;
  if (delta->numberAt(0) == 0)
    op.invalid("delta is 0");
  if (start->holdsFloats())
    count = std::ceil((limit->floatAt(0) - start->floatAt(0)) / delta->floatAt(0));
  else
    count = std::ceil((static_cast<double>(limit->intAt(0)) - static_cast<double>(start->intAt(0))) /
                      static_cast<double>(delta->intAt(0)));
  if (!(count < static_cast<double>(kMostRange)))
    op.unsupported("it has " + std::to_string(count) + " elements");
  Constant result;
  result.type = start->type;
  result.shape = {count > 0 ? static_cast<int64_t>(count) : 0};
  result.resize();
  for (int64_t i = 0; i < result.shape[0]; ++i)
    if (result.holdsFloats())
      result.floats[i] = start->floatAt(0) + static_cast<double>(i) * delta->floatAt(0);
    else
      result.ints[i] = start->intAt(0) + i * delta->intAt(0);
  result.normalize();
  op.constant(0, std::move(result));
}

void inferEyeLike(OpContext &op) {
  Shape shape = op.shape(0);
  if (shape.size() != 2 || elementCount(shape) > kMostRange)
    op.unsupported("shape " + text(shape));
  DType type = op.type(0);
  if (op.hasAttr("dtype") && !dtypeOf(op.intAttr("dtype", 0), type))
    op.unsupported("to type " + foreignName(op.intAttr("dtype", 0)));
  Constant result;
  result.type = op.effective(type);
  result.shape = shape;
  result.resize();
  for (int64_t row = 0; row < shape[0]; ++row) {
    int64_t column = row + op.intAttr("k", 0);
    if (column < 0 || column >= shape[1])
      continue;
    if (result.holdsFloats())
      result.floats[row * shape[1] + column] = 1;
    else
      result.ints[row * shape[1] + column] = 1;
  }
  op.constant(0, std::move(result));
}

} // namespace

void addCreationRules(OpTable &table) {
  table["Constant"] = {1, 0, 0, 1, {"value", "value_int", "value_ints", "value_float", "value_floats"}, inferConstant};
  table["ConstantOfShape"] = {9, 1, 1, 1, {"value"}, inferConstantOfShape};
  table["Range"] = {11, 3, 3, 1, {"stash_type"}, inferRange};
  table["EyeLike"] = {9, 1, 1, 1, {"dtype", "k"}, inferEyeLike};
}

} // namespace mtp::onnx
