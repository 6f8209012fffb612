// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RaiseAttention.cpp - scaled dot-product attention ------------------===//
//
//   matmul(softmax(cap(c · q kᵀ) + masks), v)
//
// The scale stands on q, on k, on the scores, or nowhere; masks are added or
// selected; a row that is masked throughout is NaN, is set to zero through
// is_nan, or (finite mask value) becomes the mean of all values; repeated key
// heads are used without the repetition.
//
//===----------------------------------------------------------------------===//

#include "passes/raise/Match.h"
#include "passes/raise/RaiseMask.h"

#include <cmath>

using namespace mlir;
using namespace mtp;
using namespace mtp::raise;

namespace {
/// What stands between the product of q and k and the softmax.
struct Scores {
  MatMulOp product;
  double scale = 1;
  double softcap = 0;
  MaskParts mask;
};

/// True if a product of two activations is reached through elementwise steps.
bool leadsToProduct(Value value, int depth = 12) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (isa<MatMulOp>(op))
    return true;
  if (isa<MulOp, DivOp, AddOp, TanhOp>(op))
    return leadsToProduct(op->getOperand(0), depth - 1) ||
           (op->getNumOperands() > 1 &&
            leadsToProduct(op->getOperand(1), depth - 1));
  if (auto select = dyn_cast<SelectOp>(op))
    return leadsToProduct(select.getOnTrue(), depth - 1) ||
           leadsToProduct(select.getOnFalse(), depth - 1);
  return false;
}

/// Takes the masks off, outermost first.
Value takeMasks(Value value, MaskParts &mask) {
  while (true) {
    if (auto add = value.getDefiningOp<AddOp>()) {
      bool left = leadsToProduct(add.getLhs());
      if (left == leadsToProduct(add.getRhs()))
        return {};
      mask.added.push_back(left ? add.getRhs() : add.getLhs());
      value = left ? add.getLhs() : add.getRhs();
      continue;
    }
    if (auto select = value.getDefiningOp<SelectOp>()) {
      bool keepsTrue = leadsToProduct(select.getOnTrue());
      auto masked =
          splatValue(keepsTrue ? select.getOnFalse() : select.getOnTrue());
      if (!masked)
        return {};
      mask.selected.push_back({select.getCondition(), keepsTrue, *masked});
      value = keepsTrue ? select.getOnTrue() : select.getOnFalse();
      continue;
    }
    return value;
  }
}

/// Takes scale and cap off what is left.
std::optional<Scores> matchScores(Value value) {
  Scores scores;
  value = takeMasks(value, scores.mask);
  if (!value)
    return std::nullopt;
  Product outer = flattenProduct(value);
  if (outer.factors.size() != 1)
    return std::nullopt;
  if (auto tanh = outer.factors[0].getDefiningOp<TanhOp>()) {
    // cap · tanh(s / cap)
    scores.softcap = outer.scale;
    outer = flattenProduct(tanh.getInput());
    outer.scale *= scores.softcap;
    if (outer.factors.size() != 1 || scores.softcap <= 0)
      return std::nullopt;
  }
  scores.scale = outer.scale;
  scores.product = outer.factors[0].getDefiningOp<MatMulOp>();
  if (!scores.product || scores.product.getTransposeLhs())
    return std::nullopt;
  return scores;
}

/// The unscaled value; multiplies the scale into `scale`.
Value takeScale(Value value, double &scale) {
  Product product = flattenProduct(value);
  if (product.factors.size() != 1 ||
      product.factors[0].getType() != value.getType())
    return value;
  scale *= product.scale;
  return product.factors[0];
}

/// (b,hk,t,d) if `value` (b,h,t,d) repeats each of its heads h / hk times.
Value takeRepeat(Value value) {
  auto merge = value.getDefiningOp<ReshapeOp>();
  auto repeat =
      merge ? merge.getInput().getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!repeat)
    return {};
  ArrayRef<int64_t> wide = typeOf(repeat.getResult()).getShape(),
                    narrow = typeOf(repeat.getInput()).getShape();
  ArrayRef<int64_t> merged = typeOf(value).getShape();
  if (wide.size() != 5 || narrow.size() != 5 || merged.size() != 4 ||
      narrow[2] != 1 ||
      merged != ArrayRef<int64_t>{wide[0], wide[1] * wide[2], wide[3], wide[4]})
    return {};
  for (int dim : {0, 1, 3, 4})
    if (wide[dim] != narrow[dim])
      return {};
  return repeat.getInput(); // (b,hk,1,t,d)
}

Value reshaped(PatternRewriter &rewriter, Location loc, Value value,
               ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, typeOf(value).getElementType());
  return value.getType() == type
             ? value
             : ReshapeOp::create(rewriter, loc, type, value);
}

Value swapLast(PatternRewriter &rewriter, Location loc, Value value) {
  auto type = typeOf(value);
  SmallVector<int64_t> perm =
      llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  std::swap(perm[type.getRank() - 1], perm[type.getRank() - 2]);
  SmallVector<int64_t> shape(type.getShape());
  std::swap(shape[type.getRank() - 1], shape[type.getRank() - 2]);
  return TransposeOp::create(
      rewriter, loc, RankedTensorType::get(shape, type.getElementType()), value,
      perm);
}

/// The probabilities that multiply v, seen through `select(is_nan(p), 0, p)`.
SoftmaxOp matchProbabilities(Value value, bool &zeroRows) {
  zeroRows = false;
  if (auto select = value.getDefiningOp<SelectOp>()) {
    auto isNan = select.getCondition().getDefiningOp<IsNanOp>();
    if (!isNan || isNan.getInput() != select.getOnFalse() ||
        splatValue(select.getOnTrue()) != 0.0)
      return {};
    zeroRows = true;
    value = select.getOnFalse();
  }
  auto softmax = value.getDefiningOp<SoftmaxOp>();
  if (!softmax ||
      static_cast<int64_t>(softmax.getDim()) != typeOf(value).getRank() - 1)
    return {};
  return softmax;
}

/// True if the probabilities go nowhere else, so that not storing them pays.
bool onlyFeeds(SoftmaxOp softmax, MatMulOp product) {
  return llvm::all_of(softmax->getUsers(), [&](Operation *user) {
    return user == product ||
           (isa<SelectOp, IsNanOp>(user) &&
            llvm::all_of(user->getUsers(), [&](Operation *next) {
              return next == product || isa<SelectOp>(next);
            }));
  });
}

struct RaiseAttention : OpRewritePattern<MatMulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatMulOp op,
                                PatternRewriter &rewriter) const override {
    int64_t rank = typeOf(op.getResult()).getRank();
    bool zeroRows;
    SoftmaxOp softmax = matchProbabilities(op.getLhs(), zeroRows);
    if (!softmax || op.getTransposeLhs() || rank < 3 || rank > 4 ||
        !onlyFeeds(softmax, op))
      return failure();
    auto scores = matchScores(softmax.getInput());
    if (!scores || !sameBatch(op, *scores, rank))
      return failure();
    Location loc = op.getLoc();
    Value query = takeScale(scores->product.getLhs(), scores->scale);
    Value key = takeScale(scores->product.getRhs(), scores->scale);
    if (!scores->product.getTransposeRhs())
      key = swapLast(rewriter, loc, key);
    Value value = op.getTransposeRhs() ? swapLast(rewriter, loc, op.getRhs())
                                       : op.getRhs();
    useRepeatedHeads(rewriter, loc, key, value);
    return build(op, *scores, zeroRows, query, key, value, rewriter);
  }

private:
  /// q, k and v have the batch dimensions of the result: none is broadcast.
  static bool sameBatch(MatMulOp op, Scores &scores, int64_t rank) {
    auto batch = [&](Value value) {
      return typeOf(value).getShape().drop_back(2);
    };
    auto has = [&](Value value) {
      return typeOf(value).getRank() == rank &&
             batch(value) == batch(op.getResult());
    };
    return has(op.getRhs()) && has(scores.product.getLhs()) &&
           has(scores.product.getRhs()) && has(scores.product.getResult());
  }

  static void useRepeatedHeads(PatternRewriter &rewriter, Location loc,
                               Value &key, Value &value) {
    Value narrowKey = takeRepeat(key), narrowValue = takeRepeat(value);
    if (!narrowKey || !narrowValue ||
        typeOf(narrowKey).getDimSize(1) != typeOf(narrowValue).getDimSize(1))
      return;
    auto squeeze = [&](Value wide) {
      ArrayRef<int64_t> shape = typeOf(wide).getShape();
      return reshaped(rewriter, loc, wide,
                      {shape[0], shape[1], shape[3], shape[4]});
    };
    key = squeeze(narrowKey);
    value = squeeze(narrowValue);
  }

  static LogicalResult build(MatMulOp op, Scores &scores, bool zeroRows,
                             Value query, Value key, Value value,
                             PatternRewriter &rewriter) {
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = typeOf(op.getResult()).getShape();
    int64_t rank = shape.size();
    auto withHeads = [&](Value tensor) { // (n,s,d) -> (n,1,s,d)
      ArrayRef<int64_t> s = typeOf(tensor).getShape();
      return rank == 4 ? tensor
                       : reshaped(rewriter, loc, tensor, {s[0], 1, s[1], s[2]});
    };
    query = withHeads(query);
    key = withHeads(key);
    value = withHeads(value);
    ArrayRef<int64_t> q = typeOf(query).getShape();
    int64_t keys = typeOf(key).getDimSize(2);
    auto mask = buildMask(rewriter, loc, scores.mask, q[2], keys, rank,
                          typeOf(query).getElementType());
    if (!mask)
      return failure();
    Type element = typeOf(op.getResult()).getElementType();
    auto resultType = RankedTensorType::get(
        {q[0], q[1], q[2], typeOf(value).getDimSize(3)}, element);
    // Logarithms of sums stay in f32: gradients exponentiate them.
    auto rowType = RankedTensorType::get(
        {q[0], q[1], q[2]},
        element.getIntOrFloatBitWidth() < 32 ? rewriter.getF32Type() : element);
    auto attention = AttentionOp::create(
        rewriter, loc, resultType, rowType, query, key, value, mask->mask,
        Value(), rewriter.getF64FloatAttr(scores.scale),
        mask->causal ? rewriter.getUnitAttr() : UnitAttr(),
        rewriter.getI64IntegerAttr(mask->causalOffset),
        rewriter.getF64FloatAttr(scores.softcap),
        zeroRows && !mask->uniformRows ? rewriter.getUnitAttr() : UnitAttr(),
        mask->uniformRows ? rewriter.getUnitAttr() : UnitAttr());
    rewriter.replaceOp(op,
                       reshaped(rewriter, loc, attention.getResult(), shape));
    return success();
  }
};
} // namespace

void raise::populateAttentionPatterns(RewritePatternSet &patterns) {
  patterns.add<RaiseAttention>(patterns.getContext());
}
