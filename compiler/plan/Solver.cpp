// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Fold.h"

namespace mtp::plan {

Time costOf(const Problem &problem, const std::vector<int> &assignment) {
  Time total = 0;
  for (size_t v = 0; v < problem.variables.size(); ++v)
    total = add(total, problem.variables[v].unary[assignment[v]]);
  for (const Pair &pair : problem.pairs) {
    size_t columns = problem.variables[pair.b].unary.size();
    total = add(total,
                pair.table[assignment[pair.a] * columns + assignment[pair.b]]);
  }
  return total;
}

std::optional<SolverError> findMalformed(const Problem &problem) {
  auto malformed = [](std::string message) {
    return SolverError{SolverError::Malformed, std::move(message), {}};
  };
  auto bad = [](const std::vector<Time> &costs) {
    return std::any_of(costs.begin(), costs.end(),
                       [](Time cost) { return cost < 0 || cost > kIllegal; });
  };
  for (const Variable &variable : problem.variables) {
    if (variable.unary.empty())
      return malformed("'" + variable.name + "' has no strategy");
    if (bad(variable.unary))
      return malformed("'" + variable.name + "' has a cost out of range");
  }
  int count = int(problem.variables.size());
  for (const Pair &pair : problem.pairs) {
    if (pair.a < 0 || pair.b < 0 || pair.a >= count || pair.b >= count ||
        pair.a == pair.b)
      return malformed("a table has no two variables");
    if (pair.table.size() != problem.variables[pair.a].unary.size() *
                                 problem.variables[pair.b].unary.size() ||
        bad(pair.table))
      return malformed("the table of '" + problem.variables[pair.a].name +
                       "' and '" + problem.variables[pair.b].name +
                       "' is malformed");
  }
  return std::nullopt;
}

namespace {
/// Of a list over strategies, those that stay; an empty list stays empty.
std::vector<int64_t> pick(const std::vector<int64_t> &all,
                          const std::vector<int> &kept) {
  std::vector<int64_t> result;
  for (size_t i = 0; !all.empty() && i < kept.size(); ++i)
    result.push_back(all[kept[i]]);
  return result;
}

/// The same of a table.
std::vector<int64_t> pick(const std::vector<int64_t> &all,
                          const std::vector<int> &rows,
                          const std::vector<int> &columns, size_t width) {
  std::vector<int64_t> result;
  if (all.empty())
    return result;
  result.reserve(rows.size() * columns.size());
  for (int x : rows)
    for (int y : columns)
      result.push_back(all[size_t(x) * width + y]);
  return result;
}
} // namespace

std::vector<std::vector<int>> dropIllegal(Problem &problem,
                                          MemoryModel &memory) {
  std::vector<std::vector<int>> kept;
  std::vector<size_t> given;
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    Variable &variable = problem.variables[v];
    std::vector<int> &mine = kept.emplace_back();
    given.push_back(variable.unary.size());
    for (size_t x = 0; x < variable.unary.size(); ++x)
      if (variable.unary[x] < kIllegal)
        mine.push_back(int(x));
    if (mine.empty()) // the elimination says so, with its neighbours
      mine.push_back(0);
    variable.unary = pick(variable.unary, mine);
    if (memory.variables.empty())
      continue;
    Footprint &footprint = memory.variables[v];
    footprint.bytes = pick(footprint.bytes, mine);
    footprint.transient = pick(footprint.transient, mine);
  }
  for (size_t i = 0; i < problem.pairs.size(); ++i) {
    Pair &pair = problem.pairs[i];
    const std::vector<int> &rows = kept[pair.a], &columns = kept[pair.b];
    size_t width = given[pair.b];
    if (rows.size() == given[pair.a] && columns.size() == width)
      continue;
    pair.table = pick(pair.table, rows, columns, width);
    if (memory.pairs.empty())
      continue;
    Footprint &footprint = memory.pairs[i];
    footprint.bytes = pick(footprint.bytes, rows, columns, width);
    footprint.transient = pick(footprint.transient, rows, columns, width);
  }
  return kept;
}

struct Solver::State {
  State(const Problem &problem, Elimination tree)
      : folded(problem, {}, std::move(tree)),
        messages(folded, costsOf(folded)) {}

  static Weights costsOf(const FoldedProblem &folded) {
    Weights weights;
    for (const FoldedProblem::Table &table : folded.unary)
      weights.unary.push_back(table.cost);
    for (const FoldedProblem::Table &table : folded.pairs)
      weights.pairs.push_back(table.cost);
    return weights;
  }

  FoldedProblem folded;
  Messages messages;
  bool isDown = false;
};

Solver::Solver(Problem problem, SolverOptions options)
    : problem(std::move(problem)), options(options) {}
Solver::Solver(Solver &&) = default;
Solver &Solver::operator=(Solver &&) = default;
Solver::~Solver() = default;

int Solver::width() const { return state ? state->folded.tree.width : 0; }
int64_t Solver::largestTable() const {
  return state ? state->folded.tree.largestTable : 0;
}
int Solver::computedMessages() const {
  return state ? state->messages.computed() : 0;
}

bool Solver::prepare() {
  if (state)
    return true;
  if (auto malformed = findMalformed(problem)) {
    failure = std::move(*malformed);
    return false;
  }
  for (const Variable &variable : problem.variables)
    given.push_back(variable.unary.size());
  if (options.prune)
    removeDominated(problem);
  MemoryModel none;
  original = dropIllegal(problem, none);
  auto tree = eliminate(problem, options, failure);
  if (!tree)
    return false;
  state = std::make_unique<State>(problem, std::move(*tree));
  return true;
}

std::optional<std::vector<int>> Solver::solve() {
  if (!prepare())
    return std::nullopt;
  if (int dead = state->messages.deadEnd(); dead >= 0) {
    failure = infeasible(problem, state->folded.tree, dead);
    return std::nullopt;
  }
  optimumCost = state->messages.optimum();
  std::vector<int> assignment = state->messages.assignment();
  for (size_t v = 0; v < assignment.size(); ++v)
    assignment[v] = original[v][assignment[v]];
  return assignment;
}

std::vector<std::vector<Time>> Solver::minMarginals() const {
  std::vector<std::vector<Time>> marginals(problem.variables.size());
  if (optimumCost >= kIllegal)
    return marginals;
  if (!state->isDown)
    state->messages.sendDown();
  state->isDown = true;
  std::map<std::pair<int, int>, std::vector<Time>> known; // equal buckets
  for (int bucket = 0; bucket < state->folded.root(); ++bucket) {
    int v = state->folded.tree.buckets[bucket].variable;
    std::vector<Time> &mine =
        known[{state->messages.kindOf(bucket), state->messages.restOf(bucket)}];
    if (mine.empty())
      mine = state->messages.marginal(bucket);
    marginals[v].assign(given[v], kIllegal);
    for (size_t x = 0; x < mine.size(); ++x)
      marginals[v][original[v][x]] = mine[x];
  }
  return marginals;
}

} // namespace mtp::plan
