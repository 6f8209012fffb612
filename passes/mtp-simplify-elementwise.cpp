// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-simplify-elementwise.cpp - identities and conversions ----------===//

#include "passes/mtp-simplify-patterns.h"

using namespace mlir;
using namespace mtp;

namespace {

/// broadcast to the same type -> x.
struct BroadcastToSame : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInput().getType() != op.getType())
      return failure();
    rewriter.replaceOp(op, op.getInput());
    return success();
  }
};

/// The numpy broadcast of all operands, but with `replaced` for one of them.
SmallVector<int64_t> broadcastShape(Operation *op, unsigned index,
                                    Value replaced) {
  SmallVector<int64_t> shape;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    ArrayRef<int64_t> other = shapeOf(i == index ? replaced : operand);
    if (other.size() > shape.size())
      shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (size_t d = 0; d < other.size(); ++d)
      if (other[d] != 1)
        shape[shape.size() - other.size() + d] = other[d];
  }
  return shape;
}

/// An explicit broadcast into an elementwise op that broadcasts by itself.
struct BroadcastIntoElementwise : RewritePattern {
  explicit BroadcastIntoElementwise(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!op->hasTrait<ElementwiseTrait>() || op->getNumOperands() < 2)
      return failure();
    for (OpOperand &operand : op->getOpOperands()) {
      auto broadcast = operand.get().getDefiningOp<BroadcastOp>();
      if (!broadcast)
        continue;
      SmallVector<int64_t> shape =
          broadcastShape(op, operand.getOperandNumber(), broadcast.getInput());
      if (ArrayRef<int64_t>(shape) != shapeOf(op->getResult(0)))
        continue;
      rewriter.modifyOpInPlace(op, [&] { operand.set(broadcast.getInput()); });
      return success();
    }
    return failure();
  }
};

/// True if `value` is a splat of the number `number`.
bool isSplat(Value value, double number) {
  SplatElementsAttr splat = splatOf(value);
  if (!splat)
    return false;
  if (isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().convertToDouble() == number;
  return splat.getElementType().isSignlessInteger() &&
         !splat.getElementType().isInteger(1) &&
         splat.getSplatValue<APInt>().getSExtValue() == number;
}

/// x + 0, x - 0, x * 1, x / 1 -> x, where the constant does not broadcast x.
template <typename Op> struct NeutralOperand : OpRewritePattern<Op> {
  NeutralOperand(MLIRContext *context, double neutral, bool commutes)
      : OpRewritePattern<Op>(context), neutral(neutral), commutes(commutes) {}
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    for (bool right : {true, false}) {
      Value x = op->getOperand(!right);
      if ((right || commutes) && x.getType() == op.getType() &&
          isSplat(op->getOperand(right), neutral)) {
        rewriter.replaceOp(op, x);
        return success();
      }
    }
    return failure();
  }
  double neutral;
  bool commutes;
};

/// select by a constant -> the branch, if it has the result's type.
struct SelectByConstant : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op,
                                PatternRewriter &rewriter) const override {
    SplatElementsAttr splat = splatOf(op.getCondition());
    if (!splat)
      return failure();
    Value branch = splat.getSplatValue<APInt>().isZero() ? op.getOnFalse()
                                                         : op.getOnTrue();
    if (branch.getType() == op.getType())
      rewriter.replaceOp(op, branch);
    else
      rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), branch);
    return success();
  }
};

/// True if every value of `from` has its own value in `to`.
bool isLossless(Type from, Type to) {
  if (from.isInteger(1))
    return true;
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  if (fromFloat)
    return toFloat &&
           fromFloat.getFPMantissaWidth() <= toFloat.getFPMantissaWidth() &&
           (toFloat.isF64() || toFloat.isF32() || from == to);
  if (!from.isSignlessInteger())
    return false;
  unsigned bits = from.getIntOrFloatBitWidth();
  return toFloat ? bits < toFloat.getFPMantissaWidth()
                 : to.isSignlessInteger() && bits <= to.getIntOrFloatBitWidth();
}

/// convert to the same type -> x; a conversion after a lossless one -> one.
struct ConvertOfConvert : OpRewritePattern<ConvertOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInput().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<ConvertOp>();
    if (!inner || !isLossless(tensorType(inner.getInput()).getElementType(),
                              tensorType(op.getInput()).getElementType()))
      return failure();
    rewriter.replaceOpWithNewOp<ConvertOp>(op, op.getType(), inner.getInput());
    return success();
  }
};

} // namespace

void mtp::populateElementwisePatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<BroadcastToSame, BroadcastIntoElementwise, SelectByConstant,
               ConvertOfConvert>(context);
  patterns.add<NeutralOperand<AddOp>>(context, 0, true);
  patterns.add<NeutralOperand<SubOp>>(context, 0, false);
  patterns.add<NeutralOperand<MulOp>>(context, 1, true);
  patterns.add<NeutralOperand<DivOp>>(context, 1, false);
}
