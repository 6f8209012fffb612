// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Prune.cpp - strategies that no cheapest assignment needs ----------===//
#include "compiler/plan/Solver.h"

#include <algorithm>

namespace mtp::plan {
namespace {

/// Invariant: a strategy that is made illegal has no legal partner in some
/// neighbour, or another legal strategy that is never dearer, whatever the
/// neighbours do. So the optimum stays, and so does the least cost with any
/// strategy that is left.
class Pruner {
public:
  explicit Pruner(Problem &problem)
      : problem(problem), pairsOf(problem.variables.size()),
        changed(problem.variables.size(), true) {
    for (size_t i = 0; i < problem.pairs.size(); ++i) {
      pairsOf[problem.pairs[i].a].push_back(int(i));
      pairsOf[problem.pairs[i].b].push_back(int(i));
    }
    for (size_t v = 0; v < problem.variables.size(); ++v)
      sequence.push_back(int(v));
    std::sort(sequence.begin(), sequence.end(), [&](int a, int b) {
      return std::pair(problem.variables[a].hash, a) <
             std::pair(problem.variables[b].hash, b);
    });
  }

  void run() {
    // Later rounds find little.
    constexpr int mostRounds = 4;
    bool any = true;
    for (int round = 0; any && round < mostRounds; ++round) {
      any = false;
      for (int v : sequence) {
        if (!changed[v])
          continue;
        changed[v] = false;
        if (!visit(v))
          continue;
        any = changed[v] = true;
        for (int index : pairsOf[v])
          changed[other(problem.pairs[index], v)] = true;
        if (!isLegal(v))
          return; // the elimination says so, with names
      }
    }
  }

private:
  /// Costs beside one neighbour: a row for each strategy of the variable, a
  /// column for each legal strategy of the neighbour.
  struct Side {
    std::vector<Time> rows;
    size_t columns = 0;
  };

  static int other(const Pair &pair, int v) {
    return pair.a == v ? pair.b : pair.a;
  }

  bool isLegal(int v) const {
    const std::vector<Time> &unary = problem.variables[v].unary;
    return std::any_of(unary.begin(), unary.end(),
                       [](Time cost) { return cost < kIllegal; });
  }

  Side sideOf(const Pair &pair, int v) const {
    const std::vector<Time> &theirs = problem.variables[other(pair, v)].unary;
    size_t rows = problem.variables[v].unary.size();
    Side side;
    for (Time cost : theirs)
      side.columns += cost < kIllegal;
    side.rows.reserve(rows * side.columns);
    for (size_t x = 0; x < rows; ++x)
      for (size_t z = 0; z < theirs.size(); ++z)
        if (theirs[z] < kIllegal)
          side.rows.push_back(pair.a == v ? pair.table[x * theirs.size() + z]
                                          : pair.table[z * rows + x]);
    return side;
  }

  /// Removes strategies of one variable; true if there were any.
  bool visit(int v) {
    std::vector<Time> &unary = problem.variables[v].unary;
    std::vector<Side> sides;
    for (int index : pairsOf[v])
      sides.push_back(sideOf(problem.pairs[index], v));
    bool any = false;
    std::vector<int> legal;
    for (int x = 0; x < int(unary.size()); ++x) {
      if (unary[x] >= kIllegal)
        continue;
      if (hasPartners(sides, x)) {
        legal.push_back(x);
        continue;
      }
      unary[x] = kIllegal;
      any = true;
    }
    // Beyond so many the comparison costs more than it saves.
    constexpr size_t most = 384;
    if (legal.size() > most)
      return any;
    for (int y : std::vector<int>(legal.rbegin(), legal.rend()))
      for (int x : legal)
        if (x != y && unary[x] < kIllegal && dominates(unary, sides, x, y)) {
          unary[y] = kIllegal;
          any = true;
          break;
        }
    return any;
  }

  static bool hasPartners(const std::vector<Side> &sides, int x) {
    return std::all_of(sides.begin(), sides.end(), [&](const Side &side) {
      const Time *row = side.rows.data() + x * side.columns;
      return std::any_of(row, row + side.columns,
                         [](Time cost) { return cost < kIllegal; });
    });
  }

  /// x instead of y is never dearer: unary(x) - unary(y) + for each neighbour
  /// the largest difference <= 0 (Goldstein's criterion).
  static bool dominates(const std::vector<Time> &unary,
                        const std::vector<Side> &sides, int x, int y) {
    Time difference = unary[x] - unary[y];
    for (const Side &side : sides) {
      const Time *mine = side.rows.data() + x * side.columns,
                 *theirs = side.rows.data() + y * side.columns;
      Time largest = -kIllegal;
      for (size_t z = 0; z < side.columns; ++z) {
        if (theirs[z] >= kIllegal)
          continue;
        if (mine[z] >= kIllegal)
          return false;
        largest = std::max(largest, mine[z] - theirs[z]);
      }
      difference += largest;
    }
    return difference <= 0;
  }

  Problem &problem;
  std::vector<std::vector<int>> pairsOf;
  std::vector<bool> changed;
  std::vector<int> sequence; ///< by hash, then by position
};

} // namespace

void removeDominated(Problem &problem) { Pruner(problem).run(); }

} // namespace mtp::plan
