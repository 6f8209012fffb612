// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsIndex.cpp - operators that read and write by index --------------===//

#include "compiler/frontend/onnx/import/Importer.h"
#include "runtime/support/Checked.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

namespace {
void checkIndices(NodeContext &n, size_t i) {
  if (n.type(i) != DType::I64 && n.type(i) != DType::I32)
    n.invalid(std::string("indices are of type ") + name(n.type(i)));
}

/// One known index, or consecutive ones, into something computed: a slice.
/// Tables of weights stay look-ups, so that they can be split by rows.
bool gatherAsSlice(NodeContext &n, int64_t axis) {
  auto indices = n.constant(1);
  if (!indices || n.in(0)->weight || indices->elements() == 0 || n.rank(1) > 1)
    return false;
  int64_t extent = n.shape(0)[axis], count = indices->elements();
  auto at = [&](int64_t i) {
    return indices->intAt(i) < 0 ? indices->intAt(i) + extent
                                 : indices->intAt(i);
  };
  for (int64_t i = 0; i < count; ++i) {
    if (at(i) < 0 || at(i) >= extent)
      n.invalid("index " + std::to_string(indices->intAt(i)) +
                " lies outside of dimension " + std::to_string(axis) +
                " of size " + std::to_string(extent));
    if (at(i) != at(0) + i)
      return false;
  }
  Value x = n.emit.slice(n.value(0), axis, at(0), count);
  if (n.rank(1) == 0) {
    Shape shape(shapeOf(x).begin(), shapeOf(x).end());
    shape.erase(shape.begin() + axis);
    x = n.emit.reshape(x, shape);
  }
  n.out(0, x);
  return true;
}

/// Nothing can be looked up where there are no elements.
void checkElements(NodeContext &n, int64_t axis) {
  if (n.shape(0)[axis] == 0 && !llvm::is_contained(n.shape(1), 0))
    n.invalid("indices of shape " + text(n.shape(1)) +
              " look up in dimension " + std::to_string(axis) +
              " of data of shape " + text(n.shape(0)));
}

void gather(NodeContext &n) {
  checkIndices(n, 1);
  int64_t axis = n.axis(n.intAttr("axis", 0), n.rank(0));
  checkElements(n, axis);
  if (!gatherAsSlice(n, axis))
    n.out(0, n.emit.gather(n.value(0), n.value(1), axis));
}

void gatherElements(NodeContext &n) {
  checkIndices(n, 1);
  Emit &e = n.emit;
  if (n.rank(0) != n.rank(1))
    n.invalid("data and indices have different ranks");
  int64_t axis = n.axis(n.intAttr("axis", 0), n.rank(0));
  checkElements(n, axis);
  for (int64_t dim = 0; dim < n.rank(0); ++dim)
    if (dim != axis && n.shape(1)[dim] > n.shape(0)[dim])
      n.invalid("indices are larger than the data in dimension " +
                std::to_string(dim));
  Value data = n.value(0);
  n.out(0, GatherElementsOp::create(e.b(), e.loc,
                                    e.type(n.shape(1), elementOf(data)), data,
                                    n.value(1), axis));
}

void gatherNd(NodeContext &n) {
  checkIndices(n, 1);
  Emit &e = n.emit;
  int64_t batch = n.intAttr("batch_dims", 0), last = n.rank(1) - 1;
  if (last < 0 || batch < 0 || batch > last || batch > n.rank(0) ||
      n.shape(1)[last] < 1 || batch + n.shape(1)[last] > n.rank(0))
    n.invalid("indices of shape " + text(n.shape(1)) +
              " do not fit data of shape " + text(n.shape(0)));
  for (int64_t dim = 0; dim < batch; ++dim)
    if (n.shape(0)[dim] != n.shape(1)[dim])
      n.invalid("batch dimensions differ");
  for (int64_t i = 0; i < n.shape(1)[last]; ++i)
    checkElements(n, batch + i);
  Shape shape(n.shape(1).begin(), n.shape(1).end() - 1);
  shape.insert(shape.end(), n.shape(0).begin() + batch + n.shape(1)[last],
               n.shape(0).end());
  Value data = n.value(0);
  n.out(0, GatherNdOp::create(e.b(), e.loc, e.type(shape, elementOf(data)),
                              data, n.value(1), batch));
}

Combine combineOf(NodeContext &n) {
  std::string reduction = n.stringAttr("reduction", "none");
  auto combine = symbolizeCombine(reduction);
  if (!combine)
    n.invalid("reduction is '" + reduction + "'");
  return *combine;
}

void scatterElements(NodeContext &n) {
  checkIndices(n, 1);
  Emit &e = n.emit;
  int64_t axis = n.axis(n.intAttr("axis", 0), n.rank(0));
  if (n.rank(1) != n.rank(0) || n.shape(1) != n.shape(2) ||
      n.type(2) != n.type(0))
    n.invalid("data, indices and updates do not fit together");
  for (int64_t dim = 0; dim < n.rank(0); ++dim)
    if (dim != axis && n.shape(1)[dim] > n.shape(0)[dim])
      n.invalid("indices are larger than the data in dimension " +
                std::to_string(dim));
  Value data = n.value(0);
  n.out(0,
        ScatterElementsOp::create(e.b(), e.loc, data.getType(), data,
                                  n.value(1), n.value(2), axis, combineOf(n)));
}

/// All rows of the data in order: dynamo's form of assigning a whole slice.
bool writesAllRows(NodeContext &n) {
  auto indices = n.constant(1);
  if (!indices || n.rank(1) != 2 || n.shape(1)[1] != 1 ||
      n.shape(1)[0] != n.shape(0)[0] || n.shape(2) != n.shape(0))
    return false;
  for (int64_t i = 0; i < indices->elements(); ++i)
    if (indices->intAt(i) != i)
      return false;
  return true;
}

void scatterNd(NodeContext &n) {
  checkIndices(n, 1);
  Emit &e = n.emit;
  if (n.type(2) != n.type(0))
    n.invalid("data and updates are of different types");
  if (n.rank(1) < 1 || n.shape(1).back() > n.rank(0))
    n.invalid("indices of shape " + text(n.shape(1)) +
              " do not fit data of shape " + text(n.shape(0)));
  Shape wanted(n.shape(1).begin(), n.shape(1).end() - 1);
  wanted.insert(wanted.end(), n.shape(0).begin() + n.shape(1).back(),
                n.shape(0).end());
  if (n.shape(2) != wanted)
    n.invalid("updates have shape " + text(n.shape(2)) + ", expected " +
              text(wanted));
  Combine combine = combineOf(n);
  if (combine == Combine::none && writesAllRows(n))
    return n.outAlias(0, n.in(2));
  Value data = n.value(0);
  n.out(0, ScatterNdOp::create(e.b(), e.loc, data.getType(), data, n.value(1),
                               n.value(2), combine));
}

/// One where the index is, zero elsewhere, along a new axis.
void oneHot(NodeContext &n) {
  Emit &e = n.emit;
  auto depthValue = n.known(1, "the depth");
  int64_t depth = static_cast<int64_t>(depthValue->numberAt(0));
  int64_t axis = n.axis(n.intAttr("axis", -1), n.rank(0) + 1);
  if (depth < 1 || n.rank(2) != 1 || n.shape(2)[0] != 2)
    n.invalid("the depth or the values are out of range");
  if (n.type(0) == DType::Bool)
    n.invalid("indices are booleans");
  Type i64 = e.b().getI64Type();
  Value index = e.convert(n.value(0), i64), zero = e.scalar(i64, 0);
  index = e.select(
      e.compare(Compare::lt, index, zero),
      e.binary<AddOp>(index, e.scalar(i64, static_cast<double>(depth))), index);
  Shape counterShape(n.rank(0) + 1, 1);
  counterShape[axis] = depth;
  Value hot = e.compare(Compare::eq, e.unsqueeze(index, axis),
                        e.iota(counterShape, axis, i64));
  Value values = n.value(2);
  Value off = e.reshape(e.slice(values, 0, 0, 1), {}),
        on = e.reshape(e.slice(values, 0, 1, 1), {});
  n.out(0, e.select(hot, on, off));
}
/// Only of what is known: the shape of the result depends on the elements.
void nonZero(NodeContext &n) {
  auto value = n.constant(0);
  if (!value)
    n.unsupported("the shape of its result depends on data");
  std::vector<int64_t> hits;
  for (int64_t i = 0; i < value->elements(); ++i)
    if (value->numberAt(i) != 0)
      hits.push_back(i);
  int64_t rank = std::max<int64_t>(1, n.rank(0)),
          count = static_cast<int64_t>(hits.size());
  Constant result;
  result.shape = {rank, count};
  result.resize();
  int64_t stride = 1;
  for (int64_t dim = rank - 1; dim >= 0; --dim) {
    int64_t extent = n.rank(0) ? n.shape(0)[dim] : 1;
    for (int64_t i = 0; i < count; ++i)
      result.ints[dim * count + i] = hits[i] / stride % extent;
    stride *= extent;
  }
  n.outConstant(0, std::move(result));
}

void compress(NodeContext &n) {
  auto condition = n.constant(1);
  if (!condition)
    n.unsupported("the shape of its result depends on data");
  Value x = n.value(0);
  int64_t axis = 0;
  if (n.hasAttr("axis"))
    axis = n.axis(n.intAttr("axis", 0), n.rank(0));
  else
    x = n.emit.reshape(x, {elementCount(n.shape(0))});
  std::vector<int64_t> picks;
  for (int64_t i = 0; i < std::min(condition->elements(), shapeOf(x)[axis]);
       ++i)
    if (condition->intAt(i))
      picks.push_back(i);
  Value indices = n.importer.materialize(
      n.importer.constantEntry(vectorOf(picks), n.node.name));
  n.out(0, n.emit.gather(x, indices, axis));
}
} // namespace

void mtp::onnx::addIndexOps(OpTable &table) {
  table["Gather"] = {gather, 1, 2, {"axis"}};
  table["GatherElements"] = {gatherElements, 11, 2, {"axis"}};
  table["GatherND"] = {gatherNd, 11, 2, {"batch_dims"}};
  table["ScatterElements"] = {scatterElements, 11, 3, {"axis", "reduction"}};
  table["ScatterND"] = {scatterNd, 11, 3, {"reduction"}};
  table["NonZero"] = {nonZero, 9};
  table["Compress"] = {compress, 9, 2, {"axis"}};
  table["OneHot"] = {oneHot, 9, 3, {"axis"}};
}
