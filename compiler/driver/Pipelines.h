// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Pipelines.h - named pipelines of mtp-opt ---------------------------===//
//
//   --mtp-shard="mesh=dp=2,tp=4"   simplify, raise, plan, apply: layouts in the
//   types
//   --mtp-plan="mesh=dp=2,tp=4"    the same plan as attributes; types stay
//   --mtp-train="mesh=dp=2 loss=.." the same for a training step: forward,
//   backward, update
//   --mtp-to-spmd                  partition, verify, fuse: the program of one
//   rank
//   --mtp-to-llvm                  kernels of fused regions in the llvm dialect
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_DRIVER_PIPELINES_H
#define MTP_COMPILER_DRIVER_PIPELINES_H

#include "compiler/driver/CompilerApi.h"

#include "mlir/Pass/PassManager.h"

namespace mtp {

/// From the graph as imported to the graph as planned.
void addSimplifyPasses(mlir::OpPassManager &passes);
void addRaisePasses(mlir::OpPassManager &passes);
/// From the graph of a model to that of its loss, without dropout ops.
/// `lossText` is read by parseLoss; `inputGradients` are names of inputs.
void addLossPasses(mlir::OpPassManager &passes, const TrainRequest &train,
                   const std::string &lossText,
                   const std::vector<std::string> &inputGradients);
/// Marks what is trained, on the graph as planned.
void addTrainablePasses(mlir::OpPassManager &passes, const TrainRequest &train);
/// From the typed loss to the typed training step.
void addDifferentiatePasses(mlir::OpPassManager &passes,
                            const TrainRequest &train);
/// The parts of that before and behind the recomputation of activations.
void addGradientPasses(mlir::OpPassManager &passes, const TrainRequest &train);
void addUpdatePasses(mlir::OpPassManager &passes, const TrainRequest &train);
/// From typed modules to the program of one rank.
void addPartitionPasses(mlir::OpPassManager &passes);
/// Regions that become kernels.
void addFusePasses(mlir::OpPassManager &passes);
/// The same for a program that runs on GPUs of `arch` or later, with products
/// in parts and collectives beside them.
void addGpuFusePasses(mlir::OpPassManager &passes, const std::string &arch);

/// Registers the pipelines and the flag --explain.
void registerMtpPipelines();

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_PIPELINES_H
