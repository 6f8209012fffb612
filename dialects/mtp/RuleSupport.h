// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RuleSupport.h - checks that the computed rules share ------*- C++
//-*-===//
#ifndef MTP_DIALECT_RULESUPPORT_H
#define MTP_DIALECT_RULESUPPORT_H

#include "dialects/mtp/MtpDialect.h"

namespace mtp {

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline bool isFloat(mlir::Value value) {
  return mlir::isa<mlir::FloatType>(typeOf(value).getElementType());
}
inline bool isBool(mlir::Value value) {
  return typeOf(value).getElementType().isInteger(1);
}

/// Fails unless `dim` is a dimension of `value`.
inline mlir::LogicalResult checkDim(mlir::Operation *op, mlir::Value value,
                                    int64_t dim) {
  if (dim >= 0 && dim < typeOf(value).getRank())
    return mlir::success();
  return op->emitOpError() << "has no dimension " << dim
                           << " in a tensor of rank "
                           << typeOf(value).getRank();
}

inline mlir::LogicalResult checkRank(mlir::Operation *op, mlir::Value value,
                                     int64_t rank, llvm::StringRef what) {
  if (typeOf(value).getRank() == rank)
    return mlir::success();
  return op->emitOpError() << what << " has rank " << typeOf(value).getRank()
                           << ", expected " << rank;
}

inline mlir::LogicalResult checkShape(mlir::Operation *op, mlir::Value value,
                                      llvm::ArrayRef<int64_t> shape,
                                      llvm::StringRef what) {
  if (typeOf(value).getShape() == shape)
    return mlir::success();
  return op->emitOpError() << what << " has shape [" << typeOf(value).getShape()
                           << "], expected [" << shape << "]";
}

/// A source: every dimension of the result is a factor of its own.
inline mlir::FailureOr<ShardingRule> sourceRule(mlir::Operation *op,
                                                FactorKind kind) {
  RuleBuilder builder(op);
  for (int64_t dim = 0, rank = typeOf(op->getResult(0)).getRank(); dim < rank;
       ++dim)
    builder.result(0, dim, builder.factor(kind));
  builder.rule.anyState = true;
  return builder.build();
}

/// Puts the factors of `dims` on the dimensions of an operand.
inline void placeOperand(RuleBuilder &builder, unsigned operand,
                         llvm::ArrayRef<llvm::SmallVector<int, 2>> dims) {
  for (auto [dim, factors] : llvm::enumerate(dims))
    builder.operand(operand, dim, factors);
}
inline void placeResult(RuleBuilder &builder, unsigned result,
                        llvm::ArrayRef<llvm::SmallVector<int, 2>> dims) {
  for (auto [dim, factors] : llvm::enumerate(dims))
    builder.result(result, dim, factors);
}

} // namespace mtp

#endif // MTP_DIALECT_RULESUPPORT_H
