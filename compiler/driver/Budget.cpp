// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Budget.h"

#include "compiler/autodiff/Recompute.h"
#include "compiler/codegen/BufferPlan.h"
#include "compiler/codegen/ProgramEmitter.h"
#include "compiler/driver/Pipelines.h"
#include "compiler/plan/StepTime.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mtp;
using nlohmann::json;

/// The axis over which ZeRO cuts.
static constexpr StringLiteral kDataAxis = "dp";
static constexpr int kStages = 4;
static constexpr size_t kNamedTensors = 5;

//===----------------------------------------------------------------------===//
// What a rank holds
//===----------------------------------------------------------------------===//

static int64_t localBytes(const Artifact &artifact,
                          const TensorLayout &layout) {
  int64_t bytes = byteSize(layout.type);
  for (int64_t extent : layout.localShape(artifact.axes))
    bytes *= extent;
  return bytes;
}

/// The values of the arena that are needed at the step which needs most.
static std::vector<ResidentTensor> peakValues(func::FuncOp function) {
  BufferPlan plan(function);
  SmallVector<Value> homes;
  std::map<int64_t, int64_t> changes; // of the bytes in use, by step
  for (Operation &op : function.getBody().front())
    for (Value result : op.getResults()) {
      auto place = plan.place(result);
      if (plan.home(result) != result || !place ||
          place->space != BufferRef::Space::Arena)
        continue;
      homes.push_back(result);
      auto [first, last] = plan.life(result);
      changes[first] += place->bytes;
      changes[last + 1] -= place->bytes;
    }
  int64_t used = 0, most = -1, peak = 0;
  for (auto [step, change] : changes) {
    used += change;
    if (used > most) {
      most = used;
      peak = step;
    }
  }
  std::vector<ResidentTensor> tensors;
  for (Value home : homes)
    if (auto [first, last] = plan.life(home); first <= peak && peak <= last)
      tensors.push_back(
          {plan::valueName(home), "value", plan.place(home)->bytes});
  return tensors;
}

/// A value and its gradients have the name of one node, and so do the pieces of
/// a parameter: they are named once.
static std::vector<ResidentTensor>
joined(const std::vector<ResidentTensor> &tensors) {
  std::vector<ResidentTensor> result;
  std::map<std::pair<std::string, std::string>, size_t> index;
  for (const ResidentTensor &tensor : tensors) {
    auto [known, isNew] =
        index.try_emplace({tensor.name, tensor.what}, result.size());
    if (isNew) {
      result.push_back(tensor);
      continue;
    }
    result[known->second].bytes += tensor.bytes;
    ++result[known->second].count;
  }
  return result;
}

std::vector<ResidentTensor>
mtp::largestTensors(ModuleOp module, const Artifact &artifact, size_t most) {
  std::vector<ResidentTensor> tensors;
  for (const Parameter &parameter : artifact.parameters)
    tensors.push_back({parameter.name,
                       parameter.state.empty() ? "parameter" : parameter.state,
                       localBytes(artifact, parameter.layout)});
  const Entry *largest = nullptr;
  for (const Entry &entry : artifact.entries) {
    if (!largest || entry.arenaBytes > largest->arenaBytes)
      largest = &entry;
    for (const Input &input : entry.inputs)
      tensors.push_back(
          {input.name, "input", localBytes(artifact, input.layout)});
    for (const Output &output : entry.outputs)
      tensors.push_back(
          {output.name, "output", localBytes(artifact, output.layout)});
  }
  if (largest)
    llvm::append_range(
        tensors, peakValues(module.lookupSymbol<func::FuncOp>(largest->name)));
  tensors = joined(tensors);
  llvm::stable_sort(
      tensors, [](const auto &a, const auto &b) { return a.bytes > b.bytes; });
  if (tensors.size() > most)
    tensors.resize(most);
  return tensors;
}

std::string mtp::text(const std::vector<ResidentTensor> &tensors) {
  std::string text;
  for (const ResidentTensor &tensor : tensors)
    text += (text.empty() ? "'" : ", '") + tensor.name + "' (" +
            (tensor.count > 1 ? std::to_string(tensor.count) + " x " : "") +
            tensor.what + ") " + std::to_string(tensor.bytes) + " bytes";
  return text;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

/// Layouts and a stage of ZeRO: the typed program before activations are
/// computed again and parameters updated.
struct BudgetSearch::Pair {
  BudgetTrial base;
  OwningOpRef<ModuleOp> module;
};

BudgetSearch::BudgetSearch(ModuleOp module, const CompileRequest &request)
    : module(module), request(request) {}

TrainRequest BudgetSearch::trainOf(const BudgetTrial &trial) const {
  TrainRequest train = *request.train;
  train.zero = trial.zero;
  train.sequenceParallel = choices[trial.layouts].options.sequenceParallel;
  if (train.recompute == "auto") {
    train.recompute = trial.layers ? "layers" : "none";
    train.recomputeLayers = trial.layers ? trial.layers : -1;
  }
  return train;
}

std::optional<TrainRequest> BudgetSearch::train() const {
  return request.train ? std::optional(trainOf(result())) : std::nullopt;
}

static LogicalResult runPasses(ModuleOp module,
                               function_ref<void(OpPassManager &)> add) {
  PassManager passes(module.getContext());
  passes.enableVerifier(false);
  add(passes);
  return passes.run(module);
}

namespace {
/// Keeps the first error and swallows all other diagnostics.
struct Quiet {
  explicit Quiet(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
              error.empty())
            error = diagnostic.str();
          return success();
        }) {}
  std::string error;
  ScopedDiagnosticHandler handler;
};
} // namespace

static std::string layoutsText(const plan::PlanOptions &options) {
  if (options.sequenceParallel)
    return "sequence parallel";
  return options.objective == plan::Objective::Time ? "layouts of least time"
                                                    : "weights split";
}

LogicalResult
BudgetSearch::addLayouts(ArrayRef<std::pair<std::string, int64_t>> axes,
                         const plan::PlanOptions &options) {
  auto first = plan::choosePlan(module, axes, options);
  if (failed(first))
    return failure();
  add({std::move(*first), options, layoutsText(options)});
  if (options.sequenceParallel)
    return success();
  plan::PlanOptions other = options;
  auto addOther = [&] {
    Quiet quiet(module.getContext());
    auto plan = plan::choosePlan(module, axes, other);
    if (succeeded(plan))
      add({std::move(*plan), other, layoutsText(other)});
  };
  if (options.objective == plan::Objective::Time) {
    other.objective = plan::Objective::Parallel;
    addOther();
  }
  bool splits = llvm::any_of(axes, [](const auto &axis) {
    return axis.first != kDataAxis && axis.second > 1;
  });
  other.sequenceParallel = true;
  if (splits)
    addOther();
  return success();
}

std::vector<BudgetSearch::Pair> BudgetSearch::makePairs() {
  std::vector<Pair> pairs;
  for (size_t layouts = 0; layouts < choices.size(); ++layouts) {
    const plan::Plan &plan = choices[layouts].plan;
    bool free = request.train && request.train->zero == 0 &&
                llvm::any_of(plan.axes, [](const auto &axis) {
                  return axis.first == kDataAxis && axis.second > 1;
                });
    int first = request.train ? request.train->zero : 0;
    for (int zero = first; zero < (free ? kStages : first + 1); ++zero) {
      Pair pair;
      pair.base.layouts = layouts;
      pair.base.zero = zero;
      pair.module = module.clone();
      Quiet quiet(module.getContext());
      bool good = succeeded(plan::applyPlan(*pair.module, plan));
      if (good && request.train)
        good = succeeded(runPasses(*pair.module, [&](OpPassManager &passes) {
          addGradientPasses(passes, trainOf(pair.base));
        }));
      if (good)
        pairs.push_back(std::move(pair));
      else
        trials.push_back(
            {layouts, zero, 0, plan::kIllegal, 0,
             quiet.error.empty() ? "it can't be made" : quiet.error});
    }
  }
  return pairs;
}

/// Makes a program as far as its buffers are planned and counts its bytes.
void BudgetSearch::emitTrial(ModuleOp made, BudgetTrial &trial) {
  Quiet quiet(made.getContext());
  KernelModule kernels(made.getContext());
  Artifact artifact;
  plan::predictCollectives(made, request.train ? request.train->accumulate : 1);
  if (failed(runPasses(made,
                       [](OpPassManager &passes) {
                         addPartitionPasses(passes);
                         addFusePasses(passes);
                       })) ||
      failed(emitProgram(made, kernels, artifact))) {
    trial.failure = quiet.error.empty() ? "it can't be made" : quiet.error;
    return;
  }
  trial.bytes = footprintOf(artifact).total;
  bool least = llvm::none_of(trials, [&](const BudgetTrial &other) {
    return other.fits(trial.bytes);
  });
  if (least)
    largest = largestTensors(made, artifact, kNamedTensors);
}

size_t BudgetSearch::attempt(Pair &pair, int64_t layers) {
  BudgetTrial trial = pair.base;
  OwningOpRef<ModuleOp> made = pair.module->clone();
  if (request.train) {
    Quiet quiet(module.getContext());
    auto main = made->lookupSymbol<func::FuncOp>("main");
    if (layers)
      trial.layers = autodiff::recomputeLayers(main, layers).segments - 1;
    if (layers > 0)
      trial.layers = std::min(trial.layers, layers);
    trial.layers = std::max<int64_t>(trial.layers, 0);
    if (failed(runPasses(*made, [&](OpPassManager &passes) {
          addUpdatePasses(passes, trainOf(trial));
        })))
      trial.failure = quiet.error.empty() ? "it can't be made" : quiet.error;
  }
  if (trial.failure.empty()) {
    trial.time =
        plan::stepTime(*made, request.train ? request.train->accumulate : 1);
    emitTrial(*made, trial);
  }
  trials.push_back(std::move(trial));
  return trials.size() - 1;
}

/// Finds the fastest program of a pair that fits.
void BudgetSearch::searchPair(Pair &pair) {
  auto take = [&](size_t trial) {
    const BudgetTrial &made = trials[trial];
    bool fits = made.fits(request.memoryBudget);
    bool better = fits && (!found || made.time < result().time);
    if (!found && !fits && made.failure.empty() &&
        (!result().failure.empty() || made.bytes < result().bytes))
      better = true;
    if (better)
      chosen = trial;
    found |= fits;
    return fits;
  };
  bool mayRepeat = request.train && request.train->recompute == "auto";
  bool repeats = request.train && request.train->recompute == "layers";
  if (take(attempt(pair, repeats ? request.train->recomputeLayers : 0)) ||
      !mayRepeat)
    return;
  size_t all = attempt(pair, -1);
  int64_t few = 0, enough = trials[all].layers;
  if (!take(all))
    return;
  while (enough - few > 1) {
    int64_t middle = few + (enough - few) / 2;
    (take(attempt(pair, middle)) ? enough : few) = middle;
  }
}

bool BudgetSearch::run() {
  std::vector<Pair> pairs = makePairs();
  std::vector<std::pair<plan::Time, Pair *>> order;
  for (Pair &pair : pairs) {
    // What the step takes at least: nothing is computed again.
    OwningOpRef<ModuleOp> made = pair.module->clone();
    Quiet quiet(module.getContext());
    if (request.train)
      (void)runPasses(*made, [&](OpPassManager &passes) {
        addUpdatePasses(passes, trainOf(pair.base));
      });
    order.push_back(
        {plan::stepTime(*made, request.train ? request.train->accumulate : 1),
         &pair});
  }
  llvm::stable_sort(
      order, [](const auto &a, const auto &b) { return a.first < b.first; });
  for (auto [time, pair] : order)
    if (!found || time < result().time)
      searchPair(*pair);
  return found;
}

//===----------------------------------------------------------------------===//
// What is said about it
//===----------------------------------------------------------------------===//

std::string BudgetSearch::describe(const BudgetTrial &trial) const {
  std::string text = choices[trial.layouts].text;
  if (!request.train)
    return text;
  text += trial.zero ? ", ZeRO stage " + std::to_string(trial.zero)
                     : ", without ZeRO";
  if (!trial.layers)
    return text + ", nothing computed again";
  return text + ", " + std::to_string(trial.layers) + " segment" +
         (trial.layers > 1 ? "s" : "") + " computed again";
}

std::string BudgetSearch::message() const {
  std::string budget = std::to_string(request.memoryBudget);
  const BudgetTrial &trial = result();
  std::string bytes = std::to_string(trial.bytes);
  if (found)
    return "memory: " + bytes + " of " + budget + " bytes on each rank; " +
           describe(trial) + " (the fastest that fits, " +
           std::to_string(trials.size()) + " tried)";
  return "no program fits a memory budget of " + budget +
         " bytes a rank; the least that would do is " + bytes + " (" +
         describe(trial) +
         "). Largest tensors of a rank then: " + text(largest);
}

json BudgetSearch::json() const {
  auto entry = [&](const BudgetTrial &trial) {
    nlohmann::json value = {
        {"layouts", choices[trial.layouts].text},
        {"zero", trial.zero},
        {"sequence_parallel", choices[trial.layouts].options.sequenceParallel},
        {"recompute", trial.layers ? "layers" : "none"},
        {"recompute_segments", trial.layers}};
    return value;
  };
  nlohmann::json tried = nlohmann::json::array();
  for (const BudgetTrial &trial : trials) {
    nlohmann::json value = entry(trial);
    value["time_us"] = trial.time < plan::kIllegal
                           ? nlohmann::json(double(trial.time) / 1e6)
                           : nlohmann::json(nullptr);
    if (trial.failure.empty())
      value["bytes"] = trial.bytes;
    else
      value["failure"] = trial.failure;
    tried.push_back(std::move(value));
  }
  return {{"bytes", request.memoryBudget},
          {"used", result().bytes},
          {"text", message()},
          {"chosen", entry(result())},
          {"tried", std::move(tried)}};
}
