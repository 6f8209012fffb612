// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BudgetRegret.h - what other choices would cost under a budget ------===//
//
// For a strategy x of a variable v, among the assignments that have it and fit
// the budget (Pareto.h), the cost of the cheapest:
//
//   marginal(v, x) = min { cost(a) : a_v = x, bytes(a) <= budget }
//
// From below: min-marginals of the costs that charge the best multiplier for
// each byte, of all strategies at once. From above: every assignment that was
// found and fits bounds the marginals of all its strategies. Where the two
// meet, the marginal is known. The gap between them is about that of the
// chosen assignment, so lists of labels within a window of such a size above
// the lower bounds (LabelMarginals.h) find most marginals in one pass over the
// model; the window grows while that is not enough. What is left is searched
// for with v fixed to x.
//
// A question asks which of some strategies of a variable is cheapest; others
// are looked at only while they may be cheaper. Questions about variables that
// are alike (equal messages around them, as in equal layers) stand behind the
// first of each kind, so that the work, which is limited, tells most.
//
// The work is counted in labels, never in time: those of all passes, and one
// for every variable of a search. What is not known when the limit is reached
// stays a lower bound and is marked as one.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_BUDGETREGRET_H
#define MTP_COMPILER_PLAN_BUDGETREGRET_H

#include "compiler/plan/Pareto.h"

namespace mtp::plan {

/// The least cost of an assignment with a strategy.
struct Marginal {
  Time cost = kIllegal; ///< kIllegal: there is none that fits
  bool isBound = false; ///< it, or what is needed, is at least so much
  /// Bytes of the smallest assignment with it if none fits; 0: there is none.
  int64_t neededBytes = 0;

  bool fits() const { return cost < kIllegal; }
  /// Cheaper first, then known before bounded, then by bytes.
  bool isBefore(const Marginal &other) const;
};
/// By variable and strategy.
using Marginals = std::vector<std::vector<Marginal>>;
/// Those of a solver without a budget.
Marginals exactMarginals(const std::vector<std::vector<Time>> &costs);

/// Which of these strategies, a flag for each of the variable, is cheapest?
struct Question {
  int variable = 0;
  std::vector<bool> among;
};

struct BudgetRegretOptions {
  SolverOptions bounds; ///< tables of the pass over all strategies
  ParetoOptions search; ///< of one search
  /// Of all searches together.
  int64_t workLimit = int64_t(1) << 20;
  /// What costs so much more than the chosen assignment is not searched for.
  Time beyond = kIllegal;
};

class BudgetRegret {
public:
  /// `chosen` is what ParetoSolver found for the same problem and budget.
  BudgetRegret(Problem problem, MemoryModel memory, int64_t budget,
               ParetoResult chosen, BudgetRegretOptions options = {});
  ~BudgetRegret();

  /// Bounds every marginal. False, and error(), if the tables are too large.
  bool bound();
  /// Answers as many as the work allows. After bound().
  void answer(const std::vector<Question> &questions);

  const Marginals &marginals() const { return known; }
  Time optimum() const { return chosen.cost; }
  int64_t budget() const { return limit; }
  int64_t work() const { return spent; }
  int searches() const { return count; }
  /// Questions whose answer is a lower bound, for want of work.
  int unanswered() const { return open; }
  const SolverError &error() const { return failure; }

private:
  struct Bounds;
  void offer(const std::vector<int> &assignment, Time cost);
  void settle(int variable, int strategy);
  void search(int variable, int strategy);
  bool answer(const Question &question);
  int cheapest(const Question &question) const;
  bool isOpen(const Question &question) const;
  void widen(const std::vector<Question> &questions);
  bool take(const std::vector<const Question *> &questions, Time window);

  Problem problem;
  MemoryModel memory;
  int64_t limit;
  ParetoResult chosen;
  BudgetRegretOptions options;
  Marginals known;
  std::vector<std::vector<Time>> upper; ///< of what was found
  std::vector<std::vector<bool>> searched;
  std::unique_ptr<Bounds> bounds;
  int64_t spent = 0;
  int count = 0, open = 0;
  SolverError failure;
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_BUDGETREGRET_H
