// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Budget.h"

#include "compiler/autodiff/Recompute.h"
#include "compiler/codegen/BufferPlan.h"
#include "compiler/codegen/ProgramEmitter.h"
#include "compiler/codegen/cuda/GpuKernels.h"
#include "compiler/driver/Pipelines.h"
#include "compiler/plan/Memory.h"
#include "compiler/plan/StepTime.h"
#include "compiler/training/Training.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mtp;
using nlohmann::json;

/// The axis over which ZeRO cuts.
static constexpr StringLiteral kDataAxis = "dp";
static constexpr size_t kNamedTensors = 5;
/// More bytes than any model has.
static constexpr int64_t kUnlimited = int64_t(1) << 59;
/// Layouts that are tried for a stage of ZeRO, besides the least and the most.
static constexpr int kLayoutSteps = 6;
/// Points between the least and the most, of layouts or of segments, that are
/// tried where the least doesn't fit.
static constexpr int kProbes = 3;
/// How often a smaller program is searched for, to name the least budget.
static constexpr int kLeastRounds = 6;

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
  plan::Time leastTime = plan::kIllegal;
  OwningOpRef<ModuleOp> module;
};

BudgetSearch::BudgetSearch(ModuleOp module, const CompileRequest &request)
    : module(module), request(request), limit(request.memoryBudget) {}

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
  add({std::move(*first), options, layoutsText(options), true});
  if (options.sequenceParallel)
    return success();
  this->axes = axes.vec();
  freeOptions = options;
  plan::PlanOptions other = options;
  auto addOther = [&] {
    Quiet quiet(module.getContext());
    auto plan = plan::choosePlan(module, axes, other);
    if (succeeded(plan))
      add({std::move(*plan), other, layoutsText(other), true});
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

std::optional<BudgetSearch::Pair> BudgetSearch::makePair(size_t layouts,
                                                         int zero) {
  Pair pair;
  pair.base.layouts = layouts;
  pair.base.zero = zero;
  pair.module = module.clone();
  Quiet quiet(module.getContext());
  bool good = succeeded(plan::applyPlan(*pair.module, choices[layouts].plan));
  if (good && request.train)
    good = succeeded(runPasses(*pair.module, [&](OpPassManager &passes) {
      addGradientPasses(passes, trainOf(pair.base));
    }));
  if (!good) {
    BudgetTrial trial = pair.base;
    trial.failure = quiet.error.empty() ? "it can't be made" : quiet.error;
    trials.push_back(std::move(trial));
    return std::nullopt;
  }
  // What the step takes at least: nothing is computed again.
  OwningOpRef<ModuleOp> made = pair.module->clone();
  if (request.train)
    (void)runPasses(*made, [&](OpPassManager &passes) {
      addUpdatePasses(passes, trainOf(pair.base));
    });
  pair.leastTime = plan::stepTime(*made, microBatches());
  return pair;
}

/// The stages of ZeRO that may be chosen.
std::vector<int> BudgetSearch::stages() const {
  if (!request.train)
    return {0};
  bool isFree = request.train->zero == 0 &&
                llvm::any_of(choices[0].plan.axes, [](const auto &axis) {
                  return axis.first == kDataAxis && axis.second > 1;
                });
  return isFree ? std::vector<int>{0, 1, 2, 3}
                : std::vector<int>{request.train->zero};
}

/// Makes a program as far as its buffers are planned and counts its bytes.
void BudgetSearch::emitTrial(ModuleOp made, BudgetTrial &trial) {
  Quiet quiet(made.getContext());
  bool isOnGpu = request.device != "cpu";
  std::unique_ptr<KernelModule> kernels =
      isOnGpu ? std::make_unique<GpuKernelModule>(
                    made.getContext(), request.gpuArch, request.precision)
              : std::make_unique<KernelModule>(made.getContext());
  Artifact artifact;
  plan::predictCollectives(made, microBatches());
  if (failed(runPasses(made,
                       [&](OpPassManager &passes) {
                         addPartitionPasses(passes);
                         isOnGpu ? addGpuFusePasses(passes, request.gpuArch)
                                 : addFusePasses(passes);
                       })) ||
      failed(emitProgram(made, *kernels, artifact))) {
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
    auto known = llvm::find_if(trials, [&](const BudgetTrial &other) {
      return other.layouts == trial.layouts && other.zero == trial.zero &&
             other.layers == trial.layers;
    });
    if (known != trials.end())
      return size_t(known - trials.begin());
    if (failed(runPasses(*made, [&](OpPassManager &passes) {
          addUpdatePasses(passes, trainOf(trial));
        })))
      trial.failure = quiet.error.empty() ? "it can't be made" : quiet.error;
  }
  if (trial.failure.empty()) {
    trial.time = plan::stepTime(*made, microBatches());
    emitTrial(*made, trial);
  }
  trials.push_back(std::move(trial));
  return trials.size() - 1;
}

void BudgetSearch::choose(int64_t bytes) {
  auto better = [&](const BudgetTrial &a, const BudgetTrial &b) {
    if (a.fits(bytes) != b.fits(bytes))
      return a.fits(bytes);
    if (a.fits(bytes))
      return a.time < b.time;
    if (a.failure.empty() != b.failure.empty())
      return a.failure.empty();
    return a.failure.empty() && a.bytes < b.bytes;
  };
  chosen = 0;
  for (size_t trial = 1; trial < trials.size(); ++trial)
    if (better(trials[trial], trials[chosen]))
      chosen = trial;
  found = !trials.empty() && result().fits(bytes);
}

int64_t BudgetSearch::fewestBytes() const {
  int64_t fewest = -1;
  for (const BudgetTrial &trial : trials)
    if (trial.failure.empty() && (fewest < 0 || trial.bytes < fewest))
      fewest = trial.bytes;
  return fewest;
}

/// Finds the fastest program of a pair that fits.
void BudgetSearch::searchPair(Pair &pair) {
  size_t last = 0;
  auto take = [&](int64_t layers) {
    last = attempt(pair, layers);
    choose(limit);
    return trials[last].fits(limit);
  };
  bool mayRepeat = request.train && request.train->recompute == "auto";
  bool repeats = request.train && request.train->recompute == "layers";
  if (take(repeats ? request.train->recomputeLayers : 0) || !mayRepeat)
    return;
  bool fits = take(-1);
  int64_t few = 0, enough = trials[last].layers, all = enough;
  // Computing again needs room of its own: fewer segments may need fewer bytes.
  for (int probe = kProbes; probe > 0 && !fits; --probe) {
    enough = all * probe / (kProbes + 1);
    fits = enough > 0 && enough < all && take(enough);
  }
  if (!fits)
    return;
  while (enough - few > 1) {
    int64_t middle = few + (enough - few) / 2;
    (take(middle) ? enough : few) = middle;
  }
}

void BudgetSearch::search(std::vector<Pair> &pairs) {
  choose(limit);
  for (Pair &pair : pairs)
    if (!found || pair.leastTime < result().time)
      searchPair(pair);
  bool fitsAtOnce =
      found && !pairs.empty() && result().time == pairs.front().leastTime;
  if (axes && !fitsAtOnce)
    for (int zero : stages())
      searchLayouts(zero);
}

bool BudgetSearch::run() {
  std::vector<Pair> pairs;
  size_t given = choices.size();
  for (size_t layouts = 0; layouts < given; ++layouts)
    for (int zero : stages())
      if (auto pair = makePair(layouts, zero))
        pairs.push_back(std::move(*pair));
  llvm::stable_sort(pairs, [](const Pair &a, const Pair &b) {
    return a.leastTime < b.leastTime;
  });
  search(pairs);
  for (int round = 0; !found && round < kLeastRounds; ++round) {
    int64_t fewest = fewestBytes();
    if (fewest < 0)
      break;
    limit = fewest;
    search(pairs);
    choose(request.memoryBudget);
    if (fewestBytes() == fewest)
      break;
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Layouts under the budget
//===----------------------------------------------------------------------===//

/// The block of a parameter, its gradient and its states.
static int64_t parameterBytes(Operation *op, const Layout &layout,
                              const MeshShape &mesh,
                              const std::optional<TrainRequest> &train) {
  plan::TensorInfo info = plan::tensorInfo(op->getResult(0));
  int64_t whole = plan::arenaBytes(info, layout, mesh);
  if (!train || !op->hasAttr(training::names::trainable))
    return whole;
  int64_t cut = whole;
  SmallVector<int, 2> axes = mesh.find(kDataAxis);
  if (train->zero > 0 && axes.size() == 1)
    if (auto less = training::cutOverAxis(layout, info.shape, axes[0], mesh))
      cut = plan::arenaBytes(info, *less, mesh);
  bool adamw = train->optimizer == "adamw";
  int64_t states = adamw ? 2 : train->momentum > 0 ? 1 : 0;
  return (train->zero > 2 ? cut : whole) +
         (1 + train->keepGradients) * (train->zero > 1 ? cut : whole) +
         states * (train->zero > 0 ? cut : whole);
}

/// The cheapest layouts within `bytes` of the planner's model.
FailureOr<plan::Plan>
BudgetSearch::planWithin(int64_t bytes, int zero,
                         plan::PlanOptions options) const {
  std::optional<TrainRequest> train = request.train;
  if (train)
    train->zero = zero;
  plan::PlanBudget budget;
  budget.bytes = bytes < kUnlimited ? bytes : INT64_MAX;
  budget.training = train.has_value();
  budget.parameterBytes = [&](Operation *op, const Layout &layout,
                              const MeshShape &mesh) {
    return parameterBytes(op, layout, mesh, train);
  };
  options.budget = &budget;
  return plan::choosePlan(module, *axes, options);
}

/// The same, as an index into `choices`. If nothing is as small, the cheapest
/// of the smallest.
std::optional<size_t>
BudgetSearch::layoutsWithin(int64_t bytes, int zero,
                            const plan::PlanOptions &options) {
  auto known = planned.find({zero, bytes});
  if (known != planned.end())
    return known->second;
  Quiet quiet(module.getContext());
  int64_t most = bytes;
  auto plan = planWithin(most, zero, options);
  if (succeeded(plan) && plan->bytes > most) {
    most = plan->bytes;
    plan = planWithin(most, zero, options);
  }
  if (failed(plan)) {
    unsearched = quiet.error;
    return std::nullopt;
  }
  for (auto [key, index] : planned)
    if (key.first == zero && choices[index].plan.bytes == plan->bytes)
      return planned[{zero, bytes}] = index;
  add({std::move(*plan), options, "layouts for the budget", false, most});
  return planned[{zero, bytes}] = choices.size() - 1;
}

FailureOr<plan::Plan> BudgetSearch::explained() const {
  plan::PlanOptions options = layouts().options;
  options.explain = true;
  options.prefer = &layouts().plan;
  if (layouts().limit)
    return planWithin(layouts().limit, result().zero, options);
  if (layouts().again)
    return plan::choosePlan(module, layouts().plan.axes, options);
  return layouts().plan;
}

/// Finds by bisection the largest bytes of the planner's model (Memory.h) whose
/// cheapest layouts give a program that fits; the model mostly counts more than
/// there is.
void BudgetSearch::searchLayouts(int zero) {
  // The bytes of the plan, and whether its program fits.
  auto tryBytes = [&](int64_t bytes) -> std::pair<int64_t, bool> {
    auto layouts = layoutsWithin(bytes, zero, *freeOptions);
    if (!layouts)
      return {0, false};
    int64_t needed = choices[*layouts].plan.bytes;
    auto isOfPair = [&](const BudgetTrial &trial) {
      return trial.layouts == *layouts && trial.zero == zero;
    };
    auto fits = [&](const BudgetTrial &trial) {
      return isOfPair(trial) && trial.fits(limit);
    };
    bool isKnown = llvm::any_of(trials, isOfPair);
    bool mayRepeat = request.train && request.train->recompute == "auto";
    if (isKnown && !mayRepeat)
      return {needed, llvm::any_of(trials, fits)};
    auto pair = makePair(*layouts, zero);
    if (!pair)
      return {needed, false};
    // What is slower than a program that fits needs no trial: more bytes.
    if (!isKnown && found && pair->leastTime >= result().time)
      return {needed, true};
    searchPair(*pair);
    return {needed, llvm::any_of(trials, fits)};
  };
  auto [least, fits] = tryBytes(1);
  if (!least)
    return;
  int64_t most = tryBytes(kUnlimited).first, first = least;
  // The fewest bytes of the model need not be the fewest of a program.
  for (int probe = 1; probe <= kProbes && !fits; ++probe) {
    least = first + (most - first) / (kProbes + 1) * probe;
    fits = tryBytes(least).second;
  }
  for (int step = 0; step < kLayoutSteps && fits && least < most; ++step) {
    int64_t middle = least + (most - least) / 2;
    auto [needed, good] = tryBytes(middle);
    if (good)
      least = middle;
    else
      most = std::min(middle, needed) - 1;
  }
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
  std::string note =
      unsearched.empty() ? "" : "; layouts between these were not searched";
  if (found)
    return "memory: " + bytes + " of " + budget + " bytes on each rank; " +
           describe(trial) + " (the fastest that fits, " +
           std::to_string(trials.size()) + " tried" + note + ")";
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
    if (int64_t bound = choices[trial.layouts].plan.bytes)
      value["bound"] = bound;
    if (trial.failure.empty())
      value["bytes"] = trial.bytes;
    else
      value["failure"] = trial.failure;
    tried.push_back(std::move(value));
  }
  return {{"bytes", request.memoryBudget}, {"unsearched", unsearched},
          {"used", result().bytes},        {"text", message()},
          {"chosen", entry(result())},     {"tried", std::move(tried)}};
}
