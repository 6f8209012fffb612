// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RaiseRotary.cpp - rotary position embedding ------------------------===//
//
//   x · cos + concat(-x[.., d/2:], x[.., :d/2]) · sin
//
// where both halves of cos and sin are equal.
//
//===----------------------------------------------------------------------===//

#include "passes/raise/Match.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::raise;

namespace {
/// Half of a table whose last dimension repeats itself, or null. Rebuilds the
/// elementwise chain on the half.
Value firstHalf(PatternRewriter &rewriter, Location loc, Value value,
                int64_t half) {
  auto type = typeOf(value);
  Operation *op = value.getDefiningOp();
  if (!op || type.getRank() < 1 || type.getShape().back() != 2 * half)
    return {};
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = half;
  auto halfType = RankedTensorType::get(shape, type.getElementType());
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    bool repeats = concat.getInputs().size() == 2 &&
                   concat.getInputs()[0] == concat.getInputs()[1] &&
                   static_cast<int64_t>(concat.getDim()) == type.getRank() - 1;
    return repeats ? concat.getInputs()[0] : Value();
  }
  if (isa<CosOp, SinOp, ConvertOp>(op)) {
    Value input = firstHalf(rewriter, loc, op->getOperand(0), half);
    if (!input)
      return {};
    OperationState state(loc, op->getName(), input, halfType);
    return rewriter.create(state)->getResult(0);
  }
  if (isa<ReshapeOp>(
          op)) { // size-1 dimensions in front of an unchanged last one
    Value input = firstHalf(rewriter, loc, op->getOperand(0), half);
    return input ? ReshapeOp::create(rewriter, loc, halfType, input) : Value();
  }
  if (auto mul = dyn_cast<MulOp>(op)) {
    bool right = splatValue(mul.getRhs()).has_value();
    if (!right && !splatValue(mul.getLhs()))
      return {};
    Value table = right ? mul.getLhs() : mul.getRhs(),
          factor = right ? mul.getRhs() : mul.getLhs();
    if (typeOf(factor).getNumElements() != 1 || splatValue(factor) != 1.0)
      return {};
    return firstHalf(rewriter, loc, table, half);
  }
  return {};
}

/// `x` if `value` is concat(-x[half:], x[:half]) over the last dimension.
Value matchRotateHalf(Value value) {
  auto concat = value.getDefiningOp<ConcatOp>();
  if (!concat || concat.getInputs().size() != 2)
    return {};
  int64_t last = typeOf(value).getRank() - 1,
          half = typeOf(value).getShape().back() / 2;
  auto neg = concat.getInputs()[0].getDefiningOp<NegOp>();
  auto high =
      neg ? neg.getInput().getDefiningOp<StridedSliceOp>() : StridedSliceOp();
  auto low = concat.getInputs()[1].getDefiningOp<StridedSliceOp>();
  auto is = [&](StridedSliceOp slice, int64_t start) {
    return static_cast<int64_t>(slice.getDim()) == last &&
           static_cast<int64_t>(slice.getStart()) == start &&
           static_cast<int64_t>(slice.getStep()) == 1 &&
           typeOf(slice.getResult()).getShape().back() == half;
  };
  bool fits = static_cast<int64_t>(concat.getDim()) == last && high && low &&
              high.getInput() == low.getInput() && is(high, half) &&
              is(low, 0) && high.getInput().getType() == value.getType();
  return fits ? low.getInput() : Value();
}

struct RaiseRotary : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [plain, rotated] : {std::pair(op.getLhs(), op.getRhs()),
                                  std::pair(op.getRhs(), op.getLhs())}) {
      auto byCos = plain.getDefiningOp<MulOp>(),
           bySin = rotated.getDefiningOp<MulOp>();
      if (!byCos || !bySin)
        continue;
      for (auto [half, sin] : {std::pair(bySin.getLhs(), bySin.getRhs()),
                               std::pair(bySin.getRhs(), bySin.getLhs())}) {
        Value x = matchRotateHalf(half);
        if (!x || x.getType() != op.getType() ||
            (byCos.getLhs() != x && byCos.getRhs() != x))
          continue;
        Value cos = byCos.getLhs() == x ? byCos.getRhs() : byCos.getLhs();
        int64_t width = typeOf(x).getShape().back() / 2;
        Value halfCos = firstHalf(rewriter, op.getLoc(), cos, width);
        Value halfSin =
            halfCos ? firstHalf(rewriter, op.getLoc(), sin, width) : Value();
        if (!halfSin ||
            typeOf(halfCos).getShape() != typeOf(halfSin).getShape())
          return failure();
        rewriter.replaceOpWithNewOp<RotaryOp>(op, op.getType(), x, halfCos,
                                              halfSin, /*interleaved=*/false);
        return success();
      }
    }
    return failure();
  }
};
} // namespace

void raise::populateRotaryPatterns(RewritePatternSet &patterns) {
  patterns.add<RaiseRotary>(patterns.getContext());
}
