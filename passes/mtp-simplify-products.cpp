// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-simplify-products.cpp - products without detours ---------------===//

#include "passes/mtp-simplify-patterns.h"

using namespace mlir;
using namespace mtp;

namespace {

/// A transpose that ends in the operand's last two dimensions exchanged becomes
/// a flag of the product: matmul(x, w^T) -> matmul(x, w) {transpose_rhs}. Of a
/// permutation only the exchange is taken: what was last stays last.
struct TransposeIntoProduct : OpRewritePattern<MatMulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatMulOp op,
                                PatternRewriter &rewriter) const override {
    for (bool right : {false, true}) {
      auto transpose = op->getOperand(right).getDefiningOp<TransposeOp>();
      if (!transpose)
        continue;
      SmallVector<int64_t> perm(transpose.getPerm());
      int64_t rank = perm.size();
      if (rank < 2 || perm[rank - 2] != rank - 1)
        continue;
      std::swap(perm[rank - 2], perm[rank - 1]);
      SmallVector<int64_t> shape(shapeOf(transpose.getResult()));
      std::swap(shape[rank - 2], shape[rank - 1]);
      auto type =
          RankedTensorType::get(shape, transpose.getType().getElementType());
      Value moved = TransposeOp::create(rewriter, transpose.getLoc(), type,
                                        transpose.getInput(), perm);
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperand(right, moved);
        right ? op.setTransposeRhs(!op.getTransposeRhs())
              : op.setTransposeLhs(!op.getTransposeLhs());
      });
      return success();
    }
    return failure();
  }
};

/// The source of a reshape that merges leading dimensions and keeps the last
/// `kept`: (b,s,h) of (b,s,h) -> (b*s,h) for kept = 1. Null otherwise.
Value mergedRows(Value value, int64_t kept) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return {};
  ArrayRef<int64_t> from = shapeOf(reshape.getInput()), to = shapeOf(value);
  bool keeps = from.size() > to.size() &&
               static_cast<int64_t>(to.size()) >= kept &&
               from.take_back(kept) == to.take_back(kept);
  return keeps ? reshape.getInput() : Value();
}

/// matmul(reshape(x), w) -> reshape(matmul(x, w)) for rows that were merged.
struct ProductOfMergedRows : OpRewritePattern<MatMulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatMulOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getTransposeLhs() || shapeOf(op.getRhs()).size() != 2)
      return failure();
    Value rows = mergedRows(op.getLhs(), 1);
    if (!rows)
      return failure();
    SmallVector<int64_t> shape(shapeOf(rows));
    shape.back() = shapeOf(op.getResult()).back();
    auto type = RankedTensorType::get(
        shape, tensorType(op.getResult()).getElementType());
    Value product = MatMulOp::create(rewriter, op.getLoc(), type, rows,
                                     op.getRhs(), false, op.getTransposeRhs());
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), product);
    return success();
  }
};

/// An elementwise op on merged rows -> the reshape after it: the reshapes
/// around a linear layer meet and vanish. Other operands must be merged in the
/// same way or broadcast over the rows.
struct ElementwiseOfMergedRows : RewritePattern {
  explicit ElementwiseOfMergedRows(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!op->hasTrait<ElementwiseTrait>())
      return failure();
    Value result = op->getResult(0);
    ArrayRef<int64_t> rows;
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      if (Value merged = mergedRows(operand, 1);
          merged && shapeOf(operand) == shapeOf(result))
        rows = rows.empty() ? shapeOf(merged) : rows;
    if (rows.empty())
      return failure();
    for (Value operand : op->getOperands()) {
      Value merged = shapeOf(operand) == shapeOf(result)
                         ? mergedRows(operand, 1)
                         : Value();
      ArrayRef<int64_t> shape = shapeOf(operand);
      if (merged && shapeOf(merged) == rows)
        operands.push_back(merged);
      else if (shape.empty() || (shape.size() == 1 &&
                                 (shape[0] == rows.back() || shape[0] == 1)))
        operands.push_back(operand);
      else
        return failure();
    }
    Operation *narrow = rewriter.clone(*op);
    narrow->setOperands(operands);
    narrow->getResult(0).setType(
        RankedTensorType::get(rows, tensorType(result).getElementType()));
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, result.getType(),
                                           narrow->getResult(0));
    return success();
  }
};

/// matmul(broadcast(x), y) -> matmul(x, y) where the other operand has the
/// batch.
struct BroadcastIntoProduct : OpRewritePattern<MatMulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatMulOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> batch = shapeOf(op.getResult()).drop_back(2);
    for (bool right : {false, true}) {
      auto broadcast = op->getOperand(right).getDefiningOp<BroadcastOp>();
      if (!broadcast || shapeOf(op->getOperand(!right)).drop_back(2) != batch)
        continue;
      ArrayRef<int64_t> from = shapeOf(broadcast.getInput());
      if (from.size() < 2 ||
          from.take_back(2) != shapeOf(broadcast.getResult()).take_back(2))
        continue;
      rewriter.modifyOpInPlace(
          op, [&] { op->setOperand(right, broadcast.getInput()); });
      return success();
    }
    return failure();
  }
};

} // namespace

void mtp::populateProductPatterns(RewritePatternSet &patterns) {
  patterns.add<TransposeIntoProduct, ProductOfMergedRows,
               ElementwiseOfMergedRows, BroadcastIntoProduct>(
      patterns.getContext());
}
