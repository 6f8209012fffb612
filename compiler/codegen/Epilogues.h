// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Epilogues.h - kernels that a matrix product can take along ---------===//
//
// What follows a product may be computed by cuBLASLt with it:
//
//   h = product, y = gelu(h)               gelu_tanh; h as second result, if
//   the
//                                          backward pass reads it
//   g = product, x = gelu_gradient(h, g)   gelu_tanh_gradient
//     (and b = sum of the rows of x)       and the bias gradient of the result
//   w = lhs' x, b = sum of the rows of x   and the bias gradient of an operand
//
// only where the kernel is that op and nothing else. The product and its
// kernels stand one after the other, and the artifact has both forms: one call,
// and the product with its kernels (Instruction::otherwise). Which one runs is
// measured where it runs. Both use the same memory, so that all of it is held
// for all of them (BufferPlan.h).
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_EPILOGUES_H
#define MTP_COMPILER_CODEGEN_EPILOGUES_H

#include "compiler/codegen/LibraryCalls.h"

namespace mtp {

/// IntegerAttr on a product: so many ops that follow it are its epilogue.
inline constexpr llvm::StringLiteral kEpilogue("spmd.epilogue");

/// The number of ops behind `op` that are its epilogue.
int64_t epilogueSize(mlir::Operation *op);

/// The ops that could be the epilogue of `product`, in order; none if there are
/// none. They can stand right behind it, or it before them.
llvm::SmallVector<mlir::Operation *> findEpilogue(mlir::Operation *product);

/// Puts them there and notes them at the product.
void gatherEpilogue(mlir::Operation *product,
                    llvm::ArrayRef<mlir::Operation *> epilogue);

/// `product` and the ops of its epilogue, which follow it, as one call.
mlir::FailureOr<LibraryCall> callWithEpilogue(mlir::Operation *product);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EPILOGUES_H
