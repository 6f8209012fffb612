// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsReduction.cpp - reductions and softmax ---------------------------===//
//
// Normal forms: Reduce*: axes (ascending, not empty), keepdims. Softmax: axis.
//
//===----------------------------------------------------------------------===//
#include "compiler/frontend/onnx/Evaluate.h"

#include <algorithm>
#include <cmath>

namespace mtp::onnx {

namespace {

void inferReduce(OpContext &op) {
  Shape from = op.shape(0), to;
  std::vector<int64_t> axes;
  if (op.has(1))
    axes = op.takeInts(1, "the axes");
  else if (auto given = op.intsAttr("axes"))
    axes = *given;
  if (axes.empty()) {
    if (op.intAttr("noop_with_empty_axes", 0)) {
      if (op.node.op != "ReduceSum" && op.node.op != "ReduceMean" && op.node.op != "ReduceMax" &&
          op.node.op != "ReduceMin" && op.node.op != "ReduceProd")
        op.unsupported("noop_with_empty_axes");
      return op.alias(0, op.node.inputs[0]);
    }
    for (int64_t i = 0; i < op.rank(0); ++i)
      axes.push_back(i);
  }
  axes = op.axes(axes, op.rank(0));
  int64_t keep = op.intAttr("keepdims", 1);
  for (size_t i = 0; i < from.size(); ++i) {
    bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!reduced || keep)
      to.push_back(reduced ? 1 : from[i]);
  }
  if ((op.node.op == "ReduceMax" || op.node.op == "ReduceMin") && elementCount(from) == 0 && elementCount(to) != 0)
    op.unsupported("the extremum of an empty dimension");
  if (op.type(0) == DType::Bool)
    op.unsupported("booleans");
  op.node.attributes.clear();
  op.set("axes", axes);
  op.set("keepdims", keep);
  op.output(0, op.type(0), std::move(to));
}

/// Folds with `combine` from `first`.
template <typename Combine> void evaluateReduce(EvalContext &context, double first, Combine combine) {
  const Constant &x = context.in(0);
  Constant &result = context.out();
  const std::vector<int64_t> &axes = context.node.intsAttr("axes");
  Shape kept = x.shape;
  for (int64_t axis : axes)
    kept[axis] = 1;
  BroadcastIndex index(kept, x.shape);
  std::vector<double> sums(static_cast<size_t>(result.elements()), first);
  std::vector<int64_t> counts(sums.size(), std::isfinite(first) ? static_cast<int64_t>(first) : first > 0 ? INT64_MAX : INT64_MIN);
  for (int64_t i = 0, n = x.elements(); i < n; ++i) {
    int64_t at = index(i);
    if (x.holdsFloats())
      sums[at] = combine(sums[at], x.floatAt(i));
    else
      counts[at] = combine(counts[at], x.intAt(i));
  }
  if (result.holdsFloats())
    result.floats = sums;
  else
    result.ints = counts;
}
void evaluateSum(EvalContext &context) {
  evaluateReduce(context, 0, [](auto a, auto b) { return static_cast<decltype(a)>(a + b); });
}
void evaluateProd(EvalContext &context) {
  evaluateReduce(context, 1, [](auto a, auto b) { return static_cast<decltype(a)>(a * b); });
}
void evaluateMax(EvalContext &context) {
  evaluateReduce(context, -INFINITY, [](auto a, auto b) { return a > b || a != a ? a : b; });
}
void evaluateMin(EvalContext &context) {
  evaluateReduce(context, INFINITY, [](auto a, auto b) { return a < b || a != a ? a : b; });
}
void evaluateMean(EvalContext &context) {
  evaluateSum(context);
  int64_t n = context.out().elements(), count = n ? context.in(0).elements() / n : 1;
  for (double &value : context.out().floats)
    value /= static_cast<double>(count);
  for (int64_t &value : context.out().ints)
    value /= count ? count : 1;
}

/// Below opset 13 the axis splits the tensor in two, and the second half is the
/// dimension.
void inferSoftmax(OpContext &op) {
  Shape shape = op.shape(0);
  if (!isFloat(op.type(0)))
    op.unsupported(std::string("type ") + mtp::name(op.type(0)));
  DType type = op.type(0);
  bool coerces = op.version() < 13;
  if (shape.empty())
    op.invalid("a scalar has no axis");
  int64_t rank = static_cast<int64_t>(shape.size());
  int64_t axis = op.axis(op.intAttr("axis", coerces ? 1 : -1), rank);
  op.node.attributes.clear();
  if (!coerces || axis == rank - 1) {
    op.set("axis", axis);
    return op.output(0, type, std::move(shape));
  }
  Shape flat(shape.begin(), shape.begin() + axis);
  flat.push_back(1);
  for (int64_t i = axis; i < rank; ++i)
    flat.back() *= shape[i];
  int value = op.emit("Reshape", {op.node.inputs[0]}, {}, type, flat);
  Attribute last;
  last.i = axis;
  value = op.emit(op.node.op, {value}, {{"axis", last}}, type, flat);
  op.node.op = "Reshape";
  op.node.inputs = {value};
  op.output(0, type, std::move(shape));
}

} // namespace

void addReductionRules(OpTable &table) {
  auto reduce = [&](const char *name, void (*evaluate)(EvalContext &)) {
    table[name] = {1, 1, 2, 1, {"axes", "keepdims", "noop_with_empty_axes"}, inferReduce, evaluate};
  };
  reduce("ReduceSum", evaluateSum);
  reduce("ReduceProd", evaluateProd);
  reduce("ReduceMax", evaluateMax);
  reduce("ReduceMin", evaluateMin);
  reduce("ReduceMean", evaluateMean);
  for (const char *name : {"ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"})
    reduce(name, nullptr);
  table["Softmax"] = {1, 1, 1, 1, {"axis"}, inferSoftmax};
  table["LogSoftmax"] = {1, 1, 1, 1, {"axis"}, inferSoftmax};
}

} // namespace mtp::onnx
