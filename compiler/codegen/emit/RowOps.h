// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RowOps.h - which dimensions an op sweeps ---------------------------===//
#ifndef MTP_COMPILER_CODEGEN_EMIT_ROWOPS_H
#define MTP_COMPILER_CODEGEN_EMIT_ROWOPS_H

#include "compiler/codegen/emit/Scalars.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mtp {

/// The dimensions of its first operand over which an op of kind Row or Reduce
/// sweeps, ascending; nothing for other ops.
std::optional<llvm::SmallVector<unsigned>> sweptDims(mlir::Operation *op);

/// True if no dimension of size > 1 follows a swept one without being swept.
bool sweepsTrailingDims(mlir::Operation *op);

/// The arithmetic of a reduction: its start, and a value with one more element.
mlir::Value neutralOf(Scalars &scalars, mlir::Operation *reduction);
mlir::Value combine(Scalars &scalars, mlir::Operation *reduction,
                    mlir::Value value, mlir::Value element);

/// Positions in the operand of a reduction from those in its result; swept
/// dimensions are 0.
Indices operandIndices(mlir::Operation *reduction,
                       llvm::ArrayRef<IndexExpr> indices);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMIT_ROWOPS_H
