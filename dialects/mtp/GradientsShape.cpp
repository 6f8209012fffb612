// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GradientsShape.cpp - gradients of ops that move elements -----------===//

#include "dialects/mtp/Gradient.h"
#include "dialects/mtp/RuleSupport.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::detail;
using Gradients = MutableArrayRef<Value>;
using Sizes = SmallVector<int64_t>;

static ArrayRef<int64_t> shapeOf(Value value) {
  return typeOf(value).getShape();
}

namespace {

//===----------------------------------------------------------------------===//
// Fixed moves
//===----------------------------------------------------------------------===//

LogicalResult reshapeGradient(ReshapeOp op, GradientBuilder &b, ValueRange g,
                              Gradients d) {
  if (b.wants(0u))
    d[0] = b.reshape(g[0], shapeOf(op.getInput()), op.getInput());
  return success();
}

LogicalResult transposeGradient(TransposeOp op, GradientBuilder &b,
                                ValueRange g, Gradients d) {
  Sizes inverse(op.getPerm().size());
  for (auto [dim, source] : llvm::enumerate(op.getPerm()))
    inverse[source] = dim;
  if (b.wants(0u))
    d[0] = b.transpose(g[0], inverse);
  return success();
}

LogicalResult broadcastGradient(BroadcastOp op, GradientBuilder &b,
                                ValueRange g, Gradients d) {
  if (b.wants(0u))
    d[0] = b.sumTo(g[0], op.getInput());
  return success();
}

/// Puts step - 1 zeros between elements of a dimension, each in front of a row
/// of its own. Example, step 3: a b becomes a 0 0 b.
Value spread(GradientBuilder &b, Value x, int64_t dim, int64_t step) {
  Sizes rows(shapeOf(x)), flat(rows);
  int64_t size = flat[dim];
  if (step == 1 || size < 2)
    return x;
  rows.insert(rows.begin() + dim + 1, 1);
  flat[dim] = size * step;
  Value padded = b.pad(b.reshape(x, rows), dim + 1, 0, step - 1);
  return b.slice(b.reshape(padded, flat), dim, 0, (size - 1) * step + 1);
}

LogicalResult stridedSliceGradient(StridedSliceOp op, GradientBuilder &b,
                                   ValueRange g, Gradients d) {
  if (!b.wants(0u))
    return success();
  int64_t dim = op.getDim(), start = op.getStart(), step = op.getStep();
  int64_t size = typeOf(op.getResult()).getDimSize(dim);
  Value taken = g[0];
  if (step < 0) {
    taken = b.slice(taken, dim, size - 1, size, -1);
    start += (size - 1) * step;
    step = -step;
  }
  taken = spread(b, taken, dim, step);
  int64_t end = start + typeOf(taken).getDimSize(dim);
  d[0] = b.pad(taken, dim, start, typeOf(op.getInput()).getDimSize(dim) - end);
  return success();
}

LogicalResult concatGradient(ConcatOp op, GradientBuilder &b, ValueRange g,
                             Gradients d) {
  int64_t start = 0, dim = op.getDim();
  for (auto [index, input] : llvm::enumerate(op.getInputs())) {
    int64_t size = typeOf(input).getDimSize(dim);
    if (b.wants(index))
      d[index] = b.slice(g[0], dim, start, size);
    start += size;
  }
  return success();
}

LogicalResult padGradient(PadOp op, GradientBuilder &b, ValueRange g,
                          Gradients d) {
  if (!b.wants(0u))
    return success();
  Value inner = g[0];
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getInput())))
    inner = b.slice(inner, dim, op.getLow()[dim], size);
  d[0] = inner;
  return success();
}

//===----------------------------------------------------------------------===//
// Look-ups
//===----------------------------------------------------------------------===//

LogicalResult gatherGradient(GatherOp op, GradientBuilder &b, ValueRange g,
                             Gradients d) {
  if (b.wants(0u))
    d[0] = b.makeFor<GatherGradientOp>(op.getData(), op.getIndices(), g[0],
                                       op.getDimAttr());
  return success();
}

LogicalResult gatherElementsGradient(GatherElementsOp op, GradientBuilder &b,
                                     ValueRange g, Gradients d) {
  Value data = op.getData();
  if (b.wants(0u))
    d[0] = b.makeFor<ScatterElementsOp>(data, b.zerosFor(data), op.getIndices(),
                                        g[0], op.getDim(), Combine::add);
  return success();
}

/// Positions in the merged dimensions that the tuples index, without the tuple
/// dimension: for sizes (4, 3) the tuple (1, 2) is 5, as is (-3, -1).
Value mergedIndices(GradientBuilder &b, Value indices,
                    ArrayRef<int64_t> sizes) {
  int64_t tupleDim = typeOf(indices).getRank() - 1;
  Value sum;
  for (auto [k, size] : llvm::enumerate(sizes)) {
    Value index = b.reshape(b.slice(indices, tupleDim, k, 1),
                            shapeOf(indices).drop_back());
    Value negative = b.compare(Compare::lt, index, b.zero(index));
    index = b.select(negative, b.add(index, b.scalar(index, size)), index);
    sum = sum ? b.add(b.mul(sum, b.scalar(index, size)), index) : index;
  }
  return sum;
}

/// Without batch dimensions the indexed dimensions are merged into the rows of
/// a table; with them each batch has a table of its own, into which updates are
/// scattered.
LogicalResult gatherNdGradient(GatherNdOp op, GradientBuilder &b, ValueRange g,
                               Gradients d) {
  if (!b.wants(0u))
    return success();
  Value data = op.getData();
  int64_t batch = op.getBatchDims();
  ArrayRef<int64_t> shape = shapeOf(data),
                    indexShape = shapeOf(op.getIndices());
  ArrayRef<int64_t> sizes = shape.slice(batch, indexShape.back());
  Value index = mergedIndices(b, op.getIndices(), sizes);
  int64_t rows = 1, count = 1;
  for (int64_t size : sizes)
    rows *= size;
  for (int64_t size : indexShape.drop_front(batch).drop_back())
    count *= size;
  Sizes table(shape.take_front(batch));
  SmallVector<int64_t> from(llvm::to_vector(llvm::seq<int64_t>(0, batch)));
  table.push_back(rows);
  from.push_back(sizes.size() == 1 ? batch : -1);
  for (int64_t dim = batch + sizes.size(), rank = shape.size(); dim < rank;
       ++dim) {
    table.push_back(shape[dim]);
    from.push_back(dim);
  }
  Value result;
  if (batch == 0) {
    result = b.make<GatherGradientOp>(b.typed(table, data), index, g[0],
                                      uint64_t(0));
  } else {
    Sizes updates(table), column(table.size(), 1);
    updates[batch] = column[batch] = count;
    std::copy_n(shape.begin(), batch, column.begin());
    Value flat = b.reshape(g[0], updates);
    Value everywhere = b.broadcast(b.reshape(index, column), updates, flat);
    result = b.make<ScatterElementsOp>(b.typed(table, data),
                                       b.zerosFor(data, table, from),
                                       everywhere, flat, batch, Combine::add);
  }
  d[0] = b.reshape(result, shape, data);
  return success();
}

//===----------------------------------------------------------------------===//
// Writes by index
//===----------------------------------------------------------------------===//

template <typename Op> LogicalResult checkCombine(Op op) {
  Combine combine = op.getCombine();
  if (combine == Combine::none || combine == Combine::add)
    return success();
  return op.emitOpError()
         << "has no gradient where it combines by " << stringifyCombine(combine)
         << "; freeze the parameters before it, or stop the gradient there";
}

/// What is replaced has no cotangent. Of two updates of one element, which is
/// an error in the model, both would get it.
LogicalResult scatterElementsGradient(ScatterElementsOp op, GradientBuilder &b,
                                      ValueRange g, Gradients d) {
  if (failed(checkCombine(op)))
    return failure();
  Value indices = op.getIndices(), updates = op.getUpdates();
  if (b.wants(0u))
    d[0] = op.getCombine() == Combine::add
               ? g[0]
               : b.makeFor<ScatterElementsOp>(op.getData(), g[0], indices,
                                              b.zerosFor(updates), op.getDim(),
                                              Combine::none);
  if (b.wants(2u))
    d[2] = b.makeFor<GatherElementsOp>(updates, g[0], indices, op.getDim());
  return success();
}

LogicalResult scatterNdGradient(ScatterNdOp op, GradientBuilder &b,
                                ValueRange g, Gradients d) {
  if (failed(checkCombine(op)))
    return failure();
  Value indices = op.getIndices(), updates = op.getUpdates();
  if (b.wants(0u))
    d[0] = op.getCombine() == Combine::add
               ? g[0]
               : b.makeFor<ScatterNdOp>(op.getData(), g[0], indices,
                                        b.zerosFor(updates), Combine::none);
  if (b.wants(2u))
    d[2] = b.makeFor<GatherNdOp>(updates, g[0], indices, uint64_t(0));
  return success();
}

} // namespace

void mtp::detail::registerShapeGradients(MLIRContext *context) {
  attachGradient<&reshapeGradient>(context);
  attachGradient<&transposeGradient>(context);
  attachGradient<&broadcastGradient>(context);
  attachGradient<&stridedSliceGradient>(context);
  attachGradient<&concatGradient>(context);
  attachGradient<&padGradient>(context);
  attachGradient<&gatherGradient>(context);
  attachGradient<&gatherElementsGradient>(context);
  attachGradient<&gatherNdGradient>(context);
  attachGradient<&scatterElementsGradient>(context);
  attachGradient<&scatterNdGradient>(context);
}
