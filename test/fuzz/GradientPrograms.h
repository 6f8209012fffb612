// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GradientPrograms.h - the gradient of every op in every case --------===//
//
// A program like those of TypedPrograms.h that ends in a loss: the float
// results of each trial, brought back to a whole invariant value, times fixed
// weights, summed. It is differentiated with respect to the trial's own copy of
// each float operand, so that one program has the gradients of all trials.
//
// A replicated result is brought back through terms of mixed signs, so that its
// cotangent arrives as a partial sum whose terms are not proportional to it.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TEST_FUZZ_GRADIENTPROGRAMS_H
#define MTP_TEST_FUZZ_GRADIENTPROGRAMS_H

#include "test/fuzz/LayoutMaker.h"
#include "test/fuzz/TypedPrograms.h"

namespace mtp::fuzz {

/// Emits losses: the sum of y · sin(0.7 i + 0.3), where i is the position of an
/// element. What is no number or very large counts as zero.
class LossMaker {
public:
  using TypeOf = std::function<mlir::RankedTensorType(llvm::ArrayRef<int64_t>,
                                                      mlir::Type)>;
  /// `type` gives types their layouts, or not.
  LossMaker(mlir::OpBuilder &builder, mlir::Location loc, TypeOf type)
      : builder(builder), loc(loc), type(std::move(type)) {}
  /// The loss of a whole value, a scalar in f64.
  mlir::Value make(mlir::Value value);
  /// The sum; `a` may be null.
  mlir::Value add(mlir::Value a, mlir::Value b);

private:
  mlir::Value scalar(mlir::Type element, double value);
  mlir::OpBuilder &builder;
  mlir::Location loc;
  TypeOf type;
};
/// Types of whole invariant values.
LossMaker::TypeOf wholeTypes(LayoutMaker &maker, const MeshShape &mesh);

/// Copies of values, each differentiated for itself.
struct SourceCopies {
  llvm::SmallVector<std::string> names; ///< by number of the copy
  mlir::Value copy(mlir::OpBuilder &builder, mlir::Value whole,
                   std::string name);
  /// Differentiates result 0 of `main`; gradients get the names of the copies.
  /// The reason if that fails or gives an ill-typed program, "" otherwise.
  std::string differentiate(mlir::func::FuncOp main);
};

struct GradientProgram {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Why a trial is left out, "" if it is not (of ops).
  std::vector<std::string> notMade;
  /// Why the program can't be differentiated, "" if it was. Gradients are the
  /// results "<trial>.<argument>".
  std::string error;
};

/// True if the gradient of the op that `seed` runs is to be tested: its first
/// result is a float, and so is an argument.
bool hasGradient(mlir::func::FuncOp seed);

/// The program with its backward.
GradientProgram buildGradients(mlir::func::FuncOp seed,
                               llvm::ArrayRef<Trial> trials,
                               const MeshShape &mesh);

/// The loss of one trial without layouts, result "loss".
mlir::OwningOpRef<mlir::ModuleOp> buildLoss(mlir::func::FuncOp seed);

} // namespace mtp::fuzz

#endif // MTP_TEST_FUZZ_GRADIENTPROGRAMS_H
