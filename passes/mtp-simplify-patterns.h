// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-simplify-patterns.h - families of patterns of mtp-simplify -----===//
#ifndef MTP_PASSES_MTPSIMPLIFYPATTERNS_H
#define MTP_PASSES_MTPSIMPLIFYPATTERNS_H

#include "dialects/mtp/MtpDialect.h"

#include "mlir/IR/PatternMatch.h"

namespace mtp {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return tensorType(value).getShape();
}
/// Dimension `dim` of `value` counted from the right: 0 is the last one.
inline int64_t fromRight(mlir::Value value, int64_t dim) {
  return tensorType(value).getRank() - 1 - dim;
}

/// The elements of `value` if it is a splat constant, else null.
inline mlir::SplatElementsAttr splatOf(mlir::Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant ? mlir::dyn_cast<mlir::SplatElementsAttr>(constant.getValue())
                  : nullptr;
}

/// Reshapes, transposes: fewer and simpler ones.
void populateShapePatterns(mlir::RewritePatternSet &patterns);
/// Transposes into the flags of products; reshapes and broadcasts out of their
/// way.
void populateProductPatterns(mlir::RewritePatternSet &patterns);
/// Identities of arithmetic, conversions, selects, explicit broadcasts.
void populateElementwisePatterns(mlir::RewritePatternSet &patterns);
/// What is done to a weight after it is loaded becomes part of its recipe.
void populateParameterPatterns(mlir::RewritePatternSet &patterns);
/// Lookups of everything in order.
void populateIndexPatterns(mlir::RewritePatternSet &patterns);
/// Slices move up to the weights: fused weights split by meaning.
void populateSlicePatterns(mlir::RewritePatternSet &patterns);

} // namespace mtp

#endif // MTP_PASSES_MTPSIMPLIFYPATTERNS_H
