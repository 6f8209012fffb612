// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LibraryCalls.h - ops that the runtime's kernels compute ------------===//
#ifndef MTP_COMPILER_CODEGEN_LIBRARYCALLS_H
#define MTP_COMPILER_CODEGEN_LIBRARYCALLS_H

#include "dialects/spmd/SpmdDialect.h"
#include "runtime/artifact/Artifact.h"

namespace mtp {

/// A call as runtime/kernels/LibraryKernel.h documents it: operands are the
/// inputs, then the results, in the order of the kind.
struct LibraryCall {
  explicit LibraryCall(std::string kind) : kind(std::move(kind)) {}
  std::string kind;
  nlohmann::json attributes = nlohmann::json::object();
  llvm::SmallVector<mlir::Value, 4> inputs, results;
};

/// The call for `op`. Emits a diagnostic and fails if there is no kind for it.
mlir::FailureOr<LibraryCall> libraryCallOf(mlir::Operation *op);

/// Operands of `op` that the kernel reads through any strides.
bool takesStrides(mlir::Operation *op, unsigned operand);
/// True if the kernel writes result `result` through any strides.
bool givesStrides(mlir::Operation *op, unsigned result);
/// True if the call does without this result because nothing reads it.
bool isOmitted(mlir::OpResult result);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_LIBRARYCALLS_H
