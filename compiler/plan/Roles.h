// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Roles.h - which dimensions are batch and tokens --------------------===//
//
// The parallel objective treats dimensions by what they mean: `dp` cuts the
// batch, no other axis cuts batch or tokens. Meaning starts at the inputs
// (dimension 0 is the batch; the other dimensions of integer and boolean
// inputs, and the dynamic ones of float inputs, are tokens) and flows through
// the factors of the sharding rules. Dimensions that come from parameters mean
// neither.
//
//   ids 2x12            batch, tokens
//   gather 2x12x64      batch, tokens, -
//   reshape 24x64       batch * tokens, -         (a dimension keeps its
//   pieces) reshape 2x12x4x16   batch, tokens, -, -
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_ROLES_H
#define MTP_COMPILER_PLAN_ROLES_H

#include "dialects/mtp/MtpDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace mtp::plan {

enum Role : uint8_t {
  kBatch = 1,
  kToken = 2,
  kRepeat = 4, ///< copies made by a broadcast, as of key heads
};

/// A part of a dimension, major to minor.
struct Piece {
  int64_t size = 1;
  uint8_t roles = 0;
};
using Pieces = llvm::SmallVector<Piece, 2>;

class Roles {
public:
  explicit Roles(mlir::func::FuncOp function);

  /// Roles of each factor of `op`.
  llvm::SmallVector<uint8_t, 6> ofFactors(mlir::Operation *op,
                                          const ShardingRule &rule) const;
  /// Roles of one dimension.
  uint8_t of(mlir::Value value, int64_t dim) const;

private:
  std::vector<Pieces> factorPieces(mlir::Operation *op,
                                   const ShardingRule &rule) const;
  void addInput(mlir::BlockArgument argument, mlir::ArrayAttr dimNames);
  void addResults(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, std::vector<Pieces>> dims;
};

/// Name of a dimension's symbol for each dimension of an argument ("" if
/// static), and of the value itself: attributes that the front end gives to
/// arguments.
inline constexpr llvm::StringLiteral kDimNames = "mtp.dim_names";
inline constexpr llvm::StringLiteral kValueName = "mtp.name";

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_ROLES_H
