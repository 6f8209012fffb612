// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Solver.h"

#include <algorithm>

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

Solver::Solver(Problem given, SolverOptions options)
    : problem(std::move(given)), options(options) {}

/// Strategies that are illegal alone take no part.
void Solver::dropIllegal() {
  for (Variable &variable : problem.variables) {
    std::vector<int> &kept = original.emplace_back();
    given.push_back(variable.unary.size());
    for (size_t x = 0; x < variable.unary.size(); ++x)
      if (variable.unary[x] < kIllegal)
        kept.push_back(int(x));
    if (kept.empty()) // said by eliminate(), with its neighbours
      kept.push_back(0);
    std::vector<Time> unary;
    for (int x : kept)
      unary.push_back(variable.unary[x]);
    variable.unary = std::move(unary);
  }
  for (Pair &pair : problem.pairs) {
    const std::vector<int> &rows = original[pair.a],
                           &columns = original[pair.b];
    if (rows.size() == given[pair.a] && columns.size() == given[pair.b])
      continue;
    std::vector<Time> table;
    for (int x : rows)
      for (int y : columns)
        table.push_back(pair.table[size_t(x) * given[pair.b] + y]);
    pair.table = std::move(table);
  }
}

bool Solver::check() {
  if (!original.empty())
    return true;
  auto fail = [&](std::string message) {
    failure = {SolverError::Malformed, std::move(message), {}};
    return false;
  };
  auto bad = [](const std::vector<Time> &costs) {
    return std::any_of(costs.begin(), costs.end(),
                       [](Time cost) { return cost < 0 || cost > kIllegal; });
  };
  for (const Variable &variable : problem.variables) {
    if (variable.unary.empty())
      return fail("'" + variable.name + "' has no strategy");
    if (bad(variable.unary))
      return fail("'" + variable.name + "' has a cost out of range");
  }
  int count = int(problem.variables.size());
  for (const Pair &pair : problem.pairs) {
    if (pair.a < 0 || pair.b < 0 || pair.a >= count || pair.b >= count ||
        pair.a == pair.b)
      return fail("a table has no two variables");
    if (pair.table.size() != problem.variables[pair.a].unary.size() *
                                 problem.variables[pair.b].unary.size() ||
        bad(pair.table))
      return fail("the table of '" + problem.variables[pair.a].name +
                  "' and '" + problem.variables[pair.b].name +
                  "' is malformed");
  }
  if (options.prune)
    removeDominated(problem);
  dropIllegal();
  return true;
}

std::vector<Time> Solver::costsGiven(const Bucket &bucket,
                                     const std::vector<int> &assignment) const {
  size_t strategies = problem.variables[bucket.variable].unary.size();
  std::vector<Time> costs(strategies, 0);
  for (const Factor &factor : bucket.factors) {
    size_t offset = 0;
    for (size_t i = 0; i + 1 < factor.scope.size(); ++i)
      offset = offset * problem.variables[factor.scope[i]].unary.size() +
               size_t(assignment[factor.scope[i]]);
    for (size_t x = 0; x < strategies; ++x)
      costs[x] = add(costs[x], factor.entries[offset * strategies + x]);
  }
  return costs;
}

std::optional<std::vector<int>> Solver::solve() {
  if (!check() || !orderVariables() || !eliminate())
    return std::nullopt;
  optimumCost = constant;
  std::vector<int> assignment(problem.variables.size(), -1);
  for (size_t rank = buckets.size(); rank-- > 0;) {
    std::vector<Time> costs = costsGiven(buckets[rank], assignment);
    assignment[buckets[rank].variable] =
        int(std::min_element(costs.begin(), costs.end()) - costs.begin());
  }
  for (size_t v = 0; v < assignment.size(); ++v)
    assignment[v] = original[v][assignment[v]];
  return assignment;
}

/// Downward pass. `outside[b]`, over the scope of bucket b, is the least cost
/// of everything that is not in b's subtree. With joint = tables of b +
/// outside[b]:
///
///   marginal of b's variable = min of joint over the neighbours
///   outside[child]           = min of joint over what the child doesn't see,
///                              less the child's own message
std::vector<std::vector<Time>> Solver::minMarginals() const {
  std::vector<std::vector<Time>> marginals(problem.variables.size());
  if (optimumCost >= kIllegal)
    return marginals;
  std::vector<std::vector<Time>> outside(buckets.size());
  for (size_t rank = buckets.size(); rank-- > 0;) {
    const Bucket &bucket = buckets[rank];
    std::vector<int> clique = bucket.scope;
    clique.push_back(bucket.variable);
    std::vector<size_t> sizes;
    size_t total = 1;
    for (int v : clique) {
      sizes.push_back(problem.variables[v].unary.size());
      total *= sizes.back();
    }
    // For each position of the joint table, the position in a smaller table.
    std::vector<size_t> digits(clique.size());
    auto walk = [&](const std::vector<int> &scope, auto &&visit) {
      std::vector<size_t> strides(clique.size(), 0);
      size_t stride = 1;
      for (size_t i = scope.size(); i-- > 0;) {
        strides[std::find(clique.begin(), clique.end(), scope[i]) -
                clique.begin()] = stride;
        stride *= problem.variables[scope[i]].unary.size();
      }
      std::fill(digits.begin(), digits.end(), 0);
      size_t offset = 0;
      for (size_t position = 0; position < total; ++position) {
        visit(position, offset);
        for (size_t d = clique.size(); d-- > 0;) {
          offset += strides[d];
          if (++digits[d] < sizes[d])
            break;
          offset -= strides[d] * sizes[d];
          digits[d] = 0;
        }
      }
    };

    std::vector<Time> joint(total, 0);
    for (const Factor &factor : bucket.factors)
      walk(factor.scope, [&](size_t position, size_t offset) {
        joint[position] = add(joint[position], factor.entries[offset]);
      });
    if (bucket.scope.empty()) {
      Time others = constant - *std::min_element(joint.begin(), joint.end());
      for (Time &cost : joint)
        cost = add(cost, others);
    } else {
      walk(bucket.scope, [&](size_t position, size_t offset) {
        joint[position] = add(joint[position], outside[rank][offset]);
      });
      outside[rank] = {};
    }

    std::vector<Time> &marginal = marginals[bucket.variable];
    marginal.assign(sizes.back(), kIllegal);
    walk({bucket.variable}, [&](size_t position, size_t offset) {
      marginal[offset] = std::min(marginal[offset], joint[position]);
    });
    for (const Factor &factor : bucket.factors) {
      if (factor.fromBucket < 0)
        continue;
      std::vector<Time> &down = outside[factor.fromBucket];
      down.assign(factor.entries.size(), kIllegal);
      walk(factor.scope, [&](size_t position, size_t offset) {
        down[offset] = std::min(down[offset], joint[position]);
      });
      for (size_t i = 0; i < down.size(); ++i)
        down[i] = down[i] >= kIllegal ? kIllegal : down[i] - factor.entries[i];
    }
  }
  for (size_t v = 0; v < marginals.size(); ++v) {
    std::vector<Time> all(given[v], kIllegal);
    for (size_t x = 0; x < original[v].size(); ++x)
      all[original[v][x]] = marginals[v][x];
    marginals[v] = std::move(all);
  }
  return marginals;
}

} // namespace mtp::plan
