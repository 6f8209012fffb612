// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Eliminate.cpp - order, buckets and messages of the solver ----------===//
#include "compiler/plan/Solver.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace mtp::plan {
namespace {

/// The undirected graph of the variables that are left.
class Graph {
public:
  explicit Graph(const Problem &problem)
      : neighbours(problem.variables.size()) {
    for (const Pair &pair : problem.pairs)
      connect(pair.a, pair.b);
  }

  bool connect(int a, int b) { return insert(a, b) && insert(b, a); }

  bool adjacent(int a, int b) const {
    return std::binary_search(neighbours[a].begin(), neighbours[a].end(), b);
  }

  /// Edges that removing `v` adds.
  int64_t fill(int v) const {
    const std::vector<int> &around = neighbours[v];
    int64_t missing = 0;
    for (size_t i = 0; i < around.size(); ++i)
      for (size_t j = i + 1; j < around.size(); ++j)
        missing += !adjacent(around[i], around[j]);
    return missing;
  }

  /// Removes `v`, joins its neighbours, and adds to `changed` every variable
  /// whose fill may be another now.
  void remove(int v, std::set<int> &changed) {
    std::vector<int> around = neighbours[v];
    for (int u : around) {
      auto &list = neighbours[u];
      list.erase(std::lower_bound(list.begin(), list.end(), v));
      changed.insert(u);
    }
    for (size_t i = 0; i < around.size(); ++i)
      for (size_t j = i + 1; j < around.size(); ++j)
        if (connect(around[i], around[j]))
          std::set_intersection(
              neighbours[around[i]].begin(), neighbours[around[i]].end(),
              neighbours[around[j]].begin(), neighbours[around[j]].end(),
              std::inserter(changed, changed.end()));
    neighbours[v].clear();
  }

  const std::vector<int> &around(int v) const { return neighbours[v]; }

private:
  bool insert(int a, int b) {
    auto &list = neighbours[a];
    auto place = std::lower_bound(list.begin(), list.end(), b);
    if (place != list.end() && *place == b)
      return false;
    list.insert(place, b);
    return true;
  }

  std::vector<std::vector<int>> neighbours;
};

int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

} // namespace

int64_t Solver::entriesOf(const std::vector<int> &scope) const {
  int64_t entries = 1;
  for (int v : scope)
    entries = multiply(entries, int64_t(problem.variables[v].unary.size()));
  return entries;
}

bool Solver::orderVariables() {
  if (!order.empty() || problem.variables.empty())
    return true;
  int count = int(problem.variables.size());
  Graph graph(problem);
  using Key = std::tuple<int64_t, int64_t, uint64_t, int>;
  auto keyOf = [&](int v) {
    int64_t table = multiply(entriesOf(graph.around(v)),
                             int64_t(problem.variables[v].unary.size()));
    return Key(graph.fill(v), table, problem.variables[v].hash, v);
  };
  std::vector<Key> keys(count);
  std::set<Key> queue;
  for (int v = 0; v < count; ++v)
    queue.insert(keys[v] = keyOf(v));

  std::vector<int> sequence, ranks(count, -1);
  std::vector<std::vector<int>> around;
  while (!queue.empty()) {
    auto [fill, table, hash, v] = *queue.begin();
    queue.erase(queue.begin());
    bool tooMuch = __builtin_add_overflow(allEntries, table, &allEntries) ||
                   allEntries > options.workLimit;
    if (tooMuch || table > options.tableLimit) {
      failure.kind = SolverError::TooWide;
      failure.variables = graph.around(v);
      failure.variables.push_back(v);
      failure.message =
          "the choices of " + std::to_string(failure.variables.size()) +
          " ops depend on each other (" + std::to_string(table) +
          " combinations here, " + std::to_string(allEntries) +
          " up to here; limits are " + std::to_string(options.tableLimit) +
          " and " + std::to_string(options.workLimit) + "):";
      for (int u : failure.variables)
        failure.message += " " + problem.variables[u].name;
      return false;
    }
    ranks[v] = int(sequence.size());
    sequence.push_back(v);
    around.push_back(graph.around(v));
    largestScope = std::max(largestScope, int(around.back().size()));
    largestEntries = std::max(largestEntries, table);
    std::set<int> changed;
    graph.remove(v, changed);
    for (int u : changed) {
      if (ranks[u] >= 0)
        continue;
      queue.erase(keys[u]);
      queue.insert(keys[u] = keyOf(u));
    }
  }
  // Scopes list the variable that goes last first.
  for (auto &scope : around)
    std::sort(scope.begin(), scope.end(),
              [&](int a, int b) { return ranks[a] > ranks[b]; });
  order = std::move(sequence);
  rankOf = std::move(ranks);
  scopes = std::move(around);
  return true;
}

bool Solver::eliminate() {
  buckets.assign(order.size(), {});
  constant = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    Bucket &bucket = buckets[rank];
    bucket.variable = order[rank];
    bucket.scope = scopes[rank];
    Factor own;
    own.scope = {bucket.variable};
    own.entries = problem.variables[bucket.variable].unary;
    bucket.factors.push_back(std::move(own));
  }
  for (const Pair &pair : problem.pairs) {
    bool swapped = rankOf[pair.a] < rankOf[pair.b];
    int late = swapped ? pair.b : pair.a, early = swapped ? pair.a : pair.b;
    size_t rows = problem.variables[pair.a].unary.size();
    size_t columns = problem.variables[pair.b].unary.size();
    Factor factor;
    factor.scope = {late, early};
    factor.entries.resize(rows * columns);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j)
        factor.entries[swapped ? j * rows + i : i * columns + j] =
            pair.table[i * columns + j];
    buckets[rankOf[early]].factors.push_back(std::move(factor));
  }

  for (size_t rank = 0; rank < buckets.size(); ++rank) {
    Bucket &bucket = buckets[rank];
    Factor message;
    message.scope = bucket.scope;
    message.fromBucket = int(rank);
    fillMessage(bucket, message.entries);
    if (std::all_of(message.entries.begin(), message.entries.end(),
                    [](Time cost) { return cost >= kIllegal; })) {
      failure = {};
      failure.kind = SolverError::Infeasible;
      failure.variables = bucket.scope;
      failure.variables.push_back(bucket.variable);
      failure.message =
          "no legal choice for " + problem.variables[bucket.variable].name;
      if (!bucket.scope.empty())
        failure.message += " beside";
      for (int v : bucket.scope)
        failure.message += " " + problem.variables[v].name;
      return false;
    }
    if (bucket.scope.empty()) {
      constant = add(constant, message.entries.front());
      continue;
    }
    bucket.parent = rankOf[bucket.scope.back()];
    buckets[bucket.parent].factors.push_back(std::move(message));
  }
  return true;
}

/// Walks the neighbours' assignments depth first and keeps, at each depth, the
/// sum of the tables that are fixed so far as one row over the bucket's
/// variable.
void Solver::fillMessage(const Bucket &bucket,
                         std::vector<Time> &message) const {
  const size_t depth = bucket.scope.size();
  const size_t strategies = problem.variables[bucket.variable].unary.size();
  std::vector<size_t> sizes(depth), below(depth + 1, 1);
  for (size_t d = depth; d-- > 0;) {
    sizes[d] = problem.variables[bucket.scope[d]].unary.size();
    below[d] = below[d + 1] * sizes[d];
  }
  message.assign(below[0], kIllegal);

  // strides[f][d]: what one step of neighbour d moves in factor f.
  // ready[d]: factors whose last neighbour is d; ready of `depth` unused.
  size_t factors = bucket.factors.size();
  std::vector<std::vector<size_t>> strides(factors,
                                           std::vector<size_t>(depth, 0));
  std::vector<std::vector<int>> ready(depth);
  std::vector<Time> base(strategies, 0);
  for (size_t f = 0; f < factors; ++f) {
    const Factor &factor = bucket.factors[f];
    size_t stride = strategies;
    int last = -1;
    for (size_t i = factor.scope.size() - 1; i-- > 0;) {
      size_t d =
          std::find(bucket.scope.begin(), bucket.scope.end(), factor.scope[i]) -
          bucket.scope.begin();
      strides[f][d] = stride;
      stride *= sizes[d];
      last = std::max(last, int(d));
    }
    if (last >= 0)
      ready[last].push_back(int(f));
    else
      for (size_t x = 0; x < strategies; ++x)
        base[x] = add(base[x], factor.entries[x]);
  }

  std::vector<std::vector<Time>> rows(depth + 1, base);
  std::vector<std::vector<size_t>> offsets(depth + 1,
                                           std::vector<size_t>(factors, 0));
  auto descend = [&](auto &&self, size_t d, size_t position) -> void {
    if (d == depth) {
      message[position] = *std::min_element(rows[d].begin(), rows[d].end());
      return;
    }
    for (size_t x = 0; x < sizes[d]; ++x) {
      for (size_t f = 0; f < factors; ++f)
        offsets[d + 1][f] = offsets[d][f] + x * strides[f][d];
      const Time *above = rows[d].data();
      Time *row = rows[d + 1].data();
      Time least = kIllegal;
      std::copy(above, above + strategies, row);
      for (int f : ready[d]) {
        const Time *entries =
            bucket.factors[f].entries.data() + offsets[d + 1][f];
        for (size_t s = 0; s < strategies; ++s)
          row[s] = add(row[s], entries[s]);
      }
      for (size_t s = 0; s < strategies; ++s)
        least = std::min(least, row[s]);
      if (least < kIllegal) // otherwise all of these stay kIllegal
        self(self, d + 1, position + x * below[d + 1]);
    }
  };
  descend(descend, 0, 0);
}

} // namespace mtp::plan
