// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ChoosePlan.cpp - the cheapest plan ---------------------------------===//
#include "compiler/plan/Bounded.h"
#include "compiler/plan/BudgetPlans.h"
#include "compiler/plan/Explain.h"
#include "compiler/plan/Pareto.h"
#include "compiler/plan/Pins.h"
#include "compiler/plan/StepTime.h"

#include <chrono>

using namespace mlir;

namespace mtp::plan {

//===----------------------------------------------------------------------===//
// The cheapest plan
//===----------------------------------------------------------------------===//

namespace {
/// One attempt to plan: what may be chosen, and how large tables may grow.
class Planner {
public:
  Planner(func::FuncOp function, ArrayRef<std::pair<std::string, int64_t>> axes,
          const PlanOptions &options)
      : function(function), options(options), roles(function),
        mesh(refineMesh(function, roles, axes)),
        conversions(mesh, machineOf(mesh)) {}

  /// What is asked for from here on, with the same pins; see BudgetPlans.
  void ask(const PlanOptions &asked, int kind, bool asDraft) {
    options = asked;
    budgetKind = kind;
    isDraft = asDraft;
    spaceBound = 0;
  }
  LogicalResult complete(Plan &plan) {
    if (failed(describe(function, plan, conversions)))
      return failure();
    plan.lowerBound = std::min(plan.cost, plan.lowerBound);
    plan.megatron = plan.cost;
    return success();
  }

  int64_t workWithin() const {
    int64_t work = 0;
    for (const auto &[key, space] : spaces)
      if (space)
        for (const auto &[kind, solver] : space->solvers)
          work += solver->work();
    return work;
  }

  /// The cheapest plan of a space. Unless `mustFind`, nothing, without a
  /// diagnostic, if the space is too large or has no plan that keeps the pins.
  FailureOr<std::optional<Plan>> run(Freedom freedom, bool mustFind,
                                     AxisSet joint = {}) {
    if (options.budget)
      return runWithin(freedom, mustFind, std::move(joint));
    bool isJoint = !joint.empty();
    Space space(function, roles, mesh, freedom, std::move(joint));
    openSpace(space, pins);
    Model model(function, space, conversions, options.objective);
    constexpr int mostStrategies = 128;
    bool isLarge = !mustFind && model.mostStrategies() > mostStrategies;
    if (isLarge && isJoint)
      return std::optional<Plan>();
    auto pinned = keepPins(model, mustFind);
    if (failed(pinned) || !*pinned)
      return failed(pinned) ? FailureOr<std::optional<Plan>>(failure())
                            : std::optional<Plan>();
    const SolverOptions limits = limitsOf(mustFind);
    if (isLarge || (!isJoint && model.tableEntries() > kMostEntries)) {
      auto bounded = runBounded(
          space, mustFind ? Model(model) : std::move(model), limits, freedom);
      if (failed(bounded) || *bounded || !mustFind)
        return bounded;
    }
    model.build();
    Problem problem = model.problem();
    Solver solver(problem, limits);
    auto assignment = solver.solve();
    if (!assignment && !isJoint &&
        solver.error().kind == SolverError::TooWide) {
      Model unbuilt(function, space, conversions, options.objective);
      (void)keepPins(unbuilt, mustFind); // they were kept before
      auto bounded = runBounded(space, std::move(unbuilt), limits, freedom);
      if (failed(bounded) || *bounded)
        return bounded;
    }
    // Last resort: the ops that depend on each other most keep their cheapest
    // strategy, one after the other, until the rest can be solved exactly.
    bool fixed = false;
    bool mayFix = mustFind || isJoint;
    while (!assignment && mayFix &&
           solver.error().kind == SolverError::TooWide &&
           fixWidest(problem, solver.error().variables)) {
      fixed = true;
      solver = Solver(problem, limits);
      assignment = solver.solve();
    }
    if (!assignment) {
      if (!mustFind)
        return std::optional<Plan>();
      return function.emitError()
             << "there is no plan: " << solver.error().message;
    }
    Plan plan = model.decode(*assignment);
    plan.width = solver.width();
    if (failed(describe(function, plan, conversions)))
      return failure();
    plan.lowerBound = std::min(plan.cost, solver.optimum() % penaltyOf(space));
    plan.megatron = plan.cost;
    plan.method = "elimination";
    if (fixed) {
      plan.lowerBound = 0;
      plan.method = "elimination of a part";
      plan.notes.push_back(
          "too many ops depend on each other for an exact search; some were "
          "decided alone");
    }
    if (options.explain) {
      // Runners-up are among all strategies, if those are few enough.
      SolverOptions whole = limits;
      whole.prune = false;
      Solver all(problem, whole);
      bool complete = all.solve().has_value();
      explain(function, model, complete ? all : solver, !complete, conversions,
              plan);
    }
    return std::optional<Plan>(std::move(plan));
  }

  /// The same where the model is too large to be built: Bounded.h.
  FailureOr<std::optional<Plan>> runBounded(const Space &space, Model model,
                                            const SolverOptions &limits,
                                            Freedom freedom) {
    auto found = solveBounded(model, limits);
    // A bound that lacks penalties says nothing of time.
    Time bound = 0;
    if (found)
      bound = boundOf(found->bound, found->model ? found->cost : found->bound,
                      penaltyOf(space));
    if (freedom == Freedom::All)
      spaceBound = bound;
    if (!found || !found->model)
      return std::optional<Plan>();
    Plan plan = found->model->decode(found->assignment);
    plan.width = found->width;
    if (failed(describe(function, plan, conversions)))
      return failure();
    plan.lowerBound = std::min(plan.cost, bound);
    plan.megatron = plan.cost;
    plan.method = "elimination within bounds";
    if (plan.lowerBound < plan.cost && freedom != Freedom::All)
      plan.notes.push_back("the space is too large for an exact search; this "
                           "is the best plan found");
    if (options.explain) {
      Solver kept(found->model->problem(), limits);
      if (kept.solve())
        explain(function, *found->model, kept, /*pruned=*/true, conversions,
                plan);
    }
    return std::optional<Plan>(std::move(plan));
  }

  /// The same under the budget.
  FailureOr<std::optional<Plan>> runWithin(Freedom freedom, bool mustFind,
                                           AxisSet joint) {
    auto made = spaceWithin(freedom, mustFind, std::move(joint));
    if (failed(made) || !*made)
      return failed(made) ? FailureOr<std::optional<Plan>>(failure())
                          : std::optional<Plan>();
    Model &model = (*made)->model;
    ParetoOptions pareto;
    pareto.tables = limitsOf(mustFind);
    pareto.tables.tableLimit = int64_t(1) << 22;
    pareto.tables.workLimit = int64_t(1) << 24;
    pareto.labelLimit = int64_t(1) << 16;
    std::unique_ptr<ParetoSolver> &slot = (*made)->solvers[budgetKind];
    if (!slot)
      slot = std::make_unique<ParetoSolver>(
          model.problem(), model.memory(*options.budget), 0, pareto);
    ParetoSolver &solver = *slot;
    solver.setBudget(options.budget->bytes);
    ParetoResult result = solver.solve();
    if (result.assignment.empty()) {
      if (!mustFind)
        return std::optional<Plan>();
      return function.emitError()
             << "there is no plan: " << solver.error().message;
    }
    if (options.prefer)
      prefer(*options.prefer, model, result);
    Plan plan = model.decode(result.assignment);
    plan.cost = result.cost % penaltyOf((*made)->space);
    if (!isDraft && failed(describe(function, plan, conversions)))
      return failure();
    plan.bytes = result.bytes.total();
    plan.limit = options.budget->bytes == INT64_MAX ? 0 : options.budget->bytes;
    plan.lowerBound = std::min(plan.cost, boundOf(result.bound, result.cost,
                                                  penaltyOf((*made)->space)));
    plan.megatron = plan.cost;
    plan.method = "elimination with labels";
    if (result.status == ParetoResult::Gap)
      plan.notes.push_back("there are too many plans of different bytes for an "
                           "exact search; this one fits");
    if (options.explain && result.status != ParetoResult::Infeasible) {
      SolverOptions whole = limitsOf(mustFind);
      whole.prune = false;
      explainWithin(function, model, model.memory(*options.budget),
                    options.budget->bytes, result, whole, pareto, conversions,
                    plan);
    }
    return std::optional<Plan>(std::move(plan));
  }

  /// Takes `plan` as the result, if it fits. Where the search has a gap it may
  /// cost more or less than what was found now.
  void prefer(const Plan &plan, Model &model, ParetoResult &result) {
    auto assignment = model.encode(plan);
    Time cost = assignment ? costOf(model.problem(), *assignment) : kIllegal;
    if (cost >= kIllegal)
      return;
    ByteCount bytes =
        bytesOf(model.problem(), model.memory(*options.budget), *assignment);
    if (bytes.total() > options.budget->bytes)
      return;
    if (cost > result.bound)
      result.status = ParetoResult::Gap;
    result.assignment = std::move(*assignment);
    result.bytes = bytes;
    result.cost = cost;
  }

  /// Everything invariant: always legal.
  Plan replicated() {
    Plan plan;
    plan.mesh = mesh;
    auto invariant = [&](ValueRange values) {
      SmallVector<Layout, 3> layouts;
      for (Value value : values)
        layouts.push_back(
            Layout(mesh.size(),
                   int(cast<RankedTensorType>(value.getType()).getRank())));
      return layouts;
    };
    for (BlockArgument argument : function.getArguments())
      plan.arguments.push_back(
          {valueName(argument), "input", {}, invariant(argument), {{}}});
    for (Operation &op : function.getBody().front().without_terminator()) {
      PlannedOp planned{valueName(op.getResult(0)),
                        op.getName().getStringRef().str(),
                        invariant(op.getOperands()),
                        {},
                        {}};
      if (!isFreeSource(&op,
                        *cast<ShardingOpInterface>(op).getShardingRule())) {
        planned.results = invariant(op.getResults());
        planned.copies.resize(op.getNumResults());
      }
      plan.ops.push_back(std::move(planned));
    }
    (void)describe(function, plan, conversions); // no conversion can fail
    plan.lowerBound = plan.megatron = plan.cost;
    plan.method = "everything replicated";
    return plan;
  }

  LogicalResult findPins(ArrayRef<std::pair<std::string, int64_t>> axes) {
    return plan::findPins(function, options, axes, mesh, pins);
  }
  bool isPinned() const { return !pins.empty(); }

  /// What the best plan costs that splits every weight, whatever the pins.
  FailureOr<Time> parallelCost() {
    Pins given = std::exchange(pins, Pins());
    PlanOptions asked = std::exchange(options, PlanOptions());
    auto plan = run(Freedom::Roles, /*mustFind=*/true);
    pins = std::move(given);
    options = std::move(asked);
    if (failed(plan))
      return failure();
    return (*plan)->cost;
  }

  /// No plan of the space of all layouts takes less; 0 if that is not known.
  Time boundOfSpace() const { return spaceBound; }

  /// The parts of each axis that the user named.
  std::vector<AxisGroup> axisGroups() const { return groupsOf(mesh); }

private:
  /// A space with its tables, and the solvers of the kinds of budgets.
  struct SpaceWithin {
    SpaceWithin(Planner &planner, Freedom freedom, AxisSet joint)
        : space(openedSpace(planner, freedom, std::move(joint))),
          model(planner.function, space, planner.conversions,
                planner.options.objective) {}
    static Space openedSpace(Planner &planner, Freedom freedom, AxisSet joint) {
      Space space(planner.function, planner.roles, planner.mesh, freedom,
                  std::move(joint));
      openSpace(space, planner.pins);
      return space;
    }
    Space space;
    Model model;
    std::map<int, std::unique_ptr<ParetoSolver>> solvers;
  };

  static Time penaltyOf(const Space &space) {
    return space.isSequenceParallel() ? kSequencePenalty : kPenalty;
  }

  /// Of tables that are built without being bounded first.
  static constexpr int64_t kMostEntries = int64_t(1) << 23;

  /// A bound of a sum that has penalties in it, as one of the costs beside
  /// `cost`: 0 if it has fewer penalties, and so says nothing of them.
  static Time boundOf(Time bound, Time cost, Time penalty) {
    return bound / penalty == cost / penalty ? bound % penalty : 0;
  }

  static SolverOptions limitsOf(bool mustFind) {
    SolverOptions limits;
    limits.tableLimit = int64_t(1) << 25;
    limits.workLimit = int64_t(1) << (mustFind ? 30 : 28);
    limits.prune = true;
    return limits;
  }

  /// False if the pins leave nothing, with a diagnostic if they must.
  FailureOr<bool> keepPins(Model &model, bool mustFind) {
    for (const Pin &pin : pins.layouts)
      if (failed(restrictTo(model, pin, mesh, /*quiet=*/!mustFind)))
        return mustFind ? FailureOr<bool>(failure()) : FailureOr<bool>(false);
    return true;
  }

  /// Made when it is asked for first; null if it is too large or has no plan
  /// that keeps the pins.
  FailureOr<SpaceWithin *> spaceWithin(Freedom freedom, bool mustFind,
                                       AxisSet joint) {
    std::pair key(freedom, std::vector<int>(joint.begin(), joint.end()));
    auto known = spaces.find(key);
    if (known != spaces.end())
      return known->second.get();
    auto made = std::make_unique<SpaceWithin>(*this, freedom, std::move(joint));
    // Lists of labels take more than one cost for each assignment.
    constexpr int mostStrategies = 32;
    if (!mustFind && made->model.mostStrategies() > mostStrategies)
      return (spaces[key] = nullptr).get();
    auto pinned = keepPins(made->model, mustFind);
    if (failed(pinned))
      return failure();
    if (!*pinned)
      return (spaces[key] = nullptr).get();
    if (made->model.tableEntries() > kMostEntries) {
      if (mustFind)
        return function.emitError()
               << "too many ops depend on each other for layouts under a "
                  "budget";
      return (spaces[key] = nullptr).get();
    }
    made->model.build();
    return (spaces[key] = std::move(made)).get();
  }

  /// Of `variables`, the one with most legal strategies keeps the cheapest.
  /// False if all are fixed already.
  static bool fixWidest(Problem &problem, ArrayRef<int> variables) {
    int widest = -1;
    int64_t most = 1;
    for (int v : variables) {
      int64_t legal = llvm::count_if(problem.variables[v].unary,
                                     [](Time t) { return t < kIllegal; });
      if (legal > most) {
        most = legal;
        widest = v;
      }
    }
    if (widest < 0)
      return false;
    std::vector<Time> &unary = problem.variables[widest].unary;
    auto cheapest = std::min_element(unary.begin(), unary.end());
    for (auto it = unary.begin(); it != unary.end(); ++it)
      if (it != cheapest)
        *it = kIllegal;
    return true;
  }

  func::FuncOp function;
  PlanOptions options;
  Roles roles;
  MeshShape mesh;
  Conversions conversions;
  Pins pins;
  Time spaceBound = 0;
  int budgetKind = 0;
  bool isDraft = false; ///< plans are not described
  std::map<std::pair<Freedom, std::vector<int>>, std::unique_ptr<SpaceWithin>>
      spaces; ///< under budgets
};
} // namespace

/// A plan that fits before one that doesn't, then the cheaper one, or the one
/// with fewer bytes if neither fits.
static bool isBetter(const Plan &a, const Plan &b, const PlanBudget *budget) {
  if (!budget)
    return a.cost < b.cost;
  bool aFits = a.bytes <= budget->bytes, bFits = b.bytes <= budget->bytes;
  if (aFits != bFits)
    return aFits;
  return aFits ? a.cost < b.cost : a.bytes < b.bytes;
}

/// Under the objective `time` the space is everything. Where that is too large
/// to be searched to the end (many layers on three axes; layers that share
/// weights on two), the plan is the best of what was found there and in smaller
/// spaces: the strategies of the parallel objective, and for each set of axes
/// all strategies that use the set as one axis. So no plan is dearer than that
/// of the parallel objective or than everything replicated. The plan says so,
/// with the bound that is proven.
static FailureOr<Plan>
choosePlan(Planner &planner, ArrayRef<std::pair<std::string, int64_t>> axes,
           const PlanOptions &options) {
  auto start = std::chrono::steady_clock::now();
  bool isTime =
      options.objective == Objective::Time && !options.sequenceParallel;
  auto found = isTime ? planner.run(Freedom::All, /*mustFind=*/false)
                      : FailureOr<std::optional<Plan>>(std::optional<Plan>());
  bool complete = !isTime || (succeeded(found) && *found);
  std::optional<Plan> open; // found, but not proven
  if (complete && isTime && (*found)->lowerBound < (*found)->cost &&
      planner.boundOfSpace()) {
    open = std::move(*found);
    found = std::optional<Plan>();
    complete = false;
  }
  if (succeeded(found) && !*found)
    found = planner.run(options.sequenceParallel ? Freedom::Sequence
                        : options.budget         ? Freedom::Tokens
                                                 : Freedom::Roles,
                        /*mustFind=*/true);
  if (failed(found))
    return failure();
  Plan plan = std::move(**found);
  if (!complete) {
    if (open && isBetter(*open, plan, options.budget))
      plan = std::move(*open);
    std::vector<AxisGroup> groups = planner.axisGroups();
    for (unsigned set = 1; set < (1u << std::min<size_t>(groups.size(), 4));
         ++set) {
      AxisSet joint;
      for (size_t group = 0; group < groups.size(); ++group)
        if (set >> group & 1)
          joint.append(groups[group].parts.begin(), groups[group].parts.end());
      auto other = planner.run(Freedom::All, /*mustFind=*/false, joint);
      if (failed(other))
        return failure();
      if (*other && isBetter(**other, plan, options.budget))
        plan = std::move(**other);
    }
    if (!options.budget && !planner.isPinned() &&
        plan.cost > plan.allReplicated)
      plan = planner.replicated();
    plan.lowerBound = std::min(plan.cost, planner.boundOfSpace());
    plan.method = "best of several spaces";
    if (plan.lowerBound < plan.cost)
      plan.notes.push_back(
          "the space of all layouts is too large for an exact search; this is "
          "the best plan found");
  }
  plan.axes.assign(axes.begin(), axes.end());
  plan.solveMs = std::chrono::duration<double, std::milli>(
                     std::chrono::steady_clock::now() - start)
                     .count();
  if (!options.budget && (isTime || planner.isPinned())) {
    auto parallel = planner.parallelCost();
    if (failed(parallel))
      return failure();
    plan.megatron = *parallel;
  }
  return plan;
}

FailureOr<Plan> choosePlan(ModuleOp module,
                           ArrayRef<std::pair<std::string, int64_t>> axes,
                           const PlanOptions &options) {
  func::FuncOp function = mainFunction(module);
  if (!function)
    return failure();
  Planner planner(function, axes, options);
  if (failed(planner.findPins(axes)))
    return failure();
  return choosePlan(planner, axes, options);
}

class BudgetPlans::Planners {
public:
  Planners(ModuleOp module, ArrayRef<std::pair<std::string, int64_t>> axes,
           const PlanOptions &options)
      : module(module), axes(axes.begin(), axes.end()), options(options) {}

  FailureOr<Plan> choose(const PlanOptions &asked, int kind, bool asDraft) {
    if (!planner) {
      func::FuncOp function = mainFunction(module);
      if (!function)
        return failure();
      auto made = std::make_unique<Planner>(function, axes, asked);
      if (failed(made->findPins(axes)))
        return failure();
      planner = std::move(made);
    }
    planner->ask(asked, kind, asDraft);
    return choosePlan(*planner, axes, asked);
  }

  FailureOr<Plan> within(const PlanBudget &budget, int kind,
                         const Plan *explained) {
    PlanOptions asked = options;
    asked.budget = &budget;
    asked.prefer = explained;
    asked.explain = explained;
    return choose(asked, kind, /*asDraft=*/!explained);
  }

  LogicalResult complete(Plan &plan) { return planner->complete(plan); }
  int64_t work() const { return planner ? planner->workWithin() : 0; }

private:
  ModuleOp module;
  std::vector<std::pair<std::string, int64_t>> axes;
  PlanOptions options;
  std::unique_ptr<Planner> planner;
};

BudgetPlans::BudgetPlans(ModuleOp module,
                         ArrayRef<std::pair<std::string, int64_t>> axes,
                         const PlanOptions &options)
    : planners(std::make_unique<Planners>(module, axes, options)) {}
BudgetPlans::~BudgetPlans() = default;
FailureOr<Plan> BudgetPlans::choose(const PlanOptions &options) {
  return planners->choose(options, 0, /*asDraft=*/false);
}
FailureOr<Plan> BudgetPlans::within(const PlanBudget &budget, int kind) {
  return planners->within(budget, kind, nullptr);
}
FailureOr<Plan> BudgetPlans::explain(const Plan &plan, const PlanBudget &budget,
                                     int kind) {
  return planners->within(budget, kind, &plan);
}
LogicalResult BudgetPlans::complete(Plan &plan) {
  return planners->complete(plan);
}
int64_t BudgetPlans::work() const { return planners->work(); }

} // namespace mtp::plan
