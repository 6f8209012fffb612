// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Trainable.h - which stored tensors are parameters ------------------===//
#ifndef MTP_COMPILER_PLAN_TRAINABLE_H
#define MTP_COMPILER_PLAN_TRAINABLE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace mtp::plan {

/// Attributes: why an initializer is trainable or not, once that is decided; an
/// argument whose gradient is asked for.
inline constexpr llvm::StringLiteral kTrainableReason("mtp.reason");
inline constexpr llvm::StringLiteral kWantsGradient("mtp.wants_gradient");

/// Why an initializer is trainable or not.
struct Trainability {
  bool trainable = false;
  std::string reason; ///< names the op: "reaches the result only through cos"
};

/// Trainable are float initializers of rank >= 1 that reach a result through
/// differentiable operations, except one that reaches it only as the table or
/// inverse frequency of a rotary embedding, as an addend of attention scores
/// that no look-up indexes, or through a comparison, the condition of a select,
/// or integer operations. By symbol of `mtp.initializer`. Works on the graph
/// before and after raising.
llvm::StringMap<Trainability> findTrainable(mlir::func::FuncOp function);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_TRAINABLE_H
