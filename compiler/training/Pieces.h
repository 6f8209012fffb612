// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Pieces.h - which elements of a stored tensor a recipe takes --------===//
#ifndef MTP_COMPILER_TRAINING_PIECES_H
#define MTP_COMPILER_TRAINING_PIECES_H

#include "dialects/mtp/MtpDialect.h"

namespace mtp::training {

/// True if every element of a tensor of `shape` is in exactly one of the pieces
/// that `recipes` take. What can't be decided from boxes is false.
///
/// Example: of 6x4, [slice 0 0 2] and [slice 0 2 4] are a partition; [] and
/// [transpose] are not, since both have everything.
bool arePartition(llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<mlir::ArrayAttr> recipes);

/// The ops that do to `value`, without a layout, what `recipe` does at load.
mlir::Value replay(mlir::OpBuilder &builder, mlir::Location loc,
                   mlir::Value value, mlir::ArrayAttr recipe);

} // namespace mtp::training

#endif // MTP_COMPILER_TRAINING_PIECES_H
