// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Solver.h - exact minimization of a pairwise cost model -------------===//
//
// minimize   sum_v unary_v(x_v) + sum_(a,b) pair_ab(x_a, x_b)
//
// by bucket elimination in min-fill order: exact, and linear in the number of
// variables while the width of the graph is small (2 to 3 for transformers at
// any depth). The optimum is its own certificate: no assignment costs less.
//
//   x_v is removed:   m(x_N) = min over x_v of the sum of all tables that
//                     mention v; N, its neighbours, become a clique.
//
// Determinism: nothing depends on addresses or names. The order of elimination
// is by (fill, hash, position); among equal optima the one is taken that is
// lexicographically first, strategies in the caller's order, variables from the
// last eliminated to the first.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_SOLVER_H
#define MTP_COMPILER_PLAN_SOLVER_H

#include "compiler/plan/Cost.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mtp::plan {

/// A variable: one unary cost for each strategy (kIllegal: never).
struct Variable {
  std::vector<Time> unary;
  uint64_t hash = 0; ///< structure; orders variables, equal hashes by position
  std::string name;  ///< for messages only
};

/// A table over two different variables, row-major: table[xa * strategies(b) +
/// xb]. Several tables over the same two variables add up.
struct Pair {
  int a = 0, b = 0;
  std::vector<Time> table;
};

struct Problem {
  std::vector<Variable> variables;
  std::vector<Pair> pairs;
};

/// Bytes of one variable's strategies, or of a pair's table (same layout as the
/// costs). An empty list is all zeros. None is negative; no sum over a problem
/// may exceed 2^60.
struct Footprint {
  std::vector<int64_t> bytes;     ///< these add up
  std::vector<int64_t> transient; ///< of these the largest counts
};

/// By variable and by pair of a Problem; empty: no bytes at all.
struct MemoryModel {
  std::vector<Footprint> variables, pairs;
};

struct SolverOptions {
  /// Entries of the largest table (over a variable and its neighbours). Beyond
  /// it the solver reports an error that names the variables.
  int64_t tableLimit = int64_t(1) << 28;
  /// Entries of all tables together.
  int64_t workLimit = int64_t(1) << 33;
  /// Removes dominated strategies first: the same optimum from smaller tables.
  /// Their min-marginals are then not known.
  bool prune = false;
};

/// Why there is no assignment.
struct SolverError {
  enum Kind { Malformed, Infeasible, TooWide } kind = Malformed;
  std::string message;
  std::vector<int> variables; ///< that the message is about
};

/// Removes the variables one by one once; answers two questions from that: the
/// optimum, and what every other choice would cost. Buckets that are equal (the
/// layers of a model) are computed once (Fold.h).
class Solver {
public:
  explicit Solver(Problem problem, SolverOptions options = {});
  Solver(Solver &&);
  Solver &operator=(Solver &&);
  ~Solver();

  /// The cheapest assignment, or nothing and error().
  std::optional<std::vector<int>> solve();
  /// Its cost: lower bound and optimum in one. After a successful solve().
  Time optimum() const { return optimumCost; }
  /// For every variable and strategy, the least total cost with that strategy
  /// forced (kIllegal: none). After a successful solve().
  std::vector<std::vector<Time>> minMarginals() const;

  const SolverError &error() const { return failure; }
  /// Largest number of neighbours at elimination, and entries of that table.
  int width() const;
  int64_t largestTable() const;
  /// Messages that were computed; of equal buckets only one is.
  int computedMessages() const;

private:
  struct State;
  bool prepare();

  Problem problem; ///< once prepared: without illegal strategies
  std::vector<std::vector<int>> original; ///< by variable, as the caller counts
  std::vector<size_t> given;              ///< how many there were
  SolverOptions options;
  SolverError failure;
  std::unique_ptr<State> state; ///< of the elimination
  Time optimumCost = kIllegal;
};

/// Makes strategies illegal that have no legal partner in a neighbour, or that
/// another strategy of the variable replaces at no cost and no bytes, whatever
/// the neighbours do. The optimum stays under any budget, and the least cost
/// with each strategy that stays. Among equals the first strategy stays.
void removeDominated(Problem &problem, const MemoryModel &memory = {});

/// Takes the strategies away that are illegal alone; a variable without legal
/// strategy keeps its first. Returns the numbers of those that stay.
std::vector<std::vector<int>> dropIllegal(Problem &problem,
                                          MemoryModel &memory);

/// Says what is malformed: a variable without strategies, a table of another
/// size, a cost that is negative or above kIllegal. Nothing if all is well.
std::optional<SolverError> findMalformed(const Problem &problem);

/// Cost of an assignment.
Time costOf(const Problem &problem, const std::vector<int> &assignment);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_SOLVER_H
