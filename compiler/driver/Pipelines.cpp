// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Pipelines.h"

#include "passes/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ManagedStatic.h"

using namespace mlir;
using namespace mtp;

void mtp::addSimplifyPasses(OpPassManager &passes) {
  passes.addPass(createMtpSimplify());
}

void mtp::addRaisePasses(OpPassManager &passes) {
  passes.addPass(createMtpRaise());
  passes.addPass(createMtpSimplify());
}

void mtp::addPartitionPasses(OpPassManager &passes) {
  passes.addPass(createMtpPartition());
  passes.addPass(createSpmdVerify());
}

void mtp::addFusePasses(OpPassManager &passes) {
  passes.addPass(createSpmdFoldEpilogues());
  passes.addPass(createSpmdFuse());
}

namespace {

struct ShardOptions : PassPipelineOptions<ShardOptions> {
  Option<std::string> mesh{
      *this, "mesh", llvm::cl::desc("Mesh axes, slowest first: dp=2,tp=4"),
      llvm::cl::init("tp=1")};
  Option<std::string> objective{*this, "objective",
                                llvm::cl::desc("parallel or time"),
                                llvm::cl::init("parallel")};
  Option<std::string> plan{*this, "plan",
                           llvm::cl::desc("A plan file, or random:SEED")};
  Option<std::string> pin{
      *this, "pin",
      llvm::cl::desc("VALUE=LAYOUT; several are split at semicolons")};
  Option<bool> raise{*this, "raise", llvm::cl::desc("Recognise composite ops"),
                     llvm::cl::init(true)};
};

struct CreateExplainFlag {
  static void *call() {
    return new llvm::cl::opt<bool>(
        "explain",
        llvm::cl::desc("With --mtp-shard: print the plan to standard error"));
  }
};
llvm::ManagedStatic<llvm::cl::opt<bool>, CreateExplainFlag> explainFlag;

void buildShard(OpPassManager &passes, const ShardOptions &options) {
  addSimplifyPasses(passes);
  if (options.raise)
    addRaisePasses(passes);
  MtpApplyPlanOptions apply;
  apply.mesh = options.mesh;
  apply.objective = options.objective;
  apply.plan = options.plan;
  apply.pins = options.pin;
  apply.explain = *explainFlag;
  passes.addPass(createMtpApplyPlan(apply));
}

} // namespace

void mtp::registerMtpPipelines() {
  *explainFlag;
  PassPipelineRegistration<ShardOptions>(
      "mtp-shard",
      "Choose a plan for a mesh and make layouts and conversions explicit",
      buildShard);
  PassPipelineRegistration<>("mtp-to-spmd",
                             "Turn a typed module into the program of one rank",
                             [](OpPassManager &passes) {
                               addPartitionPasses(passes);
                               addFusePasses(passes);
                             });
  PassPipelineRegistration<>(
      "mtp-to-llvm",
      "Replace the program of a rank by its kernels in the llvm dialect",
      [](OpPassManager &passes) { passes.addPass(createSpmdLowerKernels()); });
}
