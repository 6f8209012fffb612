// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TypedPrograms.h - every op in every case of its rule ---------------===//
//
// Takes a module of single-op functions and a mesh, and builds a typed program
// that runs the op in every well-typed way: operands are brought from whole
// inputs into the layouts that the case asks for.
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

/// The rule of an op, if it is sound.
std::optional<ShardingRule> ruleOf(mlir::Operation *op);

/// Legal combinations of cases of an op, one per axis of the mesh, in a random
/// order: enough that every case that is legal on some axis occurs, and up to
/// `limit`.
std::vector<Trial> enumerateTrials(mlir::Operation *op, const MeshShape &mesh,
                                   size_t limit);

/// The functions of a file of seeds, in float64 or float32. Null, with a
/// message, if they cannot be read.
mlir::OwningOpRef<mlir::ModuleOp> loadSeeds(const std::string &path,
                                            mlir::MLIRContext &context,
                                            bool doublePrecision);

/// Indices -n..n-1 are good for every dimension of the seed's first operand.
int64_t indexRange(mlir::func::FuncOp seed);

/// The op whose results `seed` returns; null if it returns nothing.
mlir::Operation *mainOp(mlir::func::FuncOp seed);

/// A module with the mesh and one function `main` that runs all trials. Results
/// are named "<trial>.<result>". `notMade` says, for each trial, why it is left
/// out (partial booleans, partial maxima of floats), or "".
mlir::OwningOpRef<mlir::ModuleOp> buildTyped(mlir::func::FuncOp seed,
                                             llvm::ArrayRef<Trial> trials,
                                             const MeshShape &mesh,
                                             std::vector<std::string> &notMade);

/// The same function without layouts, results named "reference.<result>".
mlir::OwningOpRef<mlir::ModuleOp> buildReference(mlir::func::FuncOp seed);

} // namespace mtp::fuzz

#endif // MTP_TEST_FUZZ_TYPEDPROGRAMS_H
