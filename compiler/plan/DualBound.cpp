// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/DualBound.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace mtp::plan {
namespace {

/// What is moved for a strategy that has no partner. An illegal entry with two
/// of these is still no overflow.
constexpr Time kNever = Time(1) << 60;
/// Sums of what is legal stay below, whatever was moved.
constexpr Time kLegal = Time(1) << 58;

/// Invariant: moving changes no assignment's cost.
class Ascent {
public:
  Ascent(const Problem &problem, const std::vector<int> &sequence)
      : problem(problem), sequence(sequence), pairsOf(problem.variables.size()),
        rank(problem.variables.size()), moved(problem.pairs.size()),
        unary(problem.variables.size()) {
    for (size_t i = 0; i < sequence.size(); ++i)
      rank[sequence[i]] = int(i);
    for (size_t i = 0; i < problem.pairs.size(); ++i) {
      const Pair &pair = problem.pairs[i];
      pairsOf[pair.a].push_back(int(i));
      pairsOf[pair.b].push_back(int(i));
      moved[i][0].assign(problem.variables[pair.a].unary.size(), 0);
      moved[i][1].assign(problem.variables[pair.b].unary.size(), 0);
    }
    for (size_t v = 0; v < unary.size(); ++v)
      unary[v] = problem.variables[v].unary;
  }

  /// All variables once; `forth` or back.
  void visit(bool forth) {
    for (size_t i = 0; i < sequence.size(); ++i)
      visit(sequence[forth ? i : sequence.size() - 1 - i], forth);
  }

  /// kIllegal where a variable or a table has nothing legal left.
  Time bound() const {
    std::vector<Time> terms;
    for (const std::vector<Time> &costs : unary)
      terms.push_back(*std::min_element(costs.begin(), costs.end()));
    for (size_t i = 0; i < moved.size(); ++i)
      terms.push_back(leastOf(int(i)));
    if (std::any_of(terms.begin(), terms.end(),
                    [](Time least) { return least >= kLegal; }))
      return kIllegal;
    return std::accumulate(terms.begin(), terms.end(), Time(0));
  }

  std::vector<Time> marginals(int v, Time bound) const {
    Time mine = *std::min_element(unary[v].begin(), unary[v].end());
    std::vector<Time> all = problem.variables[v].unary;
    for (int index : pairsOf[v]) {
      mine += leastOf(index);
      std::vector<Time> least = leastBeside(index, v);
      for (size_t x = 0; x < all.size(); ++x)
        all[x] = least[x] < kLegal ? add(all[x], least[x]) : kIllegal;
    }
    for (Time &cost : all)
      cost = cost < kLegal ? std::max<Time>(bound - mine + cost, 0) : kIllegal;
    return all;
  }

  /// Each variable in turn takes what is cheapest beside those before it.
  std::vector<int> round() const {
    std::vector<int> assignment(problem.variables.size(), -1);
    for (int v : sequence) {
      std::vector<Time> costs = problem.variables[v].unary;
      for (int index : pairsOf[v]) {
        const Pair &pair = problem.pairs[index];
        int other = pair.a == v ? pair.b : pair.a;
        std::vector<Time> beside;
        if (assignment[other] < 0) {
          beside = leastBeside(index, v);
        } else {
          size_t columns = problem.variables[pair.b].unary.size();
          for (size_t x = 0; x < costs.size(); ++x)
            beside.push_back(pair.a == v
                                 ? pair.table[x * columns + assignment[other]]
                                 : pair.table[assignment[other] * columns + x]);
        }
        for (size_t x = 0; x < costs.size(); ++x)
          costs[x] = beside[x] < kLegal ? add(costs[x], beside[x]) : kIllegal;
      }
      assignment[v] =
          int(std::min_element(costs.begin(), costs.end()) - costs.begin());
    }
    return assignment;
  }

private:
  void visit(int v, bool forth) {
    size_t later = 0;
    std::vector<std::vector<Time>> least;
    std::vector<Time> all = problem.variables[v].unary;
    for (int index : pairsOf[v]) {
      later += isLater(index, v, forth);
      least.push_back(leastBeside(index, v));
      for (size_t x = 0; x < all.size(); ++x)
        all[x] = least.back()[x] < kLegal && all[x] < kLegal
                     ? all[x] + least.back()[x]
                     : kNever;
    }
    size_t parts = std::max(later, pairsOf[v].size() - later);
    unary[v] = all;
    for (size_t e = 0; e < least.size(); ++e) {
      int index = pairsOf[v][e];
      std::vector<Time> &mine = moved[index][problem.pairs[index].b == v];
      bool given = isLater(index, v, forth);
      for (size_t x = 0; x < all.size(); ++x) {
        if (all[x] >= kLegal) {
          mine[x] = kNever;
          continue;
        }
        Time part = given ? all[x] / Time(parts) : 0;
        mine[x] = part - least[e][x];
        unary[v][x] -= part;
      }
    }
  }

  bool isLater(int index, int v, bool forth) const {
    const Pair &pair = problem.pairs[index];
    int other = pair.a == v ? pair.b : pair.a;
    return (rank[other] > rank[v]) == forth;
  }

  /// For each strategy of `v` the least entry, with what the other end moved.
  std::vector<Time> leastBeside(int index, int v) const {
    const Pair &pair = problem.pairs[index];
    const size_t rows = moved[index][0].size(),
                 columns = moved[index][1].size();
    if (pair.a == v) {
      std::vector<Time> least(rows, kNever);
      const Time *theirs = moved[index][1].data();
      for (size_t x = 0; x < rows; ++x) {
        const Time *row = pair.table.data() + x * columns;
        Time best = kNever;
        for (size_t y = 0; y < columns; ++y)
          best = std::min(best, row[y] + theirs[y]);
        least[x] = best;
      }
      return least;
    }
    std::vector<Time> least(columns, kNever);
    for (size_t x = 0; x < rows; ++x) {
      const Time *row = pair.table.data() + x * columns;
      const Time theirs = moved[index][0][x];
      for (size_t y = 0; y < columns; ++y)
        least[y] = std::min(least[y], row[y] + theirs);
    }
    return least;
  }

  Time leastOf(int index) const {
    const Pair &pair = problem.pairs[index];
    std::vector<Time> least = leastBeside(index, pair.a);
    Time best = kNever;
    for (size_t x = 0; x < least.size(); ++x)
      best = std::min(best, least[x] + moved[index][0][x]);
    return best;
  }

  const Problem &problem;
  const std::vector<int> &sequence;
  std::vector<std::vector<int>> pairsOf;
  std::vector<int> rank;
  std::vector<std::array<std::vector<Time>, 2>> moved; ///< by pair: from a, b
  std::vector<std::vector<Time>> unary;                ///< what is left
};

} // namespace

DualBound dualBound(const Problem &problem, const std::vector<int> &sequence) {
  constexpr int mostRounds = 32;
  // A round that gains less than this part of the bound is the last.
  constexpr Time finest = 2048;
  Ascent ascent(problem, sequence);
  DualBound result;
  for (int round = 0; round < mostRounds; ++round) {
    ascent.visit(/*forth=*/true);
    ascent.visit(/*forth=*/false);
    Time bound = ascent.bound();
    bool isLast = bound - result.bound <= result.bound / finest;
    result.bound = std::max(result.bound, bound);
    if (bound == kIllegal || (isLast && round > 0))
      break;
  }
  if (result.bound == kIllegal) {
    for (const Variable &variable : problem.variables)
      result.marginals.emplace_back(variable.unary.size(), kIllegal);
    return result;
  }
  Time bound = ascent.bound();
  for (size_t v = 0; v < problem.variables.size(); ++v)
    result.marginals.push_back(ascent.marginals(int(v), bound));
  result.assignment = ascent.round();
  return result;
}

} // namespace mtp::plan
