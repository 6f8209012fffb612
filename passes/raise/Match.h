// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Match.h - recognising decomposed forms -----------------------------===//
//
// Small matchers that see through what exporters vary: the order of operands,
// constants on either side, a division in place of a product.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_PASSES_RAISE_MATCH_H
#define MTP_PASSES_RAISE_MATCH_H

#include "dialects/mtp/MtpDialect.h"

#include "mlir/IR/PatternMatch.h"

namespace mtp::raise {

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// The number that every element of `value` has, seen through reshapes,
/// broadcasts and conversions; nothing if it is not a splat constant.
std::optional<double> splatValue(mlir::Value value);

/// True if `value` is the constant `expected` up to f32 rounding.
bool isSplat(mlir::Value value, double expected);

/// A product taken apart: `scale` times the product of `factors`.
/// Example: 0.5 * (x * (erf(..) + 1)) -> scale 0.5, factors x, erf(..) + 1.
/// Only values of the product's own shape are taken apart further.
struct Product {
  double scale = 1;
  llvm::SmallVector<mlir::Value, 4> factors;
};
Product flattenProduct(mlir::Value value);

/// A sum taken apart likewise: `offset` plus the sum of `terms`. `term` stays
/// whole, even if it is a sum.
struct Sum {
  double offset = 0;
  llvm::SmallVector<mlir::Value, 4> terms;
};
Sum flattenSum(mlir::Value value, mlir::Value term = {});

/// `x` if `value` is the mean of x over its last dimension with that dimension
/// kept: reduce_sum times 1/n, or divided by n.
mlir::Value matchMeanOfLast(mlir::Value value);

/// `x` if `value` is x squared: x·x or pow(x, 2).
mlir::Value matchSquare(mlir::Value value);

/// `v` if `value` is 1 / sqrt(v): rsqrt, reciprocal of sqrt, 1 / sqrt,
/// pow(v, -1/2).
mlir::Value matchRsqrt(mlir::Value value);

void populateNormPatterns(mlir::RewritePatternSet &patterns);
void populateActivationPatterns(mlir::RewritePatternSet &patterns);
void populateRotaryPatterns(mlir::RewritePatternSet &patterns);
void populateAttentionPatterns(mlir::RewritePatternSet &patterns);

} // namespace mtp::raise

#endif // MTP_PASSES_RAISE_MATCH_H
