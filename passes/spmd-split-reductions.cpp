// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-split-reductions.cpp - long sums over many blocks -------------===//

#include "dialects/spmd/SpmdDialect.h"
#include "passes/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDSPLITREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {

/// How many blocks a GPU is busy with, and is worth a second kernel.
constexpr int64_t kManyBlocks = 512, kFewBlocks = 128;
/// Elements that a block of a row takes at once and positions that one of
/// columns has (GpuEmitter.cpp).
constexpr int64_t kRowThreads = 512, kColumns = 32, kColumnThreads = 8;
/// Elements of a thread in one part, and without parts.
constexpr int64_t kLeastOfPart = 8, kLeast = 32;

/// The first swept dimension cut in `parts`; 0 or 1: the reduction stays.
struct Cut {
  int64_t dim = 0, parts = 0;
};

/// The largest divisor of `size` up to `most`.
int64_t divisorUpTo(int64_t size, int64_t most) {
  for (int64_t parts = std::min(size, most); parts > 1; --parts)
    if (size % parts == 0)
      return parts;
  return 1;
}

/// By shapes only, so that the order of a sum is the same in every run.
Cut cutOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  int64_t results = 1, swept = 1;
  bool isTrailing = true, seen = false;
  Cut cut;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    bool isSwept = llvm::is_contained(dims, int64_t(dim));
    isTrailing &= isSwept || !seen || size == 1;
    if (isSwept && size > 1 && !seen)
      cut.dim = dim;
    seen |= isSwept && size > 1;
    (isSwept ? swept : results) *= size;
  }
  int64_t threads = isTrailing ? kRowThreads : kColumnThreads;
  int64_t blocks = isTrailing ? results : (results + kColumns - 1) / kColumns;
  if (!seen || blocks == 0 || blocks >= kFewBlocks || swept < threads * kLeast)
    return {};
  int64_t most = std::min((kManyBlocks + blocks - 1) / blocks,
                          swept / (threads * kLeastOfPart));
  cut.parts = divisorUpTo(shape[cut.dim], most);
  return cut;
}

/// Sums of 16 bits are summed up in 32.
Type partialType(Operation *op, Type element) {
  bool isNarrow = element.isF16() || element.isBF16();
  return isNarrow && isa<ReduceSumOp, ReduceProdOp>(op)
             ? Type(Float32Type::get(op->getContext()))
             : element;
}

template <typename Op> struct SplitReduction : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    ArrayRef<int64_t> shape = type.getShape(), dims = op.getDims();
    Cut cut = cutOf(shape, dims);
    if (cut.parts <= 1)
      return failure();
    Location loc = op.getLoc();
    Type element = partialType(op, type.getElementType());
    Value input = op.getInput();
    if (element != type.getElementType())
      input = ConvertOp::create(rewriter, loc, type.clone(element), input);
    // (.., n, ..) as (.., parts, n / parts, ..): dimensions behind move up.
    SmallVector<int64_t> cutShape(shape), inner, kept, outer;
    cutShape[cut.dim] /= cut.parts;
    cutShape.insert(cutShape.begin() + cut.dim, cut.parts);
    for (int64_t dim : dims)
      inner.push_back(dim >= cut.dim ? dim + 1 : dim);
    int64_t first = -1;
    for (auto [dim, size] : llvm::enumerate(cutShape)) {
      if (llvm::is_contained(inner, int64_t(dim)))
        continue;
      if (int64_t(dim) == cut.dim)
        first = kept.size();
      kept.push_back(size);
    }
    outer = kept;
    outer.erase(outer.begin() + first);
    auto reduce = [&](Value value, ArrayRef<int64_t> to,
                      ArrayRef<int64_t> over) -> Value {
      return Op::create(rewriter, loc, RankedTensorType::get(to, element),
                        value, over, /*keep=*/false);
    };
    Value parts = ReshapeOp::create(
        rewriter, loc, RankedTensorType::get(cutShape, element), input);
    Value result = reduce(reduce(parts, kept, inner), outer, {first});
    auto wanted = cast<RankedTensorType>(op.getResult().getType());
    if (element != wanted.getElementType())
      result = ConvertOp::create(
          rewriter, loc, RankedTensorType::get(outer, wanted.getElementType()),
          result);
    if (result.getType() != wanted)
      result = ReshapeOp::create(rewriter, loc, wanted, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct SpmdSplitReductions
    : mtp::impl::SpmdSplitReductionsBase<SpmdSplitReductions> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitReduction<ReduceSumOp>, SplitReduction<ReduceProdOp>,
                 SplitReduction<ReduceMaxOp>, SplitReduction<ReduceMinOp>>(
        &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
