// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsSequence.cpp - sequences, which resolve to their elements --------===//
#include "compiler/frontend/onnx/OpContext.h"

#include <algorithm>

namespace mtp::onnx {

namespace {

Attribute integer(int64_t value) {
  Attribute attribute;
  attribute.i = value;
  return attribute;
}

void inferConstruct(OpContext &op) {
  for (size_t i = 0; i < op.numInputs(); ++i)
    op.in(i);
  op.sequence(0, op.node.inputs);
}

/// The position that input `i` says, in `size` elements.
int64_t positionIn(OpContext &op, size_t i, int64_t size) {
  std::vector<int64_t> position = op.takeInts(i, "the position");
  if (position.size() != 1 || position[0] < -size || position[0] >= size)
    op.invalid("position " + text(position) + " in a sequence of " + std::to_string(size));
  return position[0] < 0 ? position[0] + size : position[0];
}

void inferAt(OpContext &op) {
  const std::vector<int> elements = op.elements(0);
  op.alias(0, elements[positionIn(op, 1, static_cast<int64_t>(elements.size()))]);
}
void inferInsert(OpContext &op) {
  std::vector<int> elements = op.elements(0);
  op.in(1);
  int64_t size = static_cast<int64_t>(elements.size());
  int64_t at = op.has(2) ? positionIn(op, 2, size + 1) : size;
  elements.insert(elements.begin() + at, op.node.inputs[1]);
  op.sequence(0, std::move(elements));
}
void inferErase(OpContext &op) {
  std::vector<int> elements = op.elements(0);
  int64_t size = static_cast<int64_t>(elements.size());
  if (size == 0)
    op.invalid("the sequence is empty");
  elements.erase(elements.begin() + (op.has(1) ? positionIn(op, 1, size) : size - 1));
  op.sequence(0, std::move(elements));
}
void inferLength(OpContext &op) {
  Constant length = vectorOf({static_cast<int64_t>(op.elements(0).size())});
  length.shape = {};
  op.constant(0, std::move(length));
}

void inferSplitToSequence(OpContext &op) {
  Shape shape = op.shape(0);
  DType type = op.type(0);
  int64_t axis = op.axis(op.intAttr("axis", 0), op.rank(0)), extent = shape[axis];
  bool drops = !op.has(1) && !op.intAttr("keepdims", 1);
  std::vector<int64_t> sizes;
  if (!op.has(1)) {
    sizes.assign(static_cast<size_t>(std::min(extent, kMostRange)), 1);
  } else if (op.shape(1).empty()) {
    int64_t each = op.takeInts(1, "the split")[0];
    if (each < 1)
      op.invalid("the split is " + std::to_string(each));
    for (int64_t at = 0; at < extent; at += each)
      sizes.push_back(std::min(each, extent - at));
  } else {
    sizes = op.takeInts(1, "the split");
  }
  int64_t start = 0;
  std::vector<int> parts;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - start)
      op.invalid("split " + text(sizes) + " of a dimension of " + std::to_string(extent));
    Shape part = shape;
    part[axis] = size;
    int value = op.emit("mtp.slice", {op.node.inputs[0]},
                        {{"dim", integer(axis)}, {"start", integer(start)}, {"step", integer(1)}}, type, part);
    if (drops) {
      part.erase(part.begin() + axis);
      value = op.emit("Reshape", {value}, {}, type, part);
    }
    parts.push_back(value);
    start += size;
  }
  if (start != extent)
    op.invalid("split " + text(sizes) + " of a dimension of " + std::to_string(extent));
  op.sequence(0, std::move(parts));
}

void inferConcatFromSequence(OpContext &op) {
  std::vector<int> elements = op.elements(0);
  if (elements.empty())
    op.unsupported("an empty sequence");
  op.node.inputs = elements;
  bool stacks = op.intAttr("new_axis", 0);
  int64_t rank = op.rank(0);
  int64_t axis = op.axis(op.intAttr("axis", 0), rank + stacks);
  Shape result = op.shape(0);
  DType type = op.type(0);
  int64_t total = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    Shape part = op.shape(i);
    if (op.type(i) != type || static_cast<int64_t>(part.size()) != rank)
      op.invalid("elements of the sequence do not fit each other");
    total += stacks ? 1 : part[axis];
    for (int64_t d = 0; d < rank; ++d)
      if (part[d] != result[d] && (stacks || d != axis))
        op.invalid("elements of shape " + text(result) + " and " + text(part) + " cannot be joined");
    if (stacks) {
      part.insert(part.begin() + axis, 1);
      op.node.inputs[i] = op.emit("Reshape", {op.node.inputs[i]}, {}, type, part);
    }
  }
  if (stacks)
    result.insert(result.begin() + axis, 1);
  result[axis] = total;
  if (elements.size() == 1)
    return op.alias(0, op.node.inputs[0]);
  op.node.op = "Concat";
  op.node.attributes.clear();
  op.set("axis", axis);
  op.output(0, type, std::move(result));
}

} // namespace

void addSequenceRules(OpTable &table) {
  table["SequenceConstruct"] = {11, 1, kAnyNumber, 1, {}, inferConstruct};
  table["SequenceEmpty"] = {11, 0, 0, 1, {"dtype"}, [](OpContext &op) { op.sequence(0, {}); }};
  table["SequenceAt"] = {11, 2, 2, 1, {}, inferAt};
  table["SequenceInsert"] = {11, 2, 3, 1, {}, inferInsert};
  table["SequenceErase"] = {11, 1, 2, 1, {}, inferErase};
  table["SequenceLength"] = {11, 1, 1, 1, {}, inferLength};
  table["SplitToSequence"] = {11, 1, 2, 1, {"axis", "keepdims"}, inferSplitToSequence};
  table["ConcatFromSequence"] = {11, 1, 1, 1, {"axis", "new_axis"}, inferConcatFromSequence};
}

} // namespace mtp::onnx
