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
/// optimum, and what every other choice would cost.
///
/// Invariant: buckets are in order of elimination, and the scope of a bucket's
/// message has only variables of later buckets.
class Solver {
public:
  explicit Solver(Problem problem, SolverOptions options = {});

  /// The cheapest assignment, or nothing and error().
  std::optional<std::vector<int>> solve();
  /// Its cost: lower bound and optimum in one. After a successful solve().
  Time optimum() const { return optimumCost; }
  /// For every variable and strategy, the least total cost with that strategy
  /// forced (kIllegal: none). After a successful solve().
  std::vector<std::vector<Time>> minMarginals() const;

  const SolverError &error() const { return failure; }
  /// Largest number of neighbours at elimination, and entries of that table.
  int width() const { return largestScope; }
  int64_t largestTable() const { return largestEntries; }

private:
  struct Factor {
    std::vector<int> scope;    ///< variables, by rank of elimination
    std::vector<Time> entries; ///< row-major over scope
    int fromBucket = -1;       ///< whose message it is
  };
  struct Bucket {
    int variable = 0;
    std::vector<int> scope; ///< neighbours, by rank of elimination
    std::vector<Factor> factors;
    int parent = -1; ///< bucket that the message goes to
  };

  bool check();
  void dropIllegal();
  bool orderVariables();
  bool eliminate();
  void fillMessage(const Bucket &bucket, std::vector<Time> &message) const;
  /// Cost of each strategy of the bucket's variable under `assignment`.
  std::vector<Time> costsGiven(const Bucket &bucket,
                               const std::vector<int> &assignment) const;
  int64_t entriesOf(const std::vector<int> &scope) const;

  Problem problem; ///< after check(): without illegal strategies
  std::vector<std::vector<int>>
      original;              ///< strategies by variable, as the caller counts
  std::vector<size_t> given; ///< how many there were
  SolverOptions options;
  SolverError failure;
  std::vector<int> order, rankOf;
  std::vector<std::vector<int>> scopes; ///< by rank
  std::vector<Bucket> buckets;
  Time constant = 0; ///< sum of messages without a scope
  Time optimumCost = kIllegal;
  int largestScope = 0;
  int64_t largestEntries = 0, allEntries = 0;
};

/// Makes strategies illegal that have no legal partner in a neighbour, or that
/// another strategy of the variable replaces at no cost, whatever the
/// neighbours do. The optimum stays, and the least cost with each strategy that
/// stays. Among equals the first strategy stays.
void removeDominated(Problem &problem);

/// Cost of an assignment.
Time costOf(const Problem &problem, const std::vector<int> &assignment);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_SOLVER_H
