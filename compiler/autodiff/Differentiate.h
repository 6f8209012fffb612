// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Differentiate.h - the backward of a typed program ------------------===//
//
// Reverse mode on a typed function. Each op is asked for the cotangents of its
// operands (DifferentiableOpInterface), each conversion a -> b becomes its
// conjugate dual(b) -> dual(a), and cotangents of a value with several uses are
// added. Nothing here knows an op, a parameter's role, or where a reduction
// belongs: a cotangent has the dual of its value's layout or there is an error.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_AUTODIFF_DIFFERENTIATE_H
#define MTP_COMPILER_AUTODIFF_DIFFERENTIATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mtp::autodiff {

namespace names {
/// On a result: the value that is differentiated. Unit.
inline constexpr llvm::StringLiteral loss("mtp.loss");
/// On an op: differentiate with respect to its result. I64, unique.
inline constexpr llvm::StringLiteral trainable("mtp.trainable");
/// On an argument: differentiate with respect to it. Unit.
inline constexpr llvm::StringLiteral wantsGradient("mtp.wants_gradient");
/// On a result: the gradient of what; the number of `trainable` or the name of
/// the argument.
inline constexpr llvm::StringLiteral gradientOf("mtp.gradient_of");
/// On such a result: the loss does not depend on the value; it is zero. Unit.
inline constexpr llvm::StringLiteral unreached("mtp.unreached");
/// On a conversion of the forward that the backward repeats. Unit.
inline constexpr llvm::StringLiteral again("mtp.again");
/// On the first op of the backward. Unit.
inline constexpr llvm::StringLiteral backward("mtp.backward");
/// On a conversion and its conjugate: a number they share. I64.
inline constexpr llvm::StringLiteral pair("pair");
} // namespace names

/// Appends to the results of `function` the gradient of its loss with respect
/// to every op with `trainable`, in program order, then every argument with
/// `wantsGradient`. The backward stands after the forward.
///
/// Fails with a diagnostic if there is no loss or several, if the loss is not a
/// float scalar that is invariant on all axes, if an op on the way to the loss
/// has no gradient, or if a value reaches the loss only through integers.
mlir::LogicalResult differentiate(mlir::func::FuncOp function);

} // namespace mtp::autodiff

#endif // MTP_COMPILER_AUTODIFF_DIFFERENTIATE_H
