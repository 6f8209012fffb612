// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GradientNorm.h - the norm of all gradients -------------------------===//
#ifndef MTP_COMPILER_TRAINING_GRADIENTNORM_H
#define MTP_COMPILER_TRAINING_GRADIENTNORM_H

#include "compiler/training/OpMaker.h"

namespace mtp::training {

/// Emits sqrt(sum of squares of all elements of all `gradients`), each logical
/// element once, whatever its layout; invariant on every axis.
///
///   layout of g        sum of g·g on a rank     made P on every axis in use by
///   invariant          the whole sum            root_to: the first rank keeps
///   it cut by tp          a part of it, P on tp    root_to on the other axes
///
/// Partial sums are added and reduced once, over all axes in use together.
/// Padding is left out by the reduction, as everywhere.
mlir::FailureOr<mlir::Value> emitNorm(OpMaker &make,
                                      llvm::ArrayRef<mlir::Value> gradients,
                                      const MeshShape &mesh);

/// createConversion with the phase "update".
mlir::Value convertInUpdate(OpMaker &make, llvm::StringRef mnemonic,
                            mlir::Value input, llvm::ArrayRef<int> axes,
                            const Layout &result, const MeshShape &mesh);

} // namespace mtp::training

#endif // MTP_COMPILER_TRAINING_GRADIENTNORM_H
