// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsSequence.cpp - sequences of known length ------------------------===//
//
// A sequence is a list of values while importing; nothing of it reaches the IR.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/onnx/import/Importer.h"
#include "runtime/support/Checked.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

namespace {
const std::vector<EntryRef> &elements(NodeContext &n, size_t i) {
  if (!n.in(i)->isSequence)
    n.invalid("input " + std::to_string(i) + " is not a sequence");
  return n.in(i)->sequence;
}

void splitToSequence(NodeContext &n) {
  Emit &e = n.emit;
  int64_t axis = n.axis(n.intAttr("axis", 0), n.rank(0)),
          extent = n.shape(0)[axis];
  bool keep = n.intAttr("keepdims", 1) != 0;
  std::vector<int64_t> sizes;
  if (!n.has(1)) {
    sizes.assign(extent, 1);
  } else {
    keep = true;
    sizes = n.ints(1, "the sizes");
    if (n.rank(1) == 0) {
      int64_t part = sizes.at(0);
      if (part < 1)
        n.invalid("parts of size " + std::to_string(part));
      sizes.assign(ceilDiv(extent, part), part);
      if (extent % part)
        sizes.back() = extent % part;
    }
  }
  std::vector<EntryRef> parts;
  int64_t at = 0;
  Value x = n.value(0);
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - at)
      n.invalid("the sizes do not add up to " + std::to_string(extent));
    Value part = e.slice(x, axis, size ? at : 0, size);
    if (!keep) {
      Shape shape(shapeOf(part).begin(), shapeOf(part).end());
      shape.erase(shape.begin() + axis);
      part = e.reshape(part, shape);
    }
    parts.push_back(n.importer.valueEntry(part, n.node.name));
    at += size;
  }
  n.outSequence(0, std::move(parts));
}

void sequenceConstruct(NodeContext &n) {
  std::vector<EntryRef> parts;
  for (size_t i = 0; i < n.numInputs(); ++i)
    parts.push_back(n.in(i));
  n.outSequence(0, std::move(parts));
}

void sequenceEmpty(NodeContext &n) { n.outSequence(0, {}); }

/// Where in a sequence of `size` elements input `i` points; `otherwise` if
/// absent.
int64_t positionIn(NodeContext &n, size_t i, int64_t size, int64_t otherwise) {
  if (!n.has(i))
    return otherwise;
  std::vector<int64_t> position = n.ints(i, "the position");
  if (position.size() != 1)
    n.invalid("one position is expected");
  return n.axis(position[0], size);
}

void sequenceInsert(NodeContext &n) {
  std::vector<EntryRef> parts = elements(n, 0);
  int64_t size = static_cast<int64_t>(parts.size());
  int64_t at =
      n.has(2) && n.ints(2, "the position") == std::vector<int64_t>{size}
          ? size
          : positionIn(n, 2, size, size);
  parts.insert(parts.begin() + at, n.in(1));
  n.outSequence(0, std::move(parts));
}

void sequenceErase(NodeContext &n) {
  std::vector<EntryRef> parts = elements(n, 0);
  int64_t size = static_cast<int64_t>(parts.size());
  if (size == 0)
    n.invalid("the sequence is empty");
  parts.erase(parts.begin() + positionIn(n, 1, size, size - 1));
  n.outSequence(0, std::move(parts));
}

void sequenceAt(NodeContext &n) {
  const std::vector<EntryRef> &parts = elements(n, 0);
  n.outAlias(0, parts[positionIn(n, 1, static_cast<int64_t>(parts.size()), 0)]);
}

void sequenceLength(NodeContext &n) {
  n.outConstant(
      0, scalarOf(DType::I64, static_cast<double>(elements(n, 0).size())));
}

void concatFromSequence(NodeContext &n) {
  SmallVector<Value> values;
  const std::vector<EntryRef> &parts = elements(n, 0);
  if (parts.empty())
    n.invalid("the sequence is empty");
  bool newAxis = n.intAttr("new_axis", 0) != 0;
  int64_t rank = static_cast<int64_t>(parts[0]->shape.size()) + newAxis;
  int64_t axis = n.axis(n.intAttr("axis", 0), rank);
  for (const EntryRef &part : parts) {
    Value value = n.importer.materialize(part);
    values.push_back(newAxis ? n.emit.unsqueeze(value, axis) : value);
  }
  n.out(0, n.emit.concat(axis, values));
}
} // namespace

void mtp::onnx::addSequenceOps(OpTable &table) {
  table["SplitToSequence"] = {splitToSequence, 11, 1, {"axis", "keepdims"}};
  table["SequenceConstruct"] = {sequenceConstruct, 11};
  table["SequenceEmpty"] = {sequenceEmpty, 11, 0, {"dtype"}};
  table["SequenceInsert"] = {sequenceInsert, 11, 2};
  table["SequenceErase"] = {sequenceErase, 11, 1};
  table["SequenceAt"] = {sequenceAt, 11, 2};
  table["SequenceLength"] = {sequenceLength, 11};
  table["ConcatFromSequence"] = {
      concatFromSequence, 11, 1, {"axis", "new_axis"}};
}
