// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RandomPrograms.h - random graphs of many ops -----------------------===//
#ifndef MTP_TEST_FUZZ_RANDOMPROGRAMS_H
#define MTP_TEST_FUZZ_RANDOMPROGRAMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>

namespace mtp::fuzz {

/// A module without layouts whose `main` is composed of about `count` of the
/// functions in `seeds`, joined where shapes allow and adapted by reshapes,
/// slices, padding and broadcasts where they don't. Ops that jump or divide
/// only get inputs of the model, so that results are continuous in rounding
/// errors. Indices lie in -2..1. The same number gives the same program.
mlir::OwningOpRef<mlir::ModuleOp>
buildRandomProgram(mlir::ModuleOp seeds, uint64_t number, unsigned count);

} // namespace mtp::fuzz

#endif // MTP_TEST_FUZZ_RANDOMPROGRAMS_H
