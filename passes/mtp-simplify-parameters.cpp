// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-simplify-parameters.cpp - load-time recipes --------------------===//

#include "passes/mtp-simplify-patterns.h"

using namespace mlir;
using namespace mtp;

namespace {

/// The recipe step that does what `op` does, or null.
RecipeStepAttr stepOf(Operation *op) {
  MLIRContext *context = op->getContext();
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return RecipeStepAttr::get(context, "transpose", transpose.getPerm());
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return RecipeStepAttr::get(context, "reshape",
                               shapeOf(reshape.getResult()));
  if (auto slice = dyn_cast<StridedSliceOp>(op))
    if (slice.getStep() == 1) {
      int64_t dim = slice.getDim();
      return RecipeStepAttr::get(context, "slice",
                                 {dim, static_cast<int64_t>(slice.getStart()),
                                  shapeOf(slice.getResult())[dim]});
    }
  return {};
}

/// A transpose that products take as their flag: the weight stays one stored
/// tensor even if it is also used as it lies (tied embeddings).
bool isForProducts(Operation *op) {
  auto transpose = dyn_cast<TransposeOp>(op);
  return transpose && transpose.getPerm() == ArrayRef<int64_t>{1, 0} &&
         llvm::all_of(op->getUsers(), llvm::IsaPred<MatMulOp>);
}

/// Pieces that are trained are settled (mtp-mark-trainable): an element of the
/// weight belongs to one of them.
bool isTrained(ParameterOp parameter) {
  return parameter->hasAttr("mtp.trainable");
}

/// An op on a weight -> a step of the weight's recipe.
template <typename Op> struct IntoRecipe : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto parameter = op.getInput().template getDefiningOp<ParameterOp>();
    RecipeStepAttr step = parameter ? stepOf(op) : nullptr;
    if (!step || isForProducts(op) || isTrained(parameter))
      return failure();
    SmallVector<Attribute> recipe(parameter.getRecipe().getValue());
    recipe.push_back(step);
    rewriter.replaceOpWithNewOp<ParameterOp>(op, op.getType(),
                                             parameter.getSourceAttr(),
                                             rewriter.getArrayAttr(recipe));
    return success();
  }
};

/// convert of a weight that is loaded as it is stored -> loaded in that type.
struct ConvertIntoLoad : OpRewritePattern<ConvertOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertOp op,
                                PatternRewriter &rewriter) const override {
    auto parameter = op.getInput().getDefiningOp<ParameterOp>();
    if (!parameter || isTrained(parameter))
      return failure();
    auto initializer = SymbolTable::lookupNearestSymbolFrom<InitializerOp>(
        parameter, parameter.getSourceAttr());
    Type stored = initializer
                      ? cast<ShapedType>(initializer.getType()).getElementType()
                      : Type();
    Type loaded = tensorType(parameter.getResult()).getElementType();
    if (stored != loaded || !isa<FloatType>(stored) ||
        !isa<FloatType>(tensorType(op.getResult()).getElementType()))
      return failure();
    rewriter.replaceOpWithNewOp<ParameterOp>(
        op, op.getType(), parameter.getSourceAttr(), parameter.getRecipeAttr());
    return success();
  }
};

} // namespace

void mtp::populateParameterPatterns(RewritePatternSet &patterns) {
  patterns.add<IntoRecipe<TransposeOp>, IntoRecipe<ReshapeOp>,
               IntoRecipe<StridedSliceOp>, ConvertIntoLoad>(
      patterns.getContext());
}
