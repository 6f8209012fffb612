// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsIndex.cpp - operators that look up by index ----------------------===//
//
// Normal forms: axes count from the front; OneHot has depth, axis, on and off;
// CumSum axis, exclusive, reverse; scatters have reduction.
//
//===----------------------------------------------------------------------===//
#include "compiler/frontend/onnx/Evaluate.h"

#include <algorithm>

namespace mtp::onnx {

namespace {

void checkIndices(const OpContext &op, size_t i) {
  if (op.type(i) != DType::I64 && op.type(i) != DType::I32)
    op.invalid(std::string("indices have type ") + mtp::name(op.type(i)));
}

/// Known indices outside of the dimension are an error of the model.
void checkRange(const OpContext &op, size_t i, int64_t extent) {
  std::shared_ptr<const Constant> known = op.value(i);
  for (int64_t k = 0; known && k < known->elements(); ++k)
    if (known->intAt(k) < -extent || known->intAt(k) >= extent)
      op.invalid("index " + std::to_string(known->intAt(k)) + " is out of a dimension of " + std::to_string(extent));
}

void inferGather(OpContext &op) {
  checkIndices(op, 1);
  Shape data = op.shape(0), indices = op.shape(1);
  int64_t axis = op.axis(op.intAttr("axis", 0), op.rank(0));
  checkRange(op, 1, data[axis]);
  Shape result(data.begin(), data.begin() + axis);
  result.insert(result.end(), indices.begin(), indices.end());
  result.insert(result.end(), data.begin() + axis + 1, data.end());
  op.set("axis", axis);
  op.output(0, op.type(0), std::move(result));
}
void evaluateGather(EvalContext &context) {
  int64_t axis = context.node.intAttr("axis"), inner = 1;
  const Constant &data = context.in(0), &indices = context.in(1);
  for (size_t d = axis + 1; d < data.shape.size(); ++d)
    inner *= data.shape[d];
  int64_t extent = data.shape[axis], count = indices.elements();
  evaluateMove(context, [&](int64_t i) {
    int64_t index = indices.intAt(i / inner % count);
    return (i / (inner * count) * extent + (index < 0 ? index + extent : index)) * inner + i % inner;
  });
}

void inferGatherElements(OpContext &op) {
  checkIndices(op, 1);
  int64_t axis = op.axis(op.intAttr("axis", 0), op.rank(0));
  if (op.rank(1) != op.rank(0))
    op.invalid("data and indices have different ranks");
  for (int64_t d = 0; d < op.rank(0); ++d)
    if (d != axis && op.shape(1)[d] > op.shape(0)[d])
      op.invalid("indices of shape " + text(op.shape(1)) + " for data of shape " + text(op.shape(0)));
  checkRange(op, 1, op.shape(0)[axis]);
  op.set("axis", axis);
  op.output(0, op.type(0), op.shape(1));
}

void inferGatherNd(OpContext &op) {
  checkIndices(op, 1);
  Shape data = op.shape(0), indices = op.shape(1);
  int64_t batch = op.intAttr("batch_dims", 0), rank = op.rank(0);
  if (indices.empty() || batch < 0 || batch >= static_cast<int64_t>(indices.size()))
    op.invalid("batch_dims is " + std::to_string(batch) + " for indices of shape " + text(indices));
  int64_t tuple = indices.back();
  if (tuple < 1 || batch + tuple > rank)
    op.invalid("indices of shape " + text(indices) + " for data of shape " + text(data));
  for (int64_t d = 0; d < batch; ++d)
    if (data[d] != indices[d])
      op.invalid("batch dimensions of " + text(data) + " and " + text(indices) + " differ");
  Shape result(indices.begin(), indices.end() - 1);
  result.insert(result.end(), data.begin() + batch + tuple, data.end());
  op.set("batch_dims", batch);
  op.output(0, op.type(0), std::move(result));
}
void evaluateGatherNd(EvalContext &context) {
  const Constant &data = context.in(0), &indices = context.in(1);
  int64_t batch = context.node.intAttr("batch_dims"), tuple = indices.shape.back();
  std::vector<int64_t> strides = stridesOf(data.shape);
  int64_t inner = 1, batches = 1;
  for (size_t d = batch + tuple; d < data.shape.size(); ++d)
    inner *= data.shape[d];
  for (int64_t d = 0; d < batch; ++d)
    batches *= data.shape[d];
  int64_t tuples = indices.elements() / tuple, each = batches ? tuples / batches : 0;
  int64_t block = batch ? strides[batch - 1] : data.elements();
  evaluateMove(context, [&](int64_t i) {
    int64_t t = i / inner, at = each ? t / each * block : 0;
    for (int64_t k = 0; k < tuple; ++k) {
      int64_t index = indices.intAt(t * tuple + k), extent = data.shape[batch + k];
      index = std::clamp<int64_t>(index < 0 ? index + extent : index, 0, extent - 1);
      at += index * strides[batch + k];
    }
    return at + i % inner;
  });
}

void checkReduction(OpContext &op) {
  std::string reduction = op.stringAttr("reduction", "none");
  for (const char *known : {"none", "add", "mul", "max", "min"})
    if (reduction == known)
      return;
  op.unsupported("reduction = '" + reduction + "'");
}

/// True if `indices` (rows, 1) are 0, 1, .. rows - 1.
bool countsUp(const Constant &indices) {
  for (int64_t i = 0; i < indices.elements(); ++i)
    if (indices.intAt(i) != i)
      return false;
  return true;
}

void inferScatterNd(OpContext &op) {
  checkIndices(op, 1);
  checkReduction(op);
  Shape data = op.shape(0), indices = op.shape(1), updates = op.shape(2);
  if (op.type(2) != op.type(0))
    op.invalid("data and updates have different types");
  if (indices.empty() || indices.back() < 1 || indices.back() > op.rank(0))
    op.invalid("indices of shape " + text(indices) + " for data of shape " + text(data));
  Shape wanted(indices.begin(), indices.end() - 1);
  wanted.insert(wanted.end(), data.begin() + indices.back(), data.end());
  if (updates != wanted)
    op.invalid("updates have shape " + text(updates) + ", not " + text(wanted));
  // All rows in order overwritten: exporters write a slice assignment so.
  if (op.stringAttr("reduction", "none") == "none" && updates == data && indices.back() == 1)
    if (std::shared_ptr<const Constant> known = op.value(1); known && countsUp(*known))
      return op.alias(0, op.node.inputs[2]);
  op.output(0, op.type(0), std::move(data));
}
void inferScatterElements(OpContext &op) {
  checkIndices(op, 1);
  checkReduction(op);
  int64_t axis = op.axis(op.intAttr("axis", 0), op.rank(0));
  if (op.type(2) != op.type(0) || op.shape(1) != op.shape(2) || op.rank(1) != op.rank(0))
    op.invalid("data " + text(op.shape(0)) + ", indices " + text(op.shape(1)) + " and updates " + text(op.shape(2)) +
               " do not fit");
  checkRange(op, 1, op.shape(0)[axis]);
  op.set("axis", axis);
  op.output(0, op.type(0), op.shape(0));
}

void inferOneHot(OpContext &op) {
  auto depth = op.take(1, "the depth");
  if (depth->elements() != 1 || op.rank(2) != 1 || op.shape(2)[0] != 2)
    op.invalid("depth or values have a wrong shape");
  auto values = op.take(2, "the values");
  int64_t size = static_cast<int64_t>(depth->numberAt(0));
  Shape shape = op.shape(0);
  int64_t axis = op.axis(op.intAttr("axis", -1), op.rank(0) + 1);
  if (size < 0 || (op.type(0) != DType::I64 && op.type(0) != DType::I32))
    op.unsupported("indices that are not integers");
  shape.insert(shape.begin() + axis, size);
  op.set("axis", axis);
  op.set("off", values->numberAt(0));
  op.set("on", values->numberAt(1));
  op.output(0, values->type, std::move(shape));
}

void inferNonZero(OpContext &op) {
  std::shared_ptr<const Constant> known = op.value(0);
  if (!known)
    op.unsupported("the shape of the result depends on data");
  std::vector<int64_t> found;
  for (int64_t i = 0; i < known->elements(); ++i)
    if (known->numberAt(i) != 0)
      found.push_back(i);
  std::vector<int64_t> strides = stridesOf(known->shape);
  Constant result;
  for (size_t d = 0; d < strides.size(); ++d)
    for (int64_t i : found)
      result.ints.push_back(i / strides[d] % known->shape[d]);
  result.shape = {static_cast<int64_t>(strides.size()), static_cast<int64_t>(found.size())};
  op.constant(0, std::move(result));
}

void inferCumSum(OpContext &op) {
  std::vector<int64_t> axis = op.takeInts(1, "the axis");
  if (axis.size() != 1)
    op.invalid("the axis is not one number");
  op.set("axis", op.axis(axis[0], op.rank(0)));
  op.output(0, op.type(0), op.shape(0));
}
void evaluateCumSum(EvalContext &context) {
  Constant &result = context.out();
  const Constant &x = context.in(0);
  int64_t axis = context.node.intAttr("axis"), extent = x.shape[axis], stride = stridesOf(x.shape)[axis];
  bool exclusive = context.node.intAttr("exclusive"), reverse = context.node.intAttr("reverse");
  for (int64_t line = 0, n = extent ? x.elements() / extent : 0; line < n; ++line) {
    int64_t base = line / stride * stride * extent + line % stride;
    double sum = 0;
    int64_t count = 0;
    for (int64_t k = 0; k < extent; ++k) {
      int64_t at = base + (reverse ? extent - 1 - k : k) * stride;
      double next = x.holdsFloats() ? roundTo(sum + x.floatAt(at), x.type) : 0;
      int64_t nextCount = x.holdsFloats() ? 0 : static_cast<int64_t>(static_cast<uint64_t>(count) + static_cast<uint64_t>(x.intAt(at)));
      if (x.holdsFloats())
        result.floats[at] = exclusive ? sum : next;
      else
        result.ints[at] = exclusive ? count : nextCount;
      sum = next;
      count = nextCount;
    }
  }
}

void inferTopK(OpContext &op) {
  std::vector<int64_t> k = op.takeInts(1, "k");
  Shape shape = op.shape(0);
  int64_t axis = op.axis(op.intAttr("axis", -1), op.rank(0));
  if (k.size() != 1 || k[0] < 0 || k[0] > shape[axis])
    op.invalid("k is " + text(k) + " for a dimension of " + std::to_string(shape[axis]));
  shape[axis] = k[0];
  op.set("axis", axis);
  DType type = op.type(0);
  op.output(0, type, shape);
  op.output(1, DType::I64, std::move(shape));
}

void inferArg(OpContext &op) {
  Shape shape = op.shape(0);
  int64_t axis = op.axis(op.intAttr("axis", 0), op.rank(0)), keep = op.intAttr("keepdims", 1);
  if (shape[axis] == 0)
    op.invalid("the dimension is empty");
  if (keep)
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + axis);
  op.set("axis", axis);
  op.output(0, DType::I64, std::move(shape));
}

} // namespace

void addIndexRules(OpTable &table) {
  table["Gather"] = {1, 2, 2, 1, {"axis"}, inferGather, evaluateGather};
  table["GatherElements"] = {11, 2, 2, 1, {"axis"}, inferGatherElements};
  table["GatherND"] = {11, 2, 2, 1, {"batch_dims"}, inferGatherNd, evaluateGatherNd};
  table["ScatterND"] = {11, 3, 3, 1, {"reduction"}, inferScatterNd};
  table["ScatterElements"] = {11, 3, 3, 1, {"axis", "reduction"}, inferScatterElements};
  table["OneHot"] = {9, 3, 3, 1, {"axis"}, inferOneHot};
  table["NonZero"] = {9, 1, 1, 1, {}, inferNonZero};
  table["CumSum"] = {11, 2, 2, 1, {"exclusive", "reverse"}, inferCumSum, evaluateCumSum};
  table["TopK"] = {10, 2, 2, 2, {"axis", "largest", "sorted"}, inferTopK};
  table["ArgMax"] = {1, 1, 1, 1, {"axis", "keepdims", "select_last_index"}, inferArg};
  table["ArgMin"] = {1, 1, 1, 1, {"axis", "keepdims", "select_last_index"}, inferArg};
}

} // namespace mtp::onnx
