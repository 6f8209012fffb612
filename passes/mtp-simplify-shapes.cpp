// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-simplify-shapes.cpp - fewer reshapes and transposes ------------===//

#include "passes/mtp-simplify-patterns.h"

using namespace mlir;
using namespace mtp;

namespace {

/// reshape(x) of x's own type -> x; reshape(reshape(x)) -> reshape(x).
struct ReshapeOfReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInput().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<ReshapeOp>();
    if (!inner)
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getInput());
    return success();
  }
};

/// transpose by the identity -> x; transpose(transpose(x)) -> transpose(x).
struct TransposeOfTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> perm = op.getPerm();
    if (llvm::equal(perm, llvm::seq<int64_t>(0, perm.size()))) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<TransposeOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> both;
    for (int64_t dim : perm)
      both.push_back(inner.getPerm()[dim]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getInput(),
                                             both);
    return success();
  }
};

/// An op that only moves elements, on a splat -> a splat.
template <typename Op> struct MoveOfSplat : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    SplatElementsAttr splat = splatOf(op.getInput());
    if (!splat)
      return failure();
    rewriter.replaceOpWithNewOp<ConstantOp>(
        op, splat.resizeSplat(cast<ShapedType>(op.getType())));
    return success();
  }
};

/// reshape of a constant -> a constant.
struct ReshapeOfConstant : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto constant = op.getInput().getDefiningOp<ConstantOp>();
    auto value =
        constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
    if (!value)
      return failure();
    rewriter.replaceOpWithNewOp<ConstantOp>(
        op, cast<ElementsAttr>(value.reshape(cast<ShapedType>(op.getType()))));
    return success();
  }
};

/// The elements of a tensor as a nest of loops: sizes > 1, major to minor in
/// the order of the tensor it started as, and the order they stand in now.
///
/// Example: (2,4,8,16) reshaped to (8,8,16), transposed by [0,2,1], reshaped to
/// (2,4,16,8): sizes 2 4 8 16, order 0 1 3 2.
class Strands {
public:
  explicit Strands(ArrayRef<int64_t> shape) {
    for (auto [dim, extent] : llvm::enumerate(shape))
      if (extent != 1) {
        order.push_back(sizes.size());
        sizes.push_back(extent);
        source.push_back(dim);
      }
  }

  /// Splits strands so that every dimension of `shape` is a product of whole
  /// ones; `groups` lists them. False if there is no such split.
  bool reshape(ArrayRef<int64_t> shape,
               SmallVectorImpl<SmallVector<int>> &groups) {
    size_t at = 0;
    for (int64_t extent : shape) {
      SmallVector<int> &group = groups.emplace_back();
      while (extent > 1) {
        if (at == order.size())
          return false;
        int64_t size = sizes[order[at]];
        if (size > extent) {
          if (size % extent)
            return false;
          split(at, extent, groups);
          size = extent;
        }
        if (extent % size)
          return false;
        group.push_back(order[at++]);
        extent /= size;
      }
    }
    return at == order.size();
  }
  void transpose(ArrayRef<int64_t> perm, ArrayRef<SmallVector<int>> groups) {
    order.clear();
    for (int64_t dim : perm)
      order.append(groups[dim].begin(), groups[dim].end());
  }

  SmallVector<int64_t> sizes,
      source; ///< of a strand: extent, dimension it is part of
  SmallVector<int> order;

private:
  /// Strand order[at] becomes a major part of `major` and the rest.
  void split(size_t at, int64_t major,
             SmallVectorImpl<SmallVector<int>> &groups) {
    int strand = order[at];
    auto shift = [&](int &s) { s += s > strand; };
    llvm::for_each(order, shift);
    for (SmallVector<int> &group : groups)
      llvm::for_each(group, shift);
    order.insert(order.begin() + at + 1, strand + 1);
    sizes.insert(sizes.begin() + strand + 1, sizes[strand] / major);
    source.insert(source.begin() + strand + 1, source[strand]);
    sizes[strand] = major;
  }
};

/// Indices of the non-empty groups in the order of their first strand; empty
/// ones (dimensions of size 1) keep their place.
SmallVector<int64_t> sortedKeepingUnits(ArrayRef<SmallVector<int>> groups,
                                        ArrayRef<int> position) {
  SmallVector<int64_t> filled, result;
  for (auto [index, group] : llvm::enumerate(groups))
    if (!group.empty())
      filled.push_back(index);
  llvm::sort(filled, [&](int64_t a, int64_t b) {
    return position[groups[a][0]] < position[groups[b][0]];
  });
  size_t next = 0;
  for (auto [index, group] : llvm::enumerate(groups))
    result.push_back(group.empty() ? index : filled[next++]);
  return result;
}

/// True if every group's strands follow each other at consecutive positions.
bool staysTogether(ArrayRef<SmallVector<int>> groups, ArrayRef<int> position) {
  for (const SmallVector<int> &group : groups)
    for (size_t i = 1; i < group.size(); ++i)
      if (position[group[i]] != position[group[i - 1]] + 1)
        return false;
  return true;
}

SmallVector<int64_t> permuted(ArrayRef<int64_t> shape, ArrayRef<int64_t> perm) {
  return llvm::map_to_vector(perm, [&](int64_t dim) { return shape[dim]; });
}

Value reshapeTo(PatternRewriter &rewriter, Location loc, Value value,
                ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, tensorType(value).getElementType());
  return type == value.getType()
             ? value
             : ReshapeOp::create(rewriter, loc, type, value).getResult();
}
Value transposeBy(PatternRewriter &rewriter, Location loc, Value value,
                  ArrayRef<int64_t> perm) {
  if (llvm::equal(perm, llvm::seq<int64_t>(0, perm.size())))
    return value;
  auto type = RankedTensorType::get(permuted(shapeOf(value), perm),
                                    tensorType(value).getElementType());
  return TransposeOp::create(rewriter, loc, type, value, perm);
}

/// reshape(transpose(reshape(x))) -> reshape(transpose(x)) if x's dimensions
/// stay together, transpose(reshape(x)) if the result's do; unneeded ones
/// vanish.
struct ReshapeTransposeReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<TransposeOp>();
    auto first =
        transpose ? transpose.getInput().getDefiningOp<ReshapeOp>() : nullptr;
    if (!first)
      return failure();
    Value x = first.getInput();
    ArrayRef<int64_t> from = shapeOf(x), to = shapeOf(op.getResult());
    Strands strands(from);
    SmallVector<SmallVector<int>> middle, result;
    if (!strands.reshape(shapeOf(first.getResult()), middle))
      return failure();
    strands.transpose(transpose.getPerm(), middle);
    if (!strands.reshape(to, result))
      return failure();
    SmallVector<int> now(strands.order.size());
    for (auto [place, strand] : llvm::enumerate(strands.order))
      now[strand] = place;
    SmallVector<SmallVector<int>> source(from.size());
    for (auto [strand, dim] : llvm::enumerate(strands.source))
      source[dim].push_back(strand);
    if (staysTogether(source, now)) {
      Value moved = transposeBy(rewriter, op.getLoc(), x,
                                sortedKeepingUnits(source, now));
      rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), moved, to));
      return success();
    }
    auto original = llvm::to_vector(llvm::seq<int>(0, strands.order.size()));
    if (!staysTogether(result, original))
      return failure();
    SmallVector<int64_t> sorted = sortedKeepingUnits(result, original),
                         perm(sorted.size());
    for (auto [place, dim] : llvm::enumerate(sorted))
      perm[dim] = place;
    Value shaped = reshapeTo(rewriter, op.getLoc(), x, permuted(to, sorted));
    rewriter.replaceOp(op, transposeBy(rewriter, op.getLoc(), shaped, perm));
    return success();
  }
};

} // namespace

void mtp::populateShapePatterns(RewritePatternSet &patterns) {
  patterns.add<ReshapeOfReshape, TransposeOfTranspose, MoveOfSplat<ReshapeOp>,
               MoveOfSplat<TransposeOp>, MoveOfSplat<BroadcastOp>,
               MoveOfSplat<StridedSliceOp>, ReshapeOfConstant,
               ReshapeTransposeReshape>(patterns.getContext());
}
