// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Bounded.h"
#include "compiler/plan/DualBound.h"

#include <numeric>

using namespace mlir;

namespace mtp::plan {

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

int64_t Model::tableEntries() const {
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
    llvm::DenseSet<int> produced,
        copies(value.copies.begin(), value.copies.end());
    for (size_t x = 0; x < made.size(); ++x)
      if (made[x] < kIllegal)
        produced.insert(value.producedOf[x]);
    for (const Use &use : value.uses) {
      if (use.unit < 0)
        continue;
      int user = units[use.unit].variable;
      users += legal[user];
      const std::vector<Time> &read = tables.variables[user].unary;
      for (size_t y = 0; y < read.size(); ++y)
        if (read[y] < kIllegal)
          copies.insert(units[use.unit].operandId(
              int(y), use.operand->getOperandNumber()));
    }
    bool isCopied = value.uses.size() > 1;
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
    const std::vector<int> order = model.sequence();
    auto spread = model.stars(/*exact=*/false, mostStarEntries);
    if (!spread)
      return std::nullopt;
    DualBound dual =
        dualBound(spread->problem, order, [&](const std::vector<int> &chosen) {
          return model.priceOf(spread->problem, chosen);
        });
    if (dual.bound == kIllegal)
      return std::nullopt;
    best.bound = dual.bound;
    known = dual.cost;
    model.keepBelow(dual.marginals, known);
    model.keepCopies(*spread, dual.copies, known);
    std::vector<int> assignment = model.dropIllegal(dual.assignment);
    if (auto exact = model.stars(/*exact=*/true, mostStarEntries / 16)) {
      dual = dualBound(exact->problem, order);
      // What was dropped costs more than what is known.
      best.bound = std::max(best.bound, std::min(dual.bound, known));
      if (dual.cost < known) {
        known = dual.cost;
        assignment = std::move(dual.assignment);
      }
      narrow(*exact, dual);
    }
    if (!best.model && !assignment.empty()) {
      model.keepOnly(assignment);
      take(model);
    }
    best.bound = std::min(best.bound, best.cost);
    return std::move(best);
  }

private:
  /// Solves the exact model of what `attempt` keeps; false if it is too large.
  bool take(Model attempt) {
    if (attempt.tableEntries() > mostEntries)
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
      known = std::min(known, best.cost);
      best.width = solver.width();
    }
    return true;
  }

  /// Exact models of ever more strategies; of fewer while the first are too
  /// large.
  void narrow(const Model::Stars &stars, const DualBound &dual) {
    const Time least = best.bound;
    // Penalties are not a part of what a plan may cost more.
    constexpr int finest = 256;
    Time more = std::min(least % kPenalty / finest, known - least);
    constexpr int mostRounds = 12;
    bool isSolved = false;
    for (int round = 0; round < mostRounds; ++round) {
      const Time limit = std::min(add(least, more), known);
      Model attempt = model;
      attempt.keepBelow(dual.marginals, limit);
      attempt.keepCopies(stars, dual.copies, limit);
      if (!take(std::move(attempt))) {
        if (isSolved)
          return;
        more /= 2;
        continue;
      }
      isSolved = true;
      if (best.cost <= limit) {
        best.bound = best.cost;
        return;
      }
      best.bound = limit + 1; // nothing costs as little as the limit
      more = add(more, more + 1);
    }
  }

  static constexpr int64_t mostEntries = int64_t(1) << 23;
  static constexpr int64_t mostStarEntries = int64_t(1) << 25;
  Model &model;
  const SolverOptions &limits;
  BoundedSolution best;
  Time known = kIllegal; ///< there is a plan that costs as much
};
} // namespace

std::optional<BoundedSolution> solveBounded(Model &model,
                                            const SolverOptions &limits) {
  return BoundedSearch(model, limits).run();
}

} // namespace mtp::plan
