// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- IndexExpr.h - positions as affine expressions ----------------------===//
//
// A position along a dimension is an affine expression over variables. A
// variable is a loop counter (or a part of one) or an integer value of the
// program (a looked-up index, the offset of a block). All ranges are known, so
// that a reshape of a position is again affine wherever the loops are cut
// finely enough:
//
//   (4, 6) -> (4, 2, 3) at (i, j), j cut into j = 3 j1 + j0:   (i, j1, j0)
//   without the cut:                                           (i, j / 3, j %
//   3)
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_EMIT_INDEXEXPR_H
#define MTP_COMPILER_CODEGEN_EMIT_INDEXEXPR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace mtp {

/// Index of a variable in its emitter.
using VariableId = unsigned;

/// constant + sum of coefficient * variable.
struct IndexExpr {
  struct Term {
    VariableId variable;
    int64_t coefficient; ///< not 0
    bool operator==(const Term &other) const {
      return variable == other.variable && coefficient == other.coefficient;
    }
  };
  int64_t constant = 0;
  llvm::SmallVector<Term, 3> terms; ///< ascending variables, each once

  IndexExpr() = default;
  IndexExpr(int64_t constant) : constant(constant) {}
  static IndexExpr variable(VariableId id) {
    IndexExpr expr;
    expr.terms.push_back({id, 1});
    return expr;
  }

  bool isConstant() const { return terms.empty(); }
  IndexExpr operator+(const IndexExpr &other) const;
  IndexExpr operator*(int64_t factor) const;
  bool operator==(const IndexExpr &other) const {
    return constant == other.constant && terms == other.terms;
  }
};

using Indices = llvm::SmallVector<IndexExpr, 4>;

llvm::hash_code hash_value(const IndexExpr &expr);

/// Row-major strides of a shape, in elements.
llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);
/// Position in row-major order: the sum of index * stride.
IndexExpr linearize(llvm::ArrayRef<IndexExpr> indices,
                    llvm::ArrayRef<int64_t> shape);
/// Positions of an operand with numpy broadcast to a result of rank
/// `indices.size()`: aligned right, dimensions of size 1 stay at 0.
Indices broadcastIndices(llvm::ArrayRef<IndexExpr> indices,
                         llvm::ArrayRef<int64_t> operandShape);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMIT_INDEXEXPR_H
