// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- InputRanges.h - what values an input may take ----------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_IMPORT_INPUTRANGES_H
#define MTP_COMPILER_FRONTEND_ONNX_IMPORT_INPUTRANGES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mtp::onnx {

/// Follows integer inputs to the tables that they look up, and sets
/// `mtp.range`, `mtp.range_reason` and `mtp.random` (how random inputs are
/// drawn: normal, ids, mask, positions, zeros) on the arguments.
void annotateInputs(mlir::func::FuncOp main);

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_IMPORT_INPUTRANGES_H
