// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Bounded.h"
#include "compiler/plan/DualBound.h"

#include <numeric>

using namespace mlir;

namespace mtp::plan {

/// Layouts that an operand is read in, and which one each strategy reads.
struct Model::Required {
  std::vector<int> ids, of;
};

Model::Required Model::requiredBy(const Use &use) const {
  const Unit &user = units[use.unit];
  Required required;
  llvm::DenseMap<int, int> known;
  for (size_t y = 0; y < user.space.strategies.size(); ++y) {
    int id = user.operandId(int(y), use.operand->getOperandNumber());
    auto [it, isNew] = known.try_emplace(id, int(required.ids.size()));
    if (isNew)
      required.ids.push_back(id);
    required.of.push_back(it->second);
  }
  return required;
}

/// Cheapest ways from every produced to every required layout. Where blocks may
/// be padded, a way over a copy can be cheaper than the path.
std::vector<Time> Model::waysOf(const ValueModel &value, ArrayRef<int> copies,
                                ArrayRef<int> required) {
  int64_t ranks = 1;
  for (const MeshShape::Axis &axis : space.meshShape().axes)
    ranks *= axis.size;
  bool mayPad = llvm::any_of(value.info.shape, [&](int64_t extent) {
    return extent > 1 && extent % ranks != 0;
  });
  std::vector<Time> ways, onward;
  for (int copy : copies)
    for (int to : required)
      if (mayPad)
        onward.push_back(pathCost(value, copy, to));
  for (int from : value.produced) {
    size_t first = ways.size();
    for (int to : required)
      ways.push_back(pathCost(value, from, to));
    for (size_t c = 0; mayPad && c < copies.size(); ++c)
      if (Time way = pathCost(value, from, copies[c]); way < kIllegal)
        for (size_t i = 0; i < required.size(); ++i)
          ways[first + i] = std::min(ways[first + i],
                                     add(way, onward[c * required.size() + i]));
  }
  return ways;
}

Problem Model::relaxation() {
  Problem unbuilt = tables;
  std::map<std::vector<int>, std::vector<Time>> known; // equal layers
  for (ValueModel &value : values) {
    if (!addSource(value))
      continue;
    if (value.uses.size() == 1) {
      addSingleUse(value);
      continue;
    }
    // What is returned may be a copy, for less than the value: it is free.
    int64_t uses = 0;
    std::vector<int> copies;
    for (const Use &use : value.uses)
      if (use.unit >= 0) {
        ++uses;
        std::vector<int> ids = requiredBy(use).ids;
        copies.insert(copies.end(), ids.begin(), ids.end());
      }
    llvm::sort(copies);
    copies.erase(std::unique(copies.begin(), copies.end()), copies.end());
    for (const Use &use : value.uses) {
      if (use.unit < 0)
        continue;
      Required required = requiredBy(use);
      std::vector<int> key{value.infoId};
      for (const std::vector<int> *list :
           {&value.produced, &copies, &required.ids}) {
        key.push_back(int(list->size()));
        key.insert(key.end(), list->begin(), list->end());
      }
      std::vector<Time> &ways = known[key];
      if (ways.empty())
        ways = waysOf(value, copies, required.ids);
      size_t columns = required.ids.size();
      std::vector<Time> table = ways;
      for (size_t i = 0; i < table.size(); ++i)
        if (table[i] < kIllegal)
          table[i] = add(table[i] / uses,
                         usePenalty(value, layouts[value.produced[i / columns]],
                                    layouts[required.ids[i % columns]]));
      addPair(units[value.unit].variable, units[use.unit].variable,
              [&](int x, int y) {
                return table[size_t(value.producedOf[x]) * columns +
                             size_t(required.of[y])];
              });
    }
  }
  collectPairs();
  std::swap(unbuilt, tables);
  return unbuilt;
}

void Model::keepBelow(const std::vector<std::vector<Time>> &marginals,
                      Time limit) {
  for (auto [variable, costs] : llvm::zip_equal(tables.variables, marginals))
    for (auto [cost, least] : llvm::zip_equal(variable.unary, costs))
      if (least > limit)
        cost = kIllegal;
}

void Model::keepOnly(ArrayRef<int> assignment) {
  for (auto [variable, chosen] : llvm::zip_equal(tables.variables, assignment))
    for (auto [strategy, cost] : llvm::enumerate(variable.unary))
      if (int(strategy) != chosen)
        cost = kIllegal;
}

std::vector<int> Model::sequence() const {
  std::vector<int> depth(tables.variables.size(), 0), order(depth.size());
  func::FuncOp main = function;
  for (Operation &op : main.getBody().front().without_terminator()) {
    auto it = unitOfOp.find(&op);
    if (it == unitOfOp.end())
      continue;
    int &mine = depth[units[it->second].variable];
    for (Value operand : op.getOperands())
      if (int before = unitOf(operand); before >= 0)
        mine = std::max(mine, depth[units[before].variable] + 1);
  }
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](int a, int b) {
    return std::pair(depth[a], tables.variables[a].hash) <
           std::pair(depth[b], tables.variables[b].hash);
  });
  return order;
}

int64_t Model::tableEntries(bool withCopies) const {
  std::vector<int64_t> legal;
  for (const Variable &variable : tables.variables)
    legal.push_back(llvm::count_if(variable.unary,
                                   [](Time cost) { return cost < kIllegal; }));
  int64_t total = 0;
  for (const ValueModel &value : values) {
    if (value.unit < 0)
      continue;
    int producer = units[value.unit].variable;
    const std::vector<Time> &made = tables.variables[producer].unary;
    int64_t users = 0;
    llvm::DenseSet<int> produced, copies;
    for (size_t x = 0; x < made.size(); ++x)
      if (made[x] < kIllegal)
        produced.insert(value.producedOf[x]);
    for (const Use &use : value.uses) {
      if (use.unit < 0)
        continue;
      int user = units[use.unit].variable;
      users += legal[user];
      Required required = requiredBy(use);
      for (size_t y = 0; y < required.of.size(); ++y)
        if (tables.variables[user].unary[y] < kIllegal)
          copies.insert(required.ids[required.of[y]]);
    }
    bool isCopied = withCopies && value.uses.size() > 1;
    total += isCopied ? int64_t(produced.size()) * int64_t(copies.size() + 1) *
                            (legal[producer] + users)
                      : legal[producer] * users;
  }
  return total;
}

namespace {
/// The search of Bounded.h.
class BoundedSearch {
public:
  BoundedSearch(Model &model, const SolverOptions &limits)
      : model(model), limits(limits) {}

  std::optional<BoundedSolution> run() {
    if (model.tableEntries(/*withCopies=*/false) > mostEntries)
      return std::nullopt;
    relaxed = model.relaxation();
    const std::vector<int> order = model.sequence();
    DualBound dual = dualBound(relaxed, order);
    if (dual.bound == kIllegal)
      return std::nullopt;
    marginals = std::move(dual.marginals);
    best.bound = dual.bound;
    // The assignment that the bound suggests, as a plan.
    Model rounded = model;
    rounded.keepOnly(dual.assignment);
    take(std::move(rounded));
    solveRelaxation();
    narrow();
    best.bound = std::min(best.bound, best.cost);
    return std::move(best);
  }

private:
  /// Solves the exact model of what `attempt` keeps; false if it is too large.
  bool take(Model attempt) {
    if (attempt.tableEntries(/*withCopies=*/true) > mostEntries)
      return false;
    attempt.build();
    Solver solver(attempt.problem(), limits);
    auto assignment = solver.solve();
    if (!assignment)
      return solver.error().kind == SolverError::Infeasible;
    if (solver.optimum() < best.cost) {
      best.model.emplace(std::move(attempt));
      best.assignment = std::move(*assignment);
      best.cost = solver.optimum();
      best.width = solver.width();
    }
    return true;
  }

  /// Better marginals, if what may be part of a cheaper plan is few enough.
  void solveRelaxation() {
    for (auto [variable, costs] : llvm::zip_equal(relaxed.variables, marginals))
      for (auto [cost, least] : llvm::zip_equal(variable.unary, costs))
        if (least > best.cost)
          cost = kIllegal;
    SolverOptions whole = limits;
    whole.prune = false; // marginals of all strategies
    Solver solver(relaxed, whole);
    if (!solver.solve())
      return;
    best.bound = std::max(best.bound, solver.optimum());
    for (auto [mine, exact] : llvm::zip_equal(marginals, solver.minMarginals()))
      for (auto [cost, least] : llvm::zip_equal(mine, exact))
        cost = std::max(cost, least);
  }

  /// Exact models of ever more strategies.
  void narrow() {
    const Time least = best.bound;
    // Penalties are not a part of what a plan may cost more.
    constexpr int finest = 256;
    Time limit = add(least, least % kPenalty / finest);
    constexpr int mostRounds = 12;
    for (int round = 0; round < mostRounds; ++round) {
      limit = std::min(limit, best.cost);
      Model attempt = model;
      attempt.keepBelow(marginals, limit);
      if (!take(std::move(attempt)))
        return;
      if (best.cost <= limit) {
        best.bound = best.cost;
        return;
      }
      best.bound = limit + 1; // nothing costs as little as the limit
      limit = add(limit, limit - least + 1);
    }
  }

  static constexpr int64_t mostEntries = int64_t(1) << 23;
  Model &model;
  const SolverOptions &limits;
  Problem relaxed;
  std::vector<std::vector<Time>> marginals;
  BoundedSolution best;
};
} // namespace

std::optional<BoundedSolution> solveBounded(Model &model,
                                            const SolverOptions &limits) {
  return BoundedSearch(model, limits).run();
}

} // namespace mtp::plan
