// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Explain.h - why a plan is as it is ---------------------------------===//
//
// Answers come from the solver's min-marginals: the exact least cost of the
// whole plan with one choice forced (global regret), not from local
// comparisons. Under a budget the plan with the forced choice has to fit, too
// (BudgetRegret.h).
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_EXPLAIN_H
#define MTP_COMPILER_PLAN_EXPLAIN_H

#include "compiler/plan/Model.h"

namespace mtp::plan {

/// Fills the runner-up and regret of each collective, and a note for every
/// value that stayed whole on an axis. `pruned`: the solver left out dominated
/// strategies, so that some choices have no cost.
void explain(mlir::func::FuncOp function, const Model &model,
             const Solver &solver, bool pruned, Conversions &conversions,
             Plan &plan);

/// The same of a plan that was chosen under a budget: `chosen` is its solution.
/// `options` is for tables that have one cost an entry, `search` for lists.
void explainWithin(mlir::func::FuncOp function, const Model &model,
                   const MemoryModel &memory, int64_t budget,
                   const ParetoResult &chosen, const SolverOptions &options,
                   const ParetoOptions &search, Conversions &conversions,
                   Plan &plan);

/// "12.3 us".
std::string microsText(Time time);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_EXPLAIN_H
