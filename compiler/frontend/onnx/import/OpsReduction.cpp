// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsReduction.cpp - reductions, softmax, selection ------------------===//

#include "compiler/frontend/onnx/import/Importer.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

namespace {
/// Axes of a reduction: an attribute before `inputSince`, then an input. None:
/// all, or, with noop_with_empty_axes, nothing at all (`noop`).
std::vector<int64_t> reductionAxes(NodeContext &n, bool &noop) {
  noop = false;
  std::vector<int64_t> axes;
  if (n.has(1))
    axes = n.ints(1, "the axes");
  else if (auto given = n.intsAttr("axes"))
    axes = *given;
  if (!axes.empty())
    return n.axes(axes, n.rank(0));
  noop = n.intAttr("noop_with_empty_axes", 0) != 0;
  for (int64_t dim = 0; dim < n.rank(0); ++dim)
    axes.push_back(dim);
  return axes;
}

enum class Reduction {
  Sum,
  Mean,
  Max,
  Min,
  Prod,
  L1,
  L2,
  SumSquare,
  LogSum,
  LogSumExp
};

/// log Σ e^x, shifted by the maximum where that is finite.
Value logSumExp(Emit &e, Value x, ArrayRef<int64_t> axes, bool keep) {
  if (llvm::is_contained(shapeOf(x), 0)) // of nothing: log 0
    return e.unary<LogOp>(e.reduce<ReduceSumOp>(e.unary<ExpOp>(x), axes, keep));
  Value maximum = e.reduce<ReduceMaxOp>(x, axes, true);
  Value shift =
      e.select(e.test<IsInfOp>(maximum), e.scalar(elementOf(x), 0), maximum);
  Value sum = e.reduce<ReduceSumOp>(e.unary<ExpOp>(e.binary<SubOp>(x, shift)),
                                    axes, true);
  Value result = e.binary<AddOp>(e.unary<LogOp>(sum), shift);
  if (keep)
    return result;
  Shape shape;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(x)))
    if (!llvm::is_contained(axes, static_cast<int64_t>(dim)))
      shape.push_back(extent);
  return e.reshape(result, shape);
}

template <Reduction kind> void reduce(NodeContext &n) {
  Emit &e = n.emit;
  Value x = n.value(0);
  bool noop, keep = n.intAttr("keepdims", 1) != 0;
  std::vector<int64_t> axes = reductionAxes(n, noop);
  bool isBool = n.type(0) == DType::Bool;
  if (isBool) // booleans: or, and
    x = e.convert(x, e.b().getI64Type());
  if (kind == Reduction::L2 || kind == Reduction::SumSquare)
    x = e.binary<MulOp>(x, x);
  if (kind == Reduction::L1)
    x = e.unary<AbsOp>(x);
  Value result;
  if (noop && kind != Reduction::LogSumExp)
    result = x;
  else if (kind == Reduction::Mean)
    result = e.mean(x, axes, keep);
  else if (kind == Reduction::Max)
    result = e.reduce<ReduceMaxOp>(x, axes, keep);
  else if (kind == Reduction::Min)
    result = e.reduce<ReduceMinOp>(x, axes, keep);
  else if (kind == Reduction::Prod)
    result = e.reduce<ReduceProdOp>(x, axes, keep);
  else if (kind == Reduction::LogSumExp)
    result = noop ? x : logSumExp(e, x, axes, keep);
  else
    result = e.reduce<ReduceSumOp>(x, axes, keep);
  if (kind == Reduction::L2)
    result = e.unary<SqrtOp>(result);
  if (kind == Reduction::LogSum)
    result = e.unary<LogOp>(result);
  // A maximum over nothing is the least integer, that is false.
  n.out(0, isBool
               ? e.compare(Compare::gt, result, e.scalar(elementOf(result), 0))
               : result);
}

template <typename Op> void arg(NodeContext &n) {
  Emit &e = n.emit;
  Value x = n.value(0);
  int64_t axis = n.axis(n.intAttr("axis", 0), n.rank(0));
  Shape shape = n.shape(0);
  shape.erase(shape.begin() + axis);
  bool last = n.intAttr("select_last_index", 0) != 0;
  Value result = Op::create(e.b(), e.loc, e.type(shape, e.b().getI64Type()), x,
                            axis, last);
  n.out(0, n.intAttr("keepdims", 1) ? e.unsqueeze(result, axis) : result);
}

/// Before opset 13 the operand is flattened to two dimensions at the axis.
template <typename Op> void softmax(NodeContext &n) {
  Emit &e = n.emit;
  Value x = n.value(0);
  int64_t rank = n.rank(0);
  if (rank == 0)
    n.unsupported("a softmax of a scalar");
  int64_t axis = n.axis(n.intAttr("axis", n.version < 13 ? 1 : -1), rank);
  if (n.version >= 13 || axis == rank - 1)
    return n.out(0, Op::create(e.b(), e.loc, x.getType(), x, axis));
  int64_t rows = 1, columns = 1;
  for (int64_t dim = 0; dim < rank; ++dim)
    (dim < axis ? rows : columns) *= n.shape(0)[dim];
  Value flat = e.reshape(x, {rows, columns});
  n.out(0, e.reshape(Op::create(e.b(), e.loc, flat.getType(), flat, 1),
                     n.shape(0)));
}

void topk(NodeContext &n) {
  Emit &e = n.emit;
  int64_t axis = n.axis(n.intAttr("axis", -1), n.rank(0));
  std::vector<int64_t> k = n.ints(1, "the number of elements");
  if (k.size() != 1 || k[0] < 0 || k[0] > n.shape(0)[axis])
    n.invalid("k is out of range");
  Shape shape = n.shape(0);
  shape[axis] = k[0];
  Value x = n.value(0);
  bool largest = n.intAttr("largest", 1) != 0;
  auto topk = TopKOp::create(e.b(), e.loc, e.type(shape, elementOf(x)),
                             e.type(shape, e.b().getI64Type()), x, axis,
                             /*smallest=*/!largest);
  n.out(0, topk.getValues());
  n.out(1, topk.getIndices());
}

void cumsum(NodeContext &n) {
  Emit &e = n.emit;
  std::vector<int64_t> axis = n.ints(1, "the axis");
  if (axis.size() != 1)
    n.invalid("one axis is expected");
  Value x = n.value(0);
  auto flag = [&](const char *name) { return n.intAttr(name, 0) != 0; };
  n.out(0, CumsumOp::create(e.b(), e.loc, x.getType(), x,
                            n.axis(axis[0], n.rank(0)), flag("exclusive"),
                            flag("reverse")));
}

void globalAveragePool(NodeContext &n) {
  std::vector<int64_t> axes;
  for (int64_t dim = 2; dim < n.rank(0); ++dim)
    axes.push_back(dim);
  n.out(0, n.emit.mean(n.value(0), axes, true));
}
} // namespace

void mtp::onnx::addReductionOps(OpTable &table) {
  const std::set<std::string> attributes{"axes", "keepdims",
                                         "noop_with_empty_axes"};
  table["ReduceSum"] = {reduce<Reduction::Sum>, 1, 1, attributes};
  table["ReduceMean"] = {reduce<Reduction::Mean>, 1, 1, attributes};
  table["ReduceMax"] = {reduce<Reduction::Max>, 1, 1, attributes};
  table["ReduceMin"] = {reduce<Reduction::Min>, 1, 1, attributes};
  table["ReduceProd"] = {reduce<Reduction::Prod>, 1, 1, attributes};
  table["ReduceL1"] = {reduce<Reduction::L1>, 1, 1, attributes};
  table["ReduceL2"] = {reduce<Reduction::L2>, 1, 1, attributes};
  table["ReduceSumSquare"] = {reduce<Reduction::SumSquare>, 1, 1, attributes};
  table["ReduceLogSum"] = {reduce<Reduction::LogSum>, 1, 1, attributes};
  table["ReduceLogSumExp"] = {reduce<Reduction::LogSumExp>, 1, 1, attributes};
  table["ArgMax"] = {
      arg<ArgMaxOp>, 1, 1, {"axis", "keepdims", "select_last_index"}};
  table["ArgMin"] = {
      arg<ArgMinOp>, 1, 1, {"axis", "keepdims", "select_last_index"}};
  table["Softmax"] = {softmax<SoftmaxOp>, 1, 1, {"axis"}};
  table["LogSoftmax"] = {softmax<LogSoftmaxOp>, 1, 1, {"axis"}};
  table["TopK"] = {topk, 10, 2, {"axis", "largest", "sorted"}};
  table["CumSum"] = {cumsum, 11, 2, {"exclusive", "reverse"}};
  table["GlobalAveragePool"] = {globalAveragePool};
}
