// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LowerLoops.h - scf, arith, math to the LLVM dialect ----------------===//
#ifndef MTP_COMPILER_CODEGEN_LOWERLOOPS_H
#define MTP_COMPILER_CODEGEN_LOWERLOOPS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mtp {

/// A module of the LLVM dialect with the bodies of the given kernels. exp,
/// tanh, erf and log of f32 become polynomials. Without `hasFma` a fused
/// multiply-add becomes two operations, since there is no library to call.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
lowerLoops(mlir::ModuleOp loops, llvm::ArrayRef<size_t> kernels, bool hasFma);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_LOWERLOOPS_H
