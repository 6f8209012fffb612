// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Prune.cpp - strategies that no cheapest assignment needs ----------===//
#include "compiler/plan/Solver.h"

#include <algorithm>

namespace mtp::plan {
namespace {

/// Invariant: a strategy that is made illegal has no legal partner in some
/// neighbour, or another legal strategy that is never dearer, whatever the
/// neighbours do, nor takes more bytes. So the optimum stays under any budget,
/// and so does the least cost with any strategy that is left.
class Pruner {
public:
  Pruner(Problem &problem, const MemoryModel &memory)
      : problem(problem), memory(memory), pairsOf(problem.variables.size()),
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
  /// column for each legal strategy of the neighbour. Bytes likewise, or empty.
  struct Side {
    std::vector<Time> rows;
    Footprint footprint;
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

  Side sideOf(int index, int v) const {
    const Pair &pair = problem.pairs[index];
    const std::vector<Time> &theirs = problem.variables[other(pair, v)].unary;
    size_t rows = problem.variables[v].unary.size();
    Side side;
    for (Time cost : theirs)
      side.columns += cost < kIllegal;
    auto take = [&](const std::vector<int64_t> &table,
                    std::vector<int64_t> &mine) {
      if (table.empty())
        return;
      mine.reserve(rows * side.columns);
      for (size_t x = 0; x < rows; ++x)
        for (size_t z = 0; z < theirs.size(); ++z)
          if (theirs[z] < kIllegal)
            mine.push_back(pair.a == v ? table[x * theirs.size() + z]
                                       : table[z * rows + x]);
    };
    take(pair.table, side.rows);
    if (!memory.pairs.empty()) {
      take(memory.pairs[index].bytes, side.footprint.bytes);
      take(memory.pairs[index].transient, side.footprint.transient);
    }
    return side;
  }

  /// Removes strategies of one variable; true if there were any.
  bool visit(int v) {
    std::vector<Time> &unary = problem.variables[v].unary;
    std::vector<Side> sides;
    for (int index : pairsOf[v])
      sides.push_back(sideOf(index, v));
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
        if (x != y && unary[x] < kIllegal && dominates(unary, sides, x, y) &&
            takesNoMore(v, sides, x, y)) {
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

  /// x instead of y takes no more bytes: the same criterion for what adds up,
  /// entry by entry for what counts once.
  bool takesNoMore(int v, const std::vector<Side> &sides, int x, int y) const {
    int64_t difference = 0;
    if (!memory.variables.empty()) {
      const Footprint &mine = memory.variables[v];
      if (!mine.bytes.empty())
        difference = mine.bytes[x] - mine.bytes[y];
      if (!mine.transient.empty() && mine.transient[x] > mine.transient[y])
        return false;
    }
    for (const Side &side : sides) {
      const Footprint &both = side.footprint;
      int64_t largest = INT64_MIN;
      for (size_t z = 0; z < side.columns; ++z) {
        size_t i = x * side.columns + z, j = y * side.columns + z;
        if (side.rows[j] >= kIllegal)
          continue;
        if (!both.bytes.empty())
          largest = std::max(largest, both.bytes[i] - both.bytes[j]);
        if (!both.transient.empty() && both.transient[i] > both.transient[j])
          return false;
      }
      if (largest > INT64_MIN)
        difference += largest;
    }
    return difference <= 0;
  }

  Problem &problem;
  const MemoryModel &memory;
  std::vector<std::vector<int>> pairsOf;
  std::vector<bool> changed;
  std::vector<int> sequence; ///< by hash, then by position
};

} // namespace

void removeDominated(Problem &problem, const MemoryModel &memory) {
  Pruner(problem, memory).run();
}

} // namespace mtp::plan
