// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-simplify-slices.cpp - fused weights, split by meaning ----------===//
//
// Exporters store several weights in one (query, key and value; gate and up)
// and slice the product. Cut into equal blocks such a weight would mix meanings
// on every rank. So the slices move up, one op at a time, until they are slices
// of weights:
//
//   y = x W + b; q = y[:h], k = y[h:]   ->   q = x W[:h] + b[:h], k = x W[h:] +
//   b[h:]
//
// An op is split only if all its uses are disjoint slices of one dimension and
// a product with a weight stands above it.
//
//===----------------------------------------------------------------------===//

#include "passes/mtp-simplify-patterns.h"

using namespace mlir;
using namespace mtp;

namespace {

/// The whole dimension -> x; slice(slice(x)) -> slice(x).
struct SliceOfSlice : OpRewritePattern<StridedSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(StridedSliceOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInput().getType() == op.getType() && op.getStep() == 1) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<StridedSliceOp>();
    if (!inner || inner.getDim() != op.getDim() || inner.getStep() != 1 ||
        op.getStep() != 1)
      return failure();
    rewriter.replaceOpWithNewOp<StridedSliceOp>(
        op, op.getType(), inner.getInput(), op.getDim(),
        inner.getStart() + op.getStart(), 1);
    return success();
  }
};

/// A slice inside of one operand of a concat -> a slice of that operand.
struct SliceOfConcat : OpRewritePattern<StridedSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(StridedSliceOp op,
                                PatternRewriter &rewriter) const override {
    auto concat = op.getInput().getDefiningOp<ConcatOp>();
    if (!concat || concat.getDim() != op.getDim() || op.getStep() != 1)
      return failure();
    int64_t dim = op.getDim(), start = op.getStart(),
            size = shapeOf(op.getResult())[dim];
    for (Value input : concat.getInputs()) {
      int64_t extent = shapeOf(input)[dim];
      if (start < extent && start + size <= extent) {
        rewriter.replaceOpWithNewOp<StridedSliceOp>(op, op.getType(), input,
                                                    dim, start, 1);
        return success();
      }
      if (start < extent)
        return failure();
      start -= extent;
    }
    return failure();
  }
};

/// gather by one constant index -> a slice of size 1, reshaped.
struct GatherByConstant : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &rewriter) const override {
    auto constant = op.getIndices().getDefiningOp<ConstantOp>();
    auto value =
        constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
    if (!value || value.getNumElements() != 1)
      return failure();
    int64_t dim = op.getDim(), extent = shapeOf(op.getData())[dim];
    int64_t index = (*value.value_begin<APInt>()).getSExtValue();
    index += index < 0 ? extent : 0;
    if (index < 0 || index >= extent)
      return failure();
    SmallVector<int64_t> shape(shapeOf(op.getData()));
    shape[dim] = 1;
    auto type =
        RankedTensorType::get(shape, tensorType(op.getData()).getElementType());
    Value slice = StridedSliceOp::create(rewriter, op.getLoc(), type,
                                         op.getData(), dim, index, 1);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), slice);
    return success();
  }
};

/// If all uses of `value` are disjoint slices of one dimension, that dimension;
/// else -1.
int64_t slicedDim(Value value) {
  int64_t dim = -1;
  SmallVector<std::pair<int64_t, int64_t>> parts;
  for (Operation *user : value.getUsers()) {
    auto slice = dyn_cast<StridedSliceOp>(user);
    if (!slice || slice.getStep() != 1 ||
        (dim >= 0 && static_cast<int64_t>(slice.getDim()) != dim))
      return -1;
    dim = slice.getDim();
    parts.push_back(
        {slice.getStart(), slice.getStart() + shapeOf(slice.getResult())[dim]});
  }
  llvm::sort(parts);
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].first < parts[i - 1].second)
      return -1;
  return dim;
}

/// For a reshape that splits a dimension so that `dim` of the result is the
/// major part of it: the source dimension and how many of its elements one
/// element of `dim` covers. (2,8,24) -> (2,8,3,4,2), dim 2: source 2, covers 8.
struct MajorPart {
  int64_t source, covers;
};
std::optional<MajorPart> majorPart(ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                                   int64_t dim) {
  int64_t before = 1, source = 0, passed = 1, covers = 1;
  for (int64_t extent : to.take_front(dim))
    before *= extent;
  while (source < static_cast<int64_t>(from.size()) &&
         (passed < before || from[source] == 1))
    passed *= from[source++];
  if (source == static_cast<int64_t>(from.size()) || passed != before ||
      from[source] % to[dim])
    return std::nullopt;
  covers = from[source] / to[dim];
  int64_t minor = 1;
  for (int64_t extent : to.drop_front(dim + 1)) {
    if (minor == covers)
      break;
    minor *= extent;
  }
  return minor == covers ? std::optional<MajorPart>({source, covers})
                         : std::nullopt;
}

/// The dimension of `operand` that moves with dimension `dim` of the result, or
/// -1 if the operand is broadcast there.
int64_t operandDim(Value operand, Value result, int64_t dim) {
  int64_t right = tensorType(result).getRank() - 1 - dim,
          rank = tensorType(operand).getRank();
  return right < rank &&
                 shapeOf(operand)[rank - 1 - right] == shapeOf(result)[dim]
             ? rank - 1 - right
             : -1;
}

/// The dimension of the data that stands in dimension `dim` of what is looked
/// up; nothing for a dimension of the indices.
std::optional<int64_t> lookedUpDim(GatherNdOp op, int64_t dim) {
  int64_t outer = tensorType(op.getIndices()).getRank() - 1;
  if (op.getBatchDims() != 0 || dim < outer)
    return std::nullopt;
  return dim - outer + shapeOf(op.getIndices()).back();
}

/// A weight, or the weights of the experts that were chosen.
bool isWeight(Value value) {
  if (auto look = value.getDefiningOp<GatherNdOp>())
    value = look.getData();
  return bool(value.getDefiningOp<ParameterOp>());
}

/// The operand of `product` that has dimension `dim` of the result, and where.
std::pair<unsigned, int64_t> factorOf(MatMulOp product, int64_t dim) {
  int64_t rank = tensorType(product.getResult()).getRank();
  bool left = dim == rank - 2;
  bool transposed =
      left ? product.getTransposeLhs() : product.getTransposeRhs();
  return {left ? 0 : 1,
          tensorType(product->getOperand(left ? 0 : 1)).getRank() -
              (left == transposed ? 1 : 2)};
}

/// True if slices of `dim` of `value` can move up to a product with a weight.
bool comesFromProduct(Value value, int64_t dim) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto product = dyn_cast<MatMulOp>(op)) {
    int64_t rank = tensorType(value).getRank();
    if (tensorType(product.getLhs()).getRank() < 2 ||
        tensorType(product.getRhs()).getRank() < 2 || dim < rank - 2)
      return false;
    auto [operand, at] = factorOf(product, dim);
    Value factor = product->getOperand(operand);
    if (auto look = factor.getDefiningOp<GatherNdOp>())
      return isWeight(factor) && lookedUpDim(look, at);
    return factor.getDefiningOp<ParameterOp>() != nullptr;
  }
  if (auto look = dyn_cast<GatherNdOp>(op))
    return isWeight(value) && lookedUpDim(look, dim);
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return comesFromProduct(transpose.getInput(), transpose.getPerm()[dim]);
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    auto part = majorPart(shapeOf(reshape.getInput()), shapeOf(value), dim);
    return part && comesFromProduct(reshape.getInput(), part->source);
  }
  return op->hasTrait<ElementwiseTrait>() &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           int64_t of = operandDim(operand, value, dim);
           return of >= 0 && comesFromProduct(operand, of);
         });
}

Value sliceOf(PatternRewriter &rewriter, Location loc, Value value, int64_t dim,
              int64_t start, int64_t size) {
  SmallVector<int64_t> shape(shapeOf(value));
  shape[dim] = size;
  auto type = RankedTensorType::get(shape, tensorType(value).getElementType());
  return StridedSliceOp::create(rewriter, loc, type, value, dim, start, 1);
}

/// Operands of `op` for the part [start, start + size) of its result's `dim`.
SmallVector<Value> narrowOperands(PatternRewriter &rewriter, Operation *op,
                                  int64_t dim, int64_t start, int64_t size) {
  SmallVector<Value> operands(op->getOperands());
  Location loc = op->getLoc();
  if (auto product = dyn_cast<MatMulOp>(op)) {
    auto [operand, at] = factorOf(product, dim);
    operands[operand] =
        sliceOf(rewriter, loc, operands[operand], at, start, size);
  } else if (auto look = dyn_cast<GatherNdOp>(op)) {
    operands[0] = sliceOf(rewriter, loc, operands[0], *lookedUpDim(look, dim),
                          start, size);
  } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
    operands[0] = sliceOf(rewriter, loc, operands[0], transpose.getPerm()[dim],
                          start, size);
  } else if (isa<ReshapeOp>(op)) {
    auto part = majorPart(shapeOf(operands[0]), shapeOf(op->getResult(0)), dim);
    operands[0] = sliceOf(rewriter, loc, operands[0], part->source,
                          start * part->covers, size * part->covers);
  } else {
    for (Value &operand : operands)
      if (int64_t of = operandDim(operand, op->getResult(0), dim); of >= 0)
        operand = sliceOf(rewriter, loc, operand, of, start, size);
  }
  return operands;
}

/// An op all of whose uses are slices -> one narrow op a slice.
struct SplitWideOp : RewritePattern {
  explicit SplitWideOp(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa<MatMulOp, GatherNdOp, TransposeOp, ReshapeOp>(op) &&
        !op->hasTrait<ElementwiseTrait>())
      return failure();
    if (op->use_empty())
      return failure();
    int64_t dim = slicedDim(op->getResult(0));
    if (dim < 0 || !comesFromProduct(op->getResult(0), dim))
      return failure();
    auto slices = llvm::map_to_vector(op->getUsers(), [](Operation *user) {
      return cast<StridedSliceOp>(user);
    });
    llvm::sort(slices, [](StridedSliceOp a, StridedSliceOp b) {
      return a.getStart() < b.getStart();
    });
    for (StridedSliceOp slice : slices) {
      int64_t size = shapeOf(slice.getResult())[dim];
      SmallVector<Value> operands =
          narrowOperands(rewriter, op, dim, slice.getStart(), size);
      Operation *narrow = rewriter.clone(*op);
      narrow->setOperands(operands);
      narrow->getResult(0).setType(slice.getType());
      rewriter.replaceOp(slice, narrow->getResults());
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void mtp::populateSlicePatterns(RewritePatternSet &patterns) {
  patterns.add<SliceOfSlice, SliceOfConcat, GatherByConstant, SplitWideOp>(
      patterns.getContext());
}
