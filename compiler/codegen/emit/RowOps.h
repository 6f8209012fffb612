// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RowOps.h - which dimensions an op sweeps
//----------------------------===//
#ifndef MTP_COMPILER_CODEGEN_EMIT_ROWOPS_H
#define MTP_COMPILER_CODEGEN_EMIT_ROWOPS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mtp {

/// The dimensions of its first operand over which an op of kind Row or Reduce
/// sweeps, ascending; nothing for other ops.
std::optional<llvm::SmallVector<unsigned>> sweptDims(mlir::Operation *op);

/// True if no dimension of size > 1 follows a swept one without being swept.
bool sweepsTrailingDims(mlir::Operation *op);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMIT_ROWOPS_H
