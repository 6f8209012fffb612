// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ChoosePlan.cpp - the cheapest plan ---------------------------------===//
#include "compiler/cost/Target.h"
#include "compiler/plan/Bounded.h"
#include "compiler/plan/Explain.h"
#include "compiler/plan/Memory.h"
#include "compiler/plan/Pareto.h"
#include "compiler/plan/Pins.h"

#include <chrono>

using namespace mlir;

namespace mtp::plan {

bool parseMesh(StringRef text,
               std::vector<std::pair<std::string, int64_t>> &axes,
               std::string &error) {
  SmallVector<StringRef> entries;
  text.split(entries, ',');
  for (StringRef entry : entries) {
    auto [name, sizeText] = entry.split('=');
    name = name.trim();
    int64_t size = 0;
    if (name.empty() || sizeText.trim().getAsInteger(10, size) || size < 1) {
      error = ("mesh axis '" + entry + "' is not NAME=SIZE").str();
      return false;
    }
    for (const auto &axis : axes)
      if (axis.first == name) {
        error = ("mesh axis '" + name + "' is given twice").str();
        return false;
      }
    axes.push_back({name.str(), size});
  }
  int64_t ranks = 1;
  for (const auto &axis : axes)
    if (__builtin_mul_overflow(ranks, axis.second, &ranks) || ranks > 65536) {
      error = "the mesh has more than 65536 ranks";
      return false;
    }
  return true;
}

static Machine machineOf(const MeshShape &mesh) {
  std::vector<std::pair<std::string, int64_t>> axes;
  for (const MeshShape::Axis &axis : mesh.axes)
    axes.push_back({axis.name(), axis.size});
  return targetMachine(axes);
}

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

  /// The cheapest plan of a space. Unless `mustFind`, nothing, without a
  /// diagnostic, if the space is too large or has no plan that keeps the pins.
  FailureOr<std::optional<Plan>> run(Freedom freedom, bool mustFind,
                                     AxisSet joint = {}) {
    bool isJoint = !joint.empty();
    Space space(function, roles, mesh, freedom, std::move(joint));
    openSpace(space, pins);
    Model model(function, space, conversions, options.objective);
    // Lists of labels take more than one cost for each assignment.
    const int mostStrategies = options.budget ? 32 : 128;
    bool isLarge = !mustFind && model.mostStrategies() > mostStrategies;
    if (isLarge && (isJoint || options.budget))
      return std::optional<Plan>();
    for (const Pin &pin : pins.layouts)
      if (failed(restrictTo(model, pin, mesh, /*quiet=*/!mustFind)))
        return mustFind ? FailureOr<std::optional<Plan>>(failure())
                        : std::optional<Plan>();
    SolverOptions limits;
    limits.tableLimit = int64_t(1) << 25;
    limits.workLimit = int64_t(1) << (mustFind ? 30 : 28);
    limits.prune = true;
    constexpr int64_t mostEntries = int64_t(1) << 23;
    if (isLarge || (!isJoint && model.tableEntries() > mostEntries)) {
      auto bounded = runBounded(
          space, mustFind ? Model(model) : std::move(model), limits, freedom);
      if (failed(bounded) || *bounded || !mustFind)
        return bounded;
    }
    model.build();
    Problem problem = model.problem();
    if (options.budget)
      return runWithin(model, problem, limits, mustFind);
    Solver solver(problem, limits);
    auto assignment = solver.solve();
    if (!assignment && !isJoint &&
        solver.error().kind == SolverError::TooWide) {
      Model unbuilt(function, space, conversions, options.objective);
      for (const Pin &pin : pins.layouts) // they were kept before
        (void)restrictTo(unbuilt, pin, mesh, /*quiet=*/true);
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
      limits.prune = false;
      Solver all(problem, limits);
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
    Time penalty = penaltyOf(space), bound = 0;
    if (found &&
        (!found->model || found->bound / penalty == found->cost / penalty))
      bound = found->bound % penalty;
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
  FailureOr<std::optional<Plan>> runWithin(Model &model, const Problem &problem,
                                           const SolverOptions &limits,
                                           bool mustFind) {
    ParetoOptions pareto;
    // Lists are long: what is too large for them is said at once.
    pareto.tables = limits;
    pareto.tables.tableLimit = int64_t(1) << 17;
    pareto.tables.workLimit = int64_t(1) << 23;
    pareto.labelLimit = int64_t(1) << 16;
    const MemoryModel memory = model.memory(*options.budget);
    ParetoSolver solver(problem, memory, options.budget->bytes, pareto);
    ParetoResult result = solver.solve();
    if (result.assignment.empty()) {
      if (!mustFind)
        return std::optional<Plan>();
      return function.emitError()
             << "there is no plan: " << solver.error().message;
    }
    if (options.prefer)
      prefer(*options.prefer, model, memory, result);
    Plan plan = model.decode(result.assignment);
    if (failed(describe(function, plan, conversions)))
      return failure();
    plan.bytes = result.bytes.total();
    plan.limit = options.budget->bytes == INT64_MAX ? 0 : options.budget->bytes;
    plan.lowerBound = std::min(plan.cost, result.bound % kPenalty);
    plan.megatron = plan.cost;
    plan.method = "elimination with labels";
    if (result.status == ParetoResult::Gap)
      plan.notes.push_back("there are too many plans of different bytes for an "
                           "exact search; this one fits");
    if (options.explain && result.status != ParetoResult::Infeasible) {
      SolverOptions whole = limits;
      whole.prune = false;
      explainWithin(function, model, memory, options.budget->bytes, result,
                    whole, pareto, conversions, plan);
    }
    return std::optional<Plan>(std::move(plan));
  }

  /// Takes `plan` as the result, if it fits and costs as little.
  void prefer(const Plan &plan, const Model &model, const MemoryModel &memory,
              ParetoResult &result) {
    auto assignment = model.encode(plan);
    if (!assignment || costOf(model.problem(), *assignment) != result.cost)
      return;
    ByteCount bytes = bytesOf(model.problem(), memory, *assignment);
    if (bytes.total() > options.budget->bytes)
      return;
    result.assignment = std::move(*assignment);
    result.bytes = bytes;
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

  /// What the best plan costs that splits every weight. Pins are gone then.
  FailureOr<Time> parallelCost() {
    pins = Pins();
    options = PlanOptions();
    auto plan = run(Freedom::Roles, /*mustFind=*/true);
    if (failed(plan))
      return failure();
    return (*plan)->cost;
  }

  /// No plan of the space of all layouts takes less; 0 if that is not known.
  Time boundOfSpace() const { return spaceBound; }

  /// The parts of each axis that the user named.
  std::vector<AxisGroup> axisGroups() const { return groupsOf(mesh); }

private:
  static Time penaltyOf(const Space &space) {
    return space.isSequenceParallel() ? kSequencePenalty : kPenalty;
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
FailureOr<Plan> choosePlan(ModuleOp module,
                           ArrayRef<std::pair<std::string, int64_t>> axes,
                           const PlanOptions &options) {
  auto start = std::chrono::steady_clock::now();
  func::FuncOp function = mainFunction(module);
  if (!function)
    return failure();
  Planner planner(function, axes, options);
  if (failed(planner.findPins(axes)))
    return failure();
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
    found = planner.run(options.budget             ? Freedom::Tokens
                        : options.sequenceParallel ? Freedom::Sequence
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

} // namespace mtp::plan
