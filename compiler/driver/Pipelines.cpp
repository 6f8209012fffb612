// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Pipelines.h"

#include "compiler/codegen/cuda/GpuLowering.h"
#include "compiler/driver/BudgetPass.h"
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

void mtp::addLossPasses(OpPassManager &passes, const TrainRequest &train,
                        const std::string &lossText,
                        const std::vector<std::string> &inputGradients) {
  MtpExpandDropoutOptions dropout;
  dropout.mode = train.dropout;
  dropout.accumulate = train.accumulate > 1;
  passes.addPass(createMtpExpandDropout(dropout));
  MtpAddLossOptions loss;
  loss.loss = lossText;
  loss.labelType = train.labelType == DType::I32 ? "i32" : "i64";
  loss.lossScale = train.lossScale;
  loss.keepOutputs = train.keepOutputs;
  loss.inputGradients.assign(inputGradients.begin(), inputGradients.end());
  passes.addPass(createMtpAddLoss(loss));
}

void mtp::addTrainablePasses(OpPassManager &passes, const TrainRequest &train) {
  MtpMarkTrainableOptions options;
  options.freeze.assign(train.freeze.begin(), train.freeze.end());
  options.trainOnly.assign(train.trainOnly.begin(), train.trainOnly.end());
  options.tie.assign(train.ties.begin(), train.ties.end());
  passes.addPass(createMtpMarkTrainable(options));
  // Recipes that were undone left transposes behind.
  passes.addPass(createMtpSimplify());
}

void mtp::addDifferentiatePasses(OpPassManager &passes,
                                 const TrainRequest &train) {
  addGradientPasses(passes, train);
  MtpRecomputeOptions recompute;
  recompute.mode = train.recompute;
  recompute.layers = train.recomputeLayers;
  passes.addPass(createMtpRecompute(recompute));
  addUpdatePasses(passes, train);
}

void mtp::addGradientPasses(OpPassManager &passes, const TrainRequest &train) {
  MtpShardStatesOptions states;
  states.zero = train.zero;
  passes.addPass(createMtpShardStates(states));
  passes.addPass(createMtpDifferentiate());
}

void mtp::addUpdatePasses(OpPassManager &passes, const TrainRequest &train) {
  MtpAddOptimizerOptions options;
  options.optimizer = train.optimizer;
  options.momentum = train.momentum;
  options.weightDecay = train.weightDecay;
  options.beta1 = train.beta1;
  options.beta2 = train.beta2;
  options.eps = train.eps;
  options.clipNorm = train.clipNorm;
  options.zero = train.zero;
  options.accumulate = train.accumulate;
  options.lossScale = train.lossScale;
  options.keepGradients = train.keepGradients;
  passes.addPass(createMtpAddOptimizer(options));
}

void mtp::addPartitionPasses(OpPassManager &passes) {
  passes.addPass(createMtpPartition());
  passes.addPass(createSpmdVerify());
}

void mtp::addFusePasses(OpPassManager &passes) {
  passes.addPass(createSpmdFoldEpilogues());
  passes.addPass(createSpmdFuse());
  passes.addPass(createSpmdBucketCollectives());
}

/// Behind the passes that group ops.
static void addOverlapPasses(OpPassManager &passes, const std::string &arch) {
  SpmdChunkProductsOptions chunks;
  chunks.capability = static_cast<int>(gpuCapability(arch));
  passes.addPass(createSpmdChunkProducts(chunks));
  passes.addPass(createSpmdOverlapCollectives());
  passes.addPass(createSpmdGatherEpilogues());
}

void mtp::addGpuFusePasses(OpPassManager &passes, const std::string &arch) {
  passes.addPass(createSpmdFoldEpilogues());
  passes.addPass(createSpmdSplitEpilogues());
  passes.addPass(createSpmdSplitReductions());
  passes.addPass(createSpmdFuse());
  passes.addPass(createSpmdBucketCollectives());
  addOverlapPasses(passes, arch);
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
  Option<bool> sequenceParallel{
      *this, "sequence-parallel",
      llvm::cl::desc("Cut norms, dropout and residuals by tokens"),
      llvm::cl::init(false)};
  Option<std::string> topology{
      *this, "topology",
      llvm::cl::desc("Hosts and links that the plan is made for, as mtp-run "
                     "--topology has it")};
  Option<std::string> memoryBudget{
      *this, "memory-budget",
      llvm::cl::desc("Most bytes of a rank, as mtp-run --memory-budget has it: "
                     "2G")};
  Option<bool> raise{*this, "raise", llvm::cl::desc("Recognise composite ops"),
                     llvm::cl::init(true)};
};

struct CreateExplainFlag {
  static void *call() {
    return new llvm::cl::opt<bool>(
        "explain", llvm::cl::desc("With --mtp-shard and --mtp-train: print the "
                                  "plan to standard error"));
  }
};
llvm::ManagedStatic<llvm::cl::opt<bool>, CreateExplainFlag> explainFlag;

template <typename PlanPassOptions>
PlanPassOptions planOptions(const ShardOptions &options) {
  PlanPassOptions plan;
  plan.mesh = options.mesh;
  plan.objective = options.objective;
  plan.plan = options.plan;
  plan.pins = options.pin;
  plan.sequenceParallel = options.sequenceParallel;
  plan.topology = options.topology;
  plan.explain = *explainFlag;
  return plan;
}

/// The layouts, and with `train` the training step, that fit the budget.
void addBudget(OpPassManager &passes, const ShardOptions &options,
               std::optional<TrainRequest> train, bool annotate = false) {
  BudgetPassOptions budget;
  budget.request.mesh = options.mesh;
  budget.request.objective = options.objective;
  budget.request.topology = options.topology;
  budget.request.plan = options.plan;
  budget.request.train = std::move(train);
  llvm::SmallVector<llvm::StringRef> pins;
  llvm::StringRef(options.pin).split(pins, ';', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef pin : pins) {
    auto [value, layout] = pin.split('=');
    budget.request.pins.push_back({value.str(), layout.str()});
  }
  budget.bytes = options.memoryBudget;
  budget.sequenceParallel = options.sequenceParallel;
  budget.annotate = annotate;
  budget.explain = *explainFlag;
  passes.addPass(createBudgetPass(std::move(budget)));
}

void addApply(OpPassManager &passes, const ShardOptions &options) {
  passes.addPass(createMtpApplyPlan(planOptions<MtpApplyPlanOptions>(options)));
}

/// The graph that is planned. Without training dropout is the identity.
void addInference(OpPassManager &passes, const ShardOptions &options) {
  MtpExpandDropoutOptions dropout;
  dropout.mode = "off";
  passes.addPass(createMtpExpandDropout(dropout));
  addSimplifyPasses(passes);
  if (options.raise)
    addRaisePasses(passes);
}

void buildShard(OpPassManager &passes, const ShardOptions &options) {
  addInference(passes, options);
  options.memoryBudget.empty() ? addApply(passes, options)
                               : addBudget(passes, options, std::nullopt);
}

void buildPlan(OpPassManager &passes, const ShardOptions &options) {
  addInference(passes, options);
  if (!options.memoryBudget.empty())
    return addBudget(passes, options, std::nullopt, /*annotate=*/true);
  passes.addPass(
      createMtpAnnotatePlan(planOptions<MtpAnnotatePlanOptions>(options)));
}

struct TrainOptions : ShardOptions {
  Option<std::string> loss{
      *this, "loss", llvm::cl::desc("The loss, as mtp-run --loss has it")};
  Option<std::string> optimizer{*this, "optimizer",
                                llvm::cl::desc("sgd or adamw"),
                                llvm::cl::init("adamw")};
  Option<std::string> precision{*this, "precision",
                                llvm::cl::desc("f32, f64, bf16 or f16"),
                                llvm::cl::init("f32")};
  Option<std::string> recompute{
      *this, "recompute",
      llvm::cl::desc("none, or layers: compute activations again; auto: of as "
                     "few as memory-budget asks for, its default there")};
  Option<std::string> dropout{*this, "dropout",
                              llvm::cl::desc("model, on or off"),
                              llvm::cl::init("model")};
  Option<double> momentum{*this, "momentum", llvm::cl::desc("Of sgd"),
                          llvm::cl::init(0)};
  Option<double> weightDecay{*this, "weight-decay",
                             llvm::cl::desc("Of all trained parameters"),
                             llvm::cl::init(0.01)};
  Option<double> clipNorm{
      *this, "clip-norm",
      llvm::cl::desc("Largest norm of the gradient; 0: any"),
      llvm::cl::init(0)};
  Option<int64_t> accumulate{*this, "accumulate",
                             llvm::cl::desc("Micro-batches of a step"),
                             llvm::cl::init(1)};
  Option<int> zero{*this, "zero", llvm::cl::desc("Stage of ZeRO: 0 to 3"),
                   llvm::cl::init(0)};
  Option<std::string> freeze{
      *this, "freeze",
      llvm::cl::desc("Glob of parameters that are not trained")};
  Option<std::string> trainOnly{
      *this, "train-only",
      llvm::cl::desc("Glob of parameters that are trained")};
  Option<std::string> tie{
      *this, "tie",
      llvm::cl::desc("A,B or A,B:transposed; several are split at semicolons")};

  TrainRequest request() const {
    TrainRequest train;
    train.optimizer = optimizer;
    train.momentum = momentum;
    train.weightDecay = weightDecay;
    train.clipNorm = clipNorm;
    train.accumulate = accumulate;
    train.zero = zero;
    train.dropout = dropout;
    train.recompute = !recompute.empty()     ? recompute.getValue()
                      : memoryBudget.empty() ? "none"
                                             : "auto";
    if (!freeze.empty())
      train.freeze = {freeze};
    if (!trainOnly.empty())
      train.trainOnly = {trainOnly};
    llvm::SmallVector<llvm::StringRef> ties;
    llvm::StringRef(tie).split(ties, ';', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef text : ties)
      train.ties.push_back(text.str());
    return train;
  }
};

struct NvvmOptions : PassPipelineOptions<NvvmOptions> {
  Option<std::string> arch{*this, "arch",
                           llvm::cl::desc("Least compute capability: sm_90"),
                           llvm::cl::init("sm_90")};
  Option<std::string> precision{*this, "precision",
                                llvm::cl::desc("f32, f64, bf16, f16 or tf32"),
                                llvm::cl::init("f32")};
  Option<std::string> to{
      *this, "to", llvm::cl::desc("gpu: before the last lowering, or nvvm"),
      llvm::cl::init("nvvm")};
};

void buildTrain(OpPassManager &passes, const TrainOptions &options) {
  TrainRequest train = options.request();
  addLossPasses(passes, train, options.loss, {});
  addSimplifyPasses(passes);
  if (options.raise)
    addRaisePasses(passes);
  MtpConvertPrecisionOptions precision;
  precision.precision = options.precision;
  precision.masterWeights = true;
  passes.addPass(createMtpConvertPrecision(precision));
  addTrainablePasses(passes, train);
  if (!options.memoryBudget.empty()) {
    train.sequenceParallel = options.sequenceParallel;
    return addBudget(passes, options, train);
  }
  addApply(passes, options);
  addDifferentiatePasses(passes, train);
}

} // namespace

void mtp::registerMtpPipelines() {
  *explainFlag;
  PassPipelineRegistration<ShardOptions>(
      "mtp-shard",
      "Choose a plan for a mesh and make layouts and conversions explicit",
      buildShard);
  PassPipelineRegistration<ShardOptions>(
      "mtp-plan",
      "Choose a plan for a mesh and write it as attributes, which "
      "mtp-apply-plan "
      "and mtp-run keep to",
      buildPlan);
  PassPipelineRegistration<TrainOptions>(
      "mtp-train",
      "Make a training step for a mesh: forward, backward and update with "
      "layouts",
      buildTrain);
  PassPipelineRegistration<>("mtp-to-spmd",
                             "Turn a typed module into the program of one rank",
                             [](OpPassManager &passes) {
                               addPartitionPasses(passes);
                               addFusePasses(passes);
                             });
  PassPipelineRegistration<NvvmOptions>(
      "mtp-to-nvvm",
      "Replace the program of a rank by its device code and its launches",
      [](OpPassManager &passes, const NvvmOptions &options) {
        passes.addPass(createSpmdSplitEpilogues());
        addOverlapPasses(passes, options.arch);
        SpmdLowerToGpuOptions lower;
        lower.arch = options.arch;
        lower.precision = options.precision;
        lower.to = options.to;
        passes.addPass(createSpmdLowerToGpu(lower));
      });
  PassPipelineRegistration<>(
      "mtp-to-llvm",
      "Replace the program of a rank by its kernels in the llvm dialect",
      [](OpPassManager &passes) { passes.addPass(createSpmdLowerKernels()); });
}
