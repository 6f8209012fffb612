// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Pareto.h - the cheapest assignment that fits a budget --------------===//
//
// minimize    cost(x)                       as Solver.h has it
// subject to  additive(x) + transient(x) <= budget
//
//   additive(x)   sum of the bytes of all variables and pairs
//   transient(x)  largest of the transient bytes of all variables and pairs
//
// Exact: bytes are never rounded. The order of elimination is the solver's; a
// message is not one cost for each assignment of the neighbours but a list of
// labels (cost, additive, transient), of which none is at most another in all
// three. A label is dropped when no completion of it can fit and cost less than
// a limit:
//
//   cost + rest_0                                           >= limit   or
//   cost + rest_l - l (budget - additive - transient)       >= limit   or
//   additive + least bytes of the rest + transient           > budget
//
// rest_l is the least cost of everything outside the label's bucket with l
// picoseconds charged for each byte: messages that come down the same tree,
// once for each l. l is the multiplier whose bound (the Lagrangian dual) is
// largest. The limit starts close to that bound, where few labels are left, and
// grows: what is cheaper than a limit arrives at the root, and is the optimum,
// or does not exist, which raises the bound to the limit. Where the labels are
// too many even between two limits, short lists, which drop more, find a good
// plan, and the bound stays.
//
// Lists take more room than messages. Where the tables are too large for lists,
// but not for messages, each pass leaves out the strategies that no assignment
// has that fits and costs less than the limit, by the min-marginals of the same
// three bounds, and eliminates what is left in an order of its own.
//
// A solver answers for one budget after the other. What was found and proven
// for one is known for the next: plans that fit, and bounds of larger budgets.
//
// Worked example, budget 10:
//
//   a: unary (5, 1) bytes (2, 6)   b: unary (4, 2) bytes (3, 5)   pair 0
//   labels of a: (5, 2) (1, 6); with b: (9, 5) (7, 7) (5, 9) (3, 11)
//   (3, 11) does not fit; (5, 9) is the answer: a = 1, b = 0.
//
// Invariants: the labels of a bucket for one assignment of its scope are sorted
// by cost, and no two of them are comparable; every label is the exact cost and
// bytes of some assignment of the bucket's subtree.
//
// Determinism as in Solver.h: among plans of least cost one of the fewest bytes
// among the labels that were kept, then the first strategies.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_PARETO_H
#define MTP_COMPILER_PLAN_PARETO_H

#include "compiler/plan/Solver.h"

namespace mtp::plan {

struct ByteCount {
  int64_t additive = 0, transient = 0;
  int64_t total() const { return additive + transient; }
};
/// Bytes of an assignment.
ByteCount bytesOf(const Problem &problem, const MemoryModel &memory,
                  const std::vector<int> &assignment);

struct ParetoOptions {
  SolverOptions tables; ///< of messages
  /// Entries of the tables that are beside lists: of the largest, and of all.
  int64_t listTable = int64_t(1) << 17, listWork = int64_t(1) << 23;
  /// Labels of all lists together, in one pass. Beyond it the result is a Gap:
  /// the best plan known, and what is proven of it.
  int64_t labelLimit = int64_t(1) << 24;
};

struct ParetoResult {
  enum Status {
    Optimal,    ///< bound == cost
    Gap,        ///< too many labels, or tables: bound < cost, the plan fits
    Infeasible, ///< nothing fits: the assignment is that of the least bytes
    Failed,     ///< no assignment at all, or tables too large: error()
  } status = Failed;
  std::vector<int> assignment;
  Time cost = kIllegal;
  ByteCount bytes;
  Time bound = 0; ///< no assignment that fits costs less
  /// Of the best Lagrangian bound: picoseconds for 2^20 additive bytes.
  int64_t multiplier = 0;
  /// Of the unconstrained optimum: what the budget costs is the difference.
  Time unconstrained = 0;
  int64_t labels = 0; ///< of the largest pass
  int passes = 0;
};

class ParetoSolver {
public:
  /// `budget` in bytes.
  ParetoSolver(Problem problem, MemoryModel memory, int64_t budget,
               ParetoOptions options = {});
  ~ParetoSolver();

  /// What is asked for from here on. Which of several plans of least cost is
  /// found may depend on what was asked before.
  void setBudget(int64_t budget);
  /// The cheapest assignment that fits. If there is none, the result is that of
  /// least(): its bytes are the least budget that would do.
  ParetoResult solve();
  /// The assignment of the least bytes (additive + transient), whatever it
  /// costs; its status is Optimal (of bytes) or Failed.
  ParetoResult least();

  const SolverError &error() const;
  /// Of all answers: entries of messages, and sums of labels.
  int64_t work() const;

private:
  class Search;
  std::unique_ptr<Search> search;
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_PARETO_H
