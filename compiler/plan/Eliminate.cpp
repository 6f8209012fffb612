// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Eliminate.h"

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

std::optional<Elimination> eliminate(const Problem &problem,
                                     const SolverOptions &options,
                                     SolverError &error) {
  int count = int(problem.variables.size());
  Graph graph(problem);
  auto tableOf = [&](int v) {
    int64_t entries = int64_t(problem.variables[v].unary.size());
    for (int u : graph.around(v))
      entries = multiply(entries, int64_t(problem.variables[u].unary.size()));
    return entries;
  };
  using Key = std::tuple<int64_t, int64_t, uint64_t, int>;
  auto keyOf = [&](int v) {
    return Key(graph.fill(v), tableOf(v), problem.variables[v].hash, v);
  };
  std::vector<Key> keys(count);
  std::set<Key> queue;
  for (int v = 0; v < count; ++v)
    queue.insert(keys[v] = keyOf(v));

  Elimination tree;
  tree.rankOf.assign(count, -1);
  int64_t allEntries = 0;
  while (!queue.empty()) {
    auto [fill, table, hash, v] = *queue.begin();
    queue.erase(queue.begin());
    bool tooMuch = __builtin_add_overflow(allEntries, table, &allEntries) ||
                   allEntries > options.workLimit;
    if (tooMuch || table > options.tableLimit) {
      error.kind = SolverError::TooWide;
      error.variables = graph.around(v);
      error.variables.push_back(v);
      error.message =
          "the choices of " + std::to_string(error.variables.size()) +
          " ops depend on each other (" + std::to_string(table) +
          " combinations here, " + std::to_string(allEntries) +
          " up to here; limits are " + std::to_string(options.tableLimit) +
          " and " + std::to_string(options.workLimit) + "):";
      for (int u : error.variables)
        error.message += " " + problem.variables[u].name;
      return std::nullopt;
    }
    tree.rankOf[v] = int(tree.buckets.size());
    Elimination::Bucket bucket;
    bucket.variable = v;
    bucket.scope = graph.around(v);
    tree.width = std::max(tree.width, int(bucket.scope.size()));
    tree.largestTable = std::max(tree.largestTable, table);
    tree.buckets.push_back(std::move(bucket));
    std::set<int> changed;
    graph.remove(v, changed);
    for (int u : changed) {
      if (tree.rankOf[u] >= 0)
        continue;
      queue.erase(keys[u]);
      queue.insert(keys[u] = keyOf(u));
    }
  }

  tree.entries = allEntries;
  tree.buckets.emplace_back();
  for (int rank = 0; rank < count; ++rank) {
    Elimination::Bucket &bucket = tree.buckets[rank];
    std::sort(bucket.scope.begin(), bucket.scope.end(),
              [&](int a, int b) { return tree.rankOf[a] > tree.rankOf[b]; });
    bucket.parent =
        bucket.scope.empty() ? count : tree.rankOf[bucket.scope.back()];
    tree.buckets[bucket.parent].children.push_back(rank);
  }
  for (size_t i = 0; i < problem.pairs.size(); ++i) {
    const Pair &pair = problem.pairs[i];
    tree.buckets[std::min(tree.rankOf[pair.a], tree.rankOf[pair.b])]
        .pairs.push_back(int(i));
  }
  return tree;
}

SolverError infeasible(const Problem &problem, const Elimination &tree,
                       int index) {
  const Elimination::Bucket &bucket = tree.buckets[index];
  SolverError error{SolverError::Infeasible, "", bucket.scope};
  error.variables.push_back(bucket.variable);
  error.message =
      "no legal choice for " + problem.variables[bucket.variable].name;
  if (!bucket.scope.empty())
    error.message += " beside";
  for (int v : bucket.scope)
    error.message += " " + problem.variables[v].name;
  return error;
}

} // namespace mtp::plan
