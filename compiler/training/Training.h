// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Training.h - from a model to a training step -----------------------===//
//
// The algorithms behind the passes of the same names, in the order in which
// they run:
//
//   expandDropout   dropout in open ops
//   addLoss         the loss is what @main returns
//   markTrainable   pieces of parameters, numbered
//     (plan, apply: types have layouts from here on)
//   shardStates     ZeRO 3: parameters in blocks over dp
//     (mtp-differentiate: gradients become results of @main)
//   addOptimizer    norm, clipping, update; @main changes what is stored
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_TRAINING_TRAINING_H
#define MTP_COMPILER_TRAINING_TRAINING_H

#include "compiler/training/LossSpec.h"
#include "compiler/training/OpMaker.h"

#include <string>
#include <vector>

namespace mtp::training {

enum class DropoutMode { Model, On, Off };
/// Replaces every mtp.dropout. `accumulate`: the position of an element is that
/// in the batch of all micro-batches ("mtp.micro_batch" says which one it is).
void expandDropout(mlir::func::FuncOp function, DropoutMode mode,
                   bool accumulate);

struct LossOptions {
  LossSpec spec;
  mlir::Type labelType; ///< i64 or i32
  bool lossScale = false;
  bool keepOutputs = false;
  std::vector<std::string> inputGradients;
};
mlir::LogicalResult addLoss(mlir::func::FuncOp function,
                            const LossOptions &options);

/// A and B are one parameter; `transposed`: B is A with its two dimensions
/// exchanged.
struct Tie {
  std::string a, b;
  bool transposed = false;
};
/// "A,B" or "A,B:transposed".
bool parseTie(llvm::StringRef text, Tie &tie, std::string &error);

struct TrainableOptions {
  std::vector<std::string> freeze, trainOnly; ///< globs
  std::vector<Tie> ties;
};
/// Gives every initializer `trainable` or not, and "mtp.reason".
mlir::LogicalResult chooseTrainable(mlir::ModuleOp module,
                                    const TrainableOptions &options);
/// Ties, chooses, and numbers the pieces that are trained.
mlir::LogicalResult markTrainable(mlir::ModuleOp module,
                                  const TrainableOptions &options);
/// Copies of one tensor among the trainable initializers that are not tied: a
/// warning for each pair, at the second one.
void warnOfCopies(mlir::ModuleOp module);

/// Stage 3 of ZeRO over the mesh axis `axis`.
mlir::LogicalResult shardStates(mlir::ModuleOp module, int64_t zero,
                                llvm::StringRef axis);
/// After differentiation: what stage 3 gathers for the forward is gathered once
/// more for the backward, so that no parameter stays whole in between.
void gatherAgain(mlir::func::FuncOp function, llvm::StringRef axis);
/// `layout` of a tensor of `shape`, cut by `axis` as well: minor-most in the
/// dimension that gives the smallest block, of equal ones the first. Nothing if
/// the tensor is a scalar or not invariant on the axis.
std::optional<Layout> cutOverAxis(const Layout &layout,
                                  llvm::ArrayRef<int64_t> shape, int axis,
                                  const MeshShape &mesh);

struct OptimizerOptions {
  std::string optimizer = "adamw";
  double momentum = 0, weightDecay = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double clipNorm = 0; ///< 0: none
  int64_t zero = 0;
  std::string axis = "dp";
  int64_t accumulate = 1;
  bool lossScale = false;
  bool keepGradients = false;
};
mlir::LogicalResult addOptimizer(mlir::ModuleOp module,
                                 const OptimizerOptions &options);

} // namespace mtp::training

#endif // MTP_COMPILER_TRAINING_TRAINING_H
