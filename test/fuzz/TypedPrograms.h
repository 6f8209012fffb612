// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TypedPrograms.h - every op in every case of its rule ----------------===//
//
// Takes a module of single-op functions and a mesh, and builds a typed program
// that runs the op in every well-typed way: operands are brought from whole
// inputs into the layouts that the case asks for. Partial operands are made of
// terms of mixed signs that are not proportional to the value.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TEST_FUZZ_TYPEDPROGRAMS_H
#define MTP_TEST_FUZZ_TYPEDPROGRAMS_H

#include "dialects/mtp/MtpDialect.h"
#include "dialects/mtp/Strategy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <string>
#include <vector>

namespace mtp::fuzz {

/// One way to run an op on a mesh.
struct Trial {
  std::string text; ///< "tp: sharded m"
  Strategy strategy;
  std::vector<std::string> rows; ///< the case on each axis, for the table
};

/// All legal combinations of cases of the op that `seed` returns, one per axis of
/// the mesh; at most `limit`, evenly spread.
std::vector<Trial> enumerateTrials(mlir::Operation *op, const MeshShape &mesh, size_t limit);

/// The op whose results `seed` returns.
mlir::Operation *mainOp(mlir::func::FuncOp seed);

/// A module with the mesh and one function `main` that runs all trials. Results
/// are named "<trial>.<result>". Trials that need a partial boolean, or a partial
/// maximum of floats, cannot be made and are left out: their indices are not in
/// `made`.
mlir::OwningOpRef<mlir::ModuleOp> buildTyped(mlir::func::FuncOp seed, llvm::ArrayRef<Trial> trials,
                                             const MeshShape &mesh, std::vector<int> &made);

/// The same function without layouts, results named "reference.<result>".
mlir::OwningOpRef<mlir::ModuleOp> buildReference(mlir::func::FuncOp seed);

} // namespace mtp::fuzz

#endif // MTP_TEST_FUZZ_TYPEDPROGRAMS_H
