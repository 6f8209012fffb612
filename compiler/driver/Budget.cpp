// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Budget.h"

#include "compiler/autodiff/Recompute.h"
#include "compiler/codegen/ProgramEmitter.h"
#include "compiler/driver/Pipelines.h"
#include "compiler/driver/PlannedBytes.h"
#include "compiler/plan/StepTime.h"
#include "compiler/training/Training.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mtp;

static constexpr size_t kNamedTensors = 5;
/// More bytes than any model has.
static constexpr int64_t kUnlimited = int64_t(1) << 59;
/// Layouts that are tried for a stage of ZeRO, between two limits.
static constexpr int kLayoutSteps = 6;
/// Points between the least and the most, of layouts or of segments, that are
/// tried where the least doesn't fit.
static constexpr int kProbes = 3;
/// Points of a second look, and the work (BudgetPlans) of both that allows it.
static constexpr int kPoints = 31;
static constexpr int64_t kPointWork = int64_t(1) << 21;
/// How often a smaller program is searched for, to name the least budget.
static constexpr int kLeastRounds = 6;

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

/// Layouts and a stage of ZeRO: the typed program before activations are
/// computed again and parameters updated.
struct BudgetSearch::Pair {
  BudgetTrial base;
  plan::Time leastTime = plan::kIllegal;
  OwningOpRef<ModuleOp> module;
  /// The program that computes nothing again, until it was tried.
  OwningOpRef<ModuleOp> whole;
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
  plans = std::make_unique<plan::BudgetPlans>(module, axes, options);
  auto first = plans->choose(options);
  if (failed(first))
    return failure();
  add({std::move(*first), options, layoutsText(options), true});
  this->axes = axes.vec();
  freeOptions = options;
  return success();
}

void BudgetSearch::addSmallerLayouts() {
  if (!axes || freeOptions->sequenceParallel)
    return;
  plan::PlanOptions other = *freeOptions;
  auto addOther = [&] {
    Quiet quiet(module.getContext());
    auto plan = plans->choose(other);
    if (succeeded(plan))
      add({std::move(*plan), other, layoutsText(other), true});
  };
  if (other.objective == plan::Objective::Time) {
    other.objective = plan::Objective::Parallel;
    addOther();
  }
  bool splits = llvm::any_of(*axes, [](const auto &axis) {
    return axis.first != plan::kDataAxis && axis.second > 1;
  });
  other.sequenceParallel = true;
  if (splits)
    addOther();
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
  if (good) {
    pair.whole = request.train ? OwningOpRef<ModuleOp>(pair.module->clone())
                               : std::move(pair.module);
    good = !request.train ||
           succeeded(runPasses(*pair.whole, [&](OpPassManager &passes) {
             addUpdatePasses(passes, trainOf(pair.base));
           }));
  }
  if (!good) {
    BudgetTrial trial = pair.base;
    trial.failure = quiet.error.empty() ? "it can't be made" : quiet.error;
    trials.push_back(std::move(trial));
    return std::nullopt;
  }
  pair.leastTime = plan::stepTime(*pair.whole, microBatches());
  return pair;
}

/// The stages of ZeRO that may be chosen.
std::vector<int> BudgetSearch::stages() const {
  if (!request.train)
    return {0};
  bool isFree = request.train->zero == 0 &&
                llvm::any_of(choices[0].plan.axes, [](const auto &axis) {
                  return axis.first == plan::kDataAxis && axis.second > 1;
                });
  return isFree ? std::vector<int>{0, 1, 2, 3}
                : std::vector<int>{request.train->zero};
}

namespace {
/// Launches without code: bytes depend on the buffers alone, and those are
/// planned already.
struct NoKernels : KernelModule {
  using KernelModule::KernelModule;
  FailureOr<SmallVector<KernelLaunch>> launches(Operation *, PlaceOf) override {
    return SmallVector<KernelLaunch>(1);
  }
};
} // namespace

/// Makes a program as far as its buffers are planned and counts its bytes.
void BudgetSearch::emitTrial(OwningOpRef<ModuleOp> made, BudgetTrial &trial) {
  Quiet quiet(made->getContext());
  Artifact artifact;
  plan::predictCollectives(*made, microBatches());
  bool isOnGpu = request.device != "cpu";
  bool good = succeeded(runPasses(*made, [&](OpPassManager &passes) {
    addPartitionPasses(passes);
    isOnGpu ? addGpuFusePasses(passes, request.gpuArch) : addFusePasses(passes);
  }));
  if (good) {
    NoKernels kernels(made->getContext());
    good = succeeded(emitProgram(*made, kernels, artifact));
  }
  if (!good) {
    trial.failure = quiet.error.empty() ? "it can't be made" : quiet.error;
    return;
  }
  trial.bytes = footprintOf(artifact).total;
  bool isLeast = llvm::none_of(trials, [&](const BudgetTrial &other) {
    return other.fits(trial.bytes);
  });
  if (isLeast) {
    smallest = std::move(made);
    smallestArtifact = std::move(artifact);
  }
}

size_t BudgetSearch::attempt(Pair &pair, int64_t layers) {
  BudgetTrial trial = pair.base;
  OwningOpRef<ModuleOp> made;
  if (layers) {
    made = pair.module->clone();
    auto main = made->lookupSymbol<func::FuncOp>("main");
    trial.layers = autodiff::recomputeLayers(main, layers).segments - 1;
    if (layers > 0)
      trial.layers = std::min(trial.layers, layers);
    trial.layers = std::max<int64_t>(trial.layers, 0);
  }
  auto known = llvm::find_if(trials, [&](const BudgetTrial &other) {
    return other.layouts == trial.layouts && other.zero == trial.zero &&
           other.layers == trial.layers;
  });
  if (known != trials.end())
    return size_t(known - trials.begin());
  if (trial.layers) {
    Quiet quiet(module.getContext());
    if (failed(runPasses(*made, [&](OpPassManager &passes) {
          addUpdatePasses(passes, trainOf(trial));
        })))
      trial.failure = quiet.error.empty() ? "it can't be made" : quiet.error;
    else
      trial.time = plan::stepTime(*made, microBatches());
  } else {
    made = std::move(pair.whole);
    trial.time = pair.leastTime;
  }
  if (trial.failure.empty())
    emitTrial(std::move(made), trial);
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
  searched.insert({pair.base.layouts, pair.base.zero, limit});
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
  auto addPairs = [&](size_t first) {
    for (size_t layouts = first, end = choices.size(); layouts < end; ++layouts)
      for (int zero : stages())
        if (auto pair = makePair(layouts, zero))
          pairs.push_back(std::move(*pair));
    llvm::stable_sort(pairs, [](const Pair &a, const Pair &b) {
      return a.leastTime < b.leastTime;
    });
  };
  addPairs(0);
  // The layouts of the objective, if they fit. (Training chooses more.)
  if (!request.train && !pairs.empty()) {
    searchPair(pairs.front());
    if (found)
      return true;
  }
  const size_t given = choices.size();
  addSmallerLayouts();
  addPairs(given);
  search(pairs);
  for (int round = 0; !found && round < kLeastRounds; ++round) {
    int64_t fewest = fewestBytes();
    if (fewest < 0)
      break;
    limit = fewest - 1;
    search(pairs);
    choose(request.memoryBudget);
    if (found) { // there is room, after all: the fastest in it
      limit = request.memoryBudget;
      search(pairs);
    }
    if (fewestBytes() == fewest)
      break;
  }
  if (!found && smallest)
    largest = largestTensors(*smallest, smallestArtifact, kNamedTensors);
  if (layouts().limit)
    (void)plans->complete(choices[result().layouts].plan);
  return found;
}

//===----------------------------------------------------------------------===//
// Layouts under the budget
//===----------------------------------------------------------------------===//

/// Of the planner's sums of bytes.
static plan::PlanBudget budgetOf(int64_t bytes, const CompileRequest &request,
                                 int zero, bool bounds) {
  std::optional<TrainRequest> train = request.train;
  if (train)
    train->zero = zero;
  return plannedBytes(bytes < kUnlimited ? bytes : INT64_MAX, train, bounds);
}

/// As BudgetPlans has it.
static int kindOf(int zero, bool bounds) { return 2 * zero + bounds; }

static bool sameLayouts(const plan::Plan &a, const plan::Plan &b) {
  auto same = [](const std::vector<plan::PlannedOp> &x,
                 const std::vector<plan::PlannedOp> &y) {
    return llvm::equal(x, y,
                       [](const plan::PlannedOp &p, const plan::PlannedOp &q) {
                         return p.operands == q.operands &&
                                p.results == q.results && p.copies == q.copies;
                       });
  };
  return same(a.arguments, b.arguments) && same(a.ops, b.ops);
}

/// The first of the choices that has the layouts of `plan` and isn't held to an
/// estimate or to the sum of another stage; choices.size(): none.
size_t BudgetSearch::knownLayouts(const plan::Plan &plan, int zero) const {
  auto known = llvm::find_if(choices, [&](const BudgetLayouts &choice) {
    return (choice.again || (choice.bounded && choice.zero == zero)) &&
           sameLayouts(choice.plan, plan);
  });
  return size_t(known - choices.begin());
}

/// The cheapest layouts within `bytes`. If nothing is as small, the cheapest of
/// the smallest.
std::optional<BudgetSearch::Planned> BudgetSearch::layoutsWithin(int64_t bytes,
                                                                 int zero) {
  auto known = planned.find({zero, bytes});
  if (known != planned.end())
    return known->second;
  Quiet quiet(module.getContext());
  int64_t most = bytes;
  auto plan =
      plans->within(budgetOf(most, request, zero, false), kindOf(zero, false));
  if (succeeded(plan) && plan->bytes > most) {
    most = plan->bytes;
    plan = plans->within(budgetOf(most, request, zero, false),
                         kindOf(zero, false));
  }
  if (failed(plan)) {
    unsearched = quiet.error;
    return std::nullopt;
  }
  Planned &found = planned[{zero, bytes}];
  found = {choices.size(), plan->bytes};
  for (const auto &[key, other] : planned)
    if (key.first == zero && other.bytes == found.bytes)
      found.layouts = std::min(found.layouts, other.layouts);
  found.layouts = std::min(found.layouts, knownLayouts(*plan, zero));
  if (found.layouts == choices.size())
    add({std::move(*plan), *freeOptions, "layouts for the budget", false, most,
         false, zero});
  else if (!choices[found.layouts].bounded && choices[found.layouts].limit &&
           choices[found.layouts].limit < most)
    // The same layouts, proven for more bytes.
    std::tie(choices[found.layouts].plan, choices[found.layouts].limit) =
        std::pair(std::move(*plan), most);
  return found;
}

FailureOr<plan::Plan> BudgetSearch::explained() const {
  const int zero = result().zero;
  const bool bounds = layouts().bounded;
  if (layouts().limit)
    return plans->explain(layouts().plan,
                          budgetOf(layouts().limit, request, zero, bounds),
                          kindOf(zero, bounds));
  if (!layouts().again)
    return layouts().plan;
  plan::PlanOptions options = layouts().options;
  options.explain = true;
  return plans->choose(options);
}

/// Plans within `bytes` of the planner's model, and makes the program unless
/// one that fits is known to be as fast.
BudgetSearch::LayoutPoint BudgetSearch::tryLimit(int64_t bytes, int zero) {
  auto layouts = layoutsWithin(bytes, zero);
  if (!layouts)
    return {};
  LayoutPoint point{bytes, layouts->bytes};
  auto isOfPair = [&](const BudgetTrial &trial) {
    return trial.layouts == layouts->layouts && trial.zero == zero;
  };
  bool isKnown = llvm::any_of(trials, isOfPair);
  bool mayRepeat = request.train && request.train->recompute == "auto";
  bool isSearched = searched.contains({layouts->layouts, zero, limit});
  if (!isKnown || (mayRepeat && !isSearched)) {
    auto [least, isNew] =
        leastTimes.try_emplace({layouts->layouts, zero}, plan::Time(0));
    auto isSlow = [&] {
      return !isKnown && found && least->second >= result().time;
    };
    std::optional<Pair> pair;
    if (isNew || !isSlow()) {
      pair = makePair(layouts->layouts, zero);
      if (!pair)
        return point;
      least->second = pair->leastTime;
    }
    // What is slower than a program that fits needs no trial: more bytes.
    if (isSlow()) {
      point.fits = true;
      return point;
    }
    searchPair(*pair);
  }
  for (const BudgetTrial &trial : trials) {
    if (!isOfPair(trial))
      continue;
    point.fits |= trial.fits(limit);
    if (!trial.layers && trial.failure.empty())
      point.allocated = trial.bytes;
  }
  return point;
}

/// Between limits of which the lower gives a program that fits, and the upper
/// one that doesn't: in the middle, and with `byLine` every other time where
/// the line through both meets the budget. False if all in between is slower
/// than what is known.
bool BudgetSearch::narrow(LayoutPoint good, LayoutPoint bad, int zero,
                          bool byLine) {
  for (int step = 0; step < kLayoutSteps && good.limit < bad.limit; ++step) {
    const bool isSlow = good.allocated < 0;
    const bool isTooLarge = bad.allocated > limit;
    int64_t next = good.limit + (bad.limit - good.limit) / 2;
    if (byLine && step % 2 == 0 && !isSlow && good.allocated <= limit &&
        isTooLarge && good.bytes < bad.bytes) {
      double share = double(limit - good.allocated) /
                     double(bad.allocated - good.allocated);
      next = good.bytes + int64_t(share * double(bad.bytes - good.bytes));
      next = std::clamp(next, good.limit, bad.limit);
    }
    LayoutPoint point = tryLimit(next, zero);
    const bool isSame = point.bytes == good.bytes;
    if (point.fits) {
      good = point;
    } else {
      bad = point;
      bad.limit = std::min(next, point.bytes) - 1;
    }
    // Nothing is between them if the most that is left gives the same.
    if (isSame)
      if (auto most = layoutsWithin(bad.limit, zero);
          most && most->bytes <= good.bytes)
        return true;
    // Slower than what is known as well if the fastest of the rest is.
    if (good.allocated < 0 && bad.allocated > limit && step < 2) {
      LayoutPoint fastest = tryLimit(bad.limit, zero);
      if (fastest.fits && fastest.allocated < 0)
        return false;
    }
  }
  return true;
}

/// The cheapest layouts whose bound is within the budget: they fit.
void BudgetSearch::tryBounded(int zero) {
  if (limit != request.memoryBudget || boundedCosts.contains(zero))
    return;
  Quiet quiet(module.getContext());
  auto plan =
      plans->within(budgetOf(limit, request, zero, true), kindOf(zero, true));
  if (failed(plan))
    return;
  boundedCosts[zero] = plan->bytes <= limit ? plan->lowerBound : plan::kIllegal;
  if (plan->bytes > limit)
    return;
  const size_t index = knownLayouts(*plan, zero);
  if (index == choices.size())
    add({std::move(*plan), *freeOptions, "layouts for the budget", false, limit,
         true, zero});
  if (auto pair = makePair(index, zero))
    searchPair(*pair);
}

/// Finds the largest bytes of the planner's model (Memory.h) whose cheapest
/// layouts give a program that fits. More bytes of the model can be fewer of
/// the program, so there is a second look, unless it takes much work: at points
/// between the least and the most, from the fastest on, until one fits.
void BudgetSearch::searchLayouts(int zero) {
  tryBounded(zero);
  const int64_t begin = plans->work();
  LayoutPoint least = tryLimit(1, zero);
  if (!least.bytes)
    return;
  LayoutPoint most = tryLimit(kUnlimited, zero);
  least.limit = least.bytes;
  most.limit = most.bytes;
  LayoutPoint good = least;
  auto between = [&](int64_t index, int64_t count) {
    return least.limit + (most.limit - least.limit) / (count + 1) * index;
  };
  // What the sum lets into the budget: it is seldom below what is allocated.
  if (least.bytes <= limit && limit < most.limit)
    if (LayoutPoint within = tryLimit(limit, zero); within.fits)
      good = within;
  // The fewest bytes of the model need not be the fewest of a program.
  for (int probe = 1; probe <= kProbes && !good.fits; ++probe)
    good = tryLimit(between(probe, kProbes), zero);
  if (good.fits && !narrow(good, most, zero, /*byLine=*/false))
    return;
  LayoutPoint bad = most;
  for (int index = kPoints; index > 0; --index) {
    if (plans->work() - begin > kPointWork) {
      if (unsearched.empty())
        unsearched = "more points between layouts would take too much work";
      return;
    }
    LayoutPoint point = tryLimit(between(index, kPoints), zero);
    if (point.fits) {
      narrow(point, bad, zero, /*byLine=*/true);
      return;
    }
    bad = point;
    bad.limit = point.bytes - 1;
  }
}
