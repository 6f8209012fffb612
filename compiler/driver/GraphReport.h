// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GraphReport.h - the planned graph as data --------------------------===//
#ifndef MTP_COMPILER_DRIVER_GRAPHREPORT_H
#define MTP_COMPILER_DRIVER_GRAPHREPORT_H

#include "mlir/IR/BuiltinOps.h"

#include <nlohmann/json.hpp>

namespace mtp {

/// The functions of a typed module, @main first, as `graph` of the explanation
/// (docs/explain-json.md): values with their layouts, ops with the time that a
/// rank takes, conversions with what they move.
nlohmann::json reportGraph(mlir::ModuleOp module);

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_GRAPHREPORT_H
