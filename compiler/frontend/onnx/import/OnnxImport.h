// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OnnxImport.h - an ONNX file as an mtp module -----------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_IMPORT_ONNXIMPORT_H
#define MTP_COMPILER_FRONTEND_ONNX_IMPORT_ONNXIMPORT_H

#include "compiler/frontend/onnx/OnnxError.h"
#include "compiler/frontend/onnx/ReadOptions.h"

#include "mlir/IR/BuiltinOps.h"

namespace mtp::onnx {

/// Reads the model at `path` and makes a module with `func.func @main` on
/// global shapes without layouts; weights are `mtp.initializer` symbols that
/// refer to the file. Arguments and results carry `mtp.name` and what else the
/// runtime checks
/// (`mtp.dim_names`, `mtp.range`, `mtp.range_reason`, `mtp.random`). On failure
/// returns null and fills `error`; never throws.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(const std::string &path,
                                             const ReadOptions &options,
                                             mlir::MLIRContext &context,
                                             std::vector<std::string> &warnings,
                                             OnnxError &error);

/// Names of the operators that can be imported, sorted.
std::vector<std::string> supportedOperators();

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_IMPORT_ONNXIMPORT_H
