// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-simplify-indices.cpp - lookups whose indices are known ---------===//
//
// Exporters index a mask of padding with the number of each row and column:
//
//   gather_nd mask[(b, s) for all b, s]            ->   reshape mask
//   gather (reshape mask)[12 b + s for all b, s]   ->   reshape mask
//
// A reshape keeps a dimension split; a lookup in it would need the whole.
//
//===----------------------------------------------------------------------===//

#include "passes/mtp-simplify-patterns.h"

#include "llvm/Support/MemoryBuffer.h"

#include <numeric>

using namespace mlir;
using namespace mtp;

namespace {

using Integers = std::optional<SmallVector<int64_t>>;

/// Above, indices are not looked at.
constexpr int64_t kMostIndices = int64_t(1) << 16;
constexpr int kDeepest = 16;

Integers knownIntegers(Value value, int depth = 0);

/// An initializer of 64-bit integers, as it lies in its file.
Integers storedIntegers(ParameterOp op) {
  auto initializer = SymbolTable::lookupNearestSymbolFrom<InitializerOp>(
      op, op.getSourceAttr());
  int64_t count = tensorType(op.getResult()).getNumElements();
  if (!initializer || !op.getRecipe().empty() || !initializer.getFile() ||
      !cast<ShapedType>(initializer.getType()).getElementType().isInteger(64) ||
      initializer.getBytes() != count * 8)
    return std::nullopt;
  auto bytes = llvm::MemoryBuffer::getFileSlice(*initializer.getFile(),
                                                *initializer.getBytes(),
                                                *initializer.getOffset());
  if (!bytes || (*bytes)->getBufferSize() != size_t(count) * 8)
    return std::nullopt;
  SmallVector<int64_t> values(count);
  std::memcpy(values.data(), (*bytes)->getBufferStart(), size_t(count) * 8);
  return values;
}

/// Visits the elements of `shape` in order with their indices.
template <typename Visit> void forEachIndex(ArrayRef<int64_t> shape, Visit f) {
  SmallVector<int64_t> index(shape.size(), 0);
  int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t(1),
                                  std::multiplies<>());
  for (int64_t i = 0; i < count; ++i) {
    f(ArrayRef(index));
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

/// The element of a tensor of `shape`, broadcast from the right, at `index`.
int64_t positionOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> index) {
  int64_t position = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    position = position * shape[dim] +
               (shape[dim] == 1 ? 0 : index[index.size() - shape.size() + dim]);
  return position;
}

Integers combined(Operation *op, int depth) {
  Integers a = knownIntegers(op->getOperand(0), depth),
           b = knownIntegers(op->getOperand(1), depth);
  if (!a || !b)
    return std::nullopt;
  SmallVector<int64_t> values;
  forEachIndex(shapeOf(op->getResult(0)), [&](ArrayRef<int64_t> index) {
    auto x = uint64_t((*a)[positionOf(shapeOf(op->getOperand(0)), index)]);
    auto y = uint64_t((*b)[positionOf(shapeOf(op->getOperand(1)), index)]);
    values.push_back(int64_t(isa<AddOp>(op)   ? x + y
                             : isa<SubOp>(op) ? x - y
                                              : x * y));
  });
  return values;
}

Integers spread(BroadcastOp op, int depth) {
  Integers known = knownIntegers(op.getInput(), depth);
  if (!known)
    return std::nullopt;
  SmallVector<int64_t> values;
  forEachIndex(shapeOf(op.getResult()), [&](ArrayRef<int64_t> index) {
    values.push_back((*known)[positionOf(shapeOf(op.getInput()), index)]);
  });
  return values;
}

Integers joined(ConcatOp op, int depth) {
  SmallVector<SmallVector<int64_t>> parts;
  for (Value input : op.getInputs()) {
    Integers part = knownIntegers(input, depth);
    if (!part)
      return std::nullopt;
    parts.push_back(std::move(*part));
  }
  SmallVector<int64_t> values;
  int64_t dim = op.getDim();
  forEachIndex(shapeOf(op.getResult()), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at(index);
    size_t part = 0;
    while (at[dim] >= shapeOf(op.getInputs()[part])[dim])
      at[dim] -= shapeOf(op.getInputs()[part++])[dim];
    values.push_back(
        parts[part][positionOf(shapeOf(op.getInputs()[part]), at)]);
  });
  return values;
}

/// The elements of `value` in order, if the graph alone decides them.
Integers knownIntegers(Value value, int depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > kDeepest ||
      !tensorType(value).getElementType().isInteger(64) ||
      tensorType(value).getNumElements() > kMostIndices)
    return std::nullopt;
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    if (!elements)
      return std::nullopt;
    return SmallVector<int64_t>(elements.value_begin<int64_t>(),
                                elements.value_end<int64_t>());
  }
  if (auto parameter = dyn_cast<ParameterOp>(op))
    return storedIntegers(parameter);
  if (auto iota = dyn_cast<IotaOp>(op)) {
    SmallVector<int64_t> values;
    forEachIndex(shapeOf(value), [&](ArrayRef<int64_t> index) {
      values.push_back(index[iota.getDim()]);
    });
    return values;
  }
  if (isa<ReshapeOp>(op))
    return knownIntegers(op->getOperand(0), depth + 1);
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return spread(broadcast, depth + 1);
  if (auto concat = dyn_cast<ConcatOp>(op))
    return joined(concat, depth + 1);
  return isa<AddOp, SubOp, MulOp>(op) ? combined(op, depth + 1) : std::nullopt;
}

/// True if the tuples of `indices`, into dimensions of these extents, visit all
/// of their elements once, in order.
bool isInOrder(Value indices, ArrayRef<int64_t> extents) {
  int64_t all = std::accumulate(extents.begin(), extents.end(), int64_t(1),
                                std::multiplies<>());
  auto tuple = int64_t(extents.size());
  if (tensorType(indices).getNumElements() != all * tuple)
    return false;
  Integers known = knownIntegers(indices);
  for (int64_t i = 0; known && i < all; ++i) {
    int64_t position = 0;
    for (int64_t dim = 0; dim < tuple; ++dim) {
      int64_t index = (*known)[i * tuple + dim];
      index += index < 0 ? extents[dim] : 0;
      if (index < 0 || index >= extents[dim])
        return false;
      position = position * extents[dim] + index;
    }
    if (position != i)
      return false;
  }
  return known.has_value();
}

/// gather of all rows in order -> reshape. A weight stays looked up: that tells
/// how it is used.
struct GatherInOrder : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &rewriter) const override {
    Value data = op.getData();
    if (data.getDefiningOp<ParameterOp>() ||
        !isInOrder(op.getIndices(), shapeOf(data)[op.getDim()]))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), data);
    return success();
  }
};

/// gather_nd of all elements in order -> reshape.
struct GatherNdInOrder : OpRewritePattern<GatherNdOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherNdOp op,
                                PatternRewriter &rewriter) const override {
    Value data = op.getData();
    if (op.getBatchDims() != 0 || data.getDefiningOp<ParameterOp>() ||
        !isInOrder(op.getIndices(),
                   shapeOf(data).take_front(shapeOf(op.getIndices()).back())))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), data);
    return success();
  }
};

} // namespace

void mtp::populateIndexPatterns(RewritePatternSet &patterns) {
  patterns.add<GatherInOrder, GatherNdInOrder>(patterns.getContext());
}
