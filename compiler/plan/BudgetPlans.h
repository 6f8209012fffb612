// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BudgetPlans.h - plans of one module under one budget after another -===//
#ifndef MTP_COMPILER_PLAN_BUDGETPLANS_H
#define MTP_COMPILER_PLAN_BUDGETPLANS_H

#include "compiler/plan/Memory.h"

namespace mtp::plan {

/// As choosePlan, for many budgets: conversions, spaces, tables and bytes are
/// made once, and what is found and proven for one budget is known for the
/// next.
class BudgetPlans {
public:
  /// `module` outlives this and stays as it is.
  BudgetPlans(mlir::ModuleOp module,
              llvm::ArrayRef<std::pair<std::string, int64_t>> axes,
              const PlanOptions &options);
  ~BudgetPlans();

  /// The plan of other options without a budget, with the same pins.
  mlir::FailureOr<Plan> choose(const PlanOptions &options);
  /// The cheapest plan within the budget, or that of the fewest bytes. Budgets
  /// of one `kind` differ in PlanBudget::bytes alone. Errors are diagnostics.
  /// The plan is a draft: collectives and weights are not listed.
  mlir::FailureOr<Plan> within(const PlanBudget &budget, int kind);
  /// Such a plan with the reasons for it.
  mlir::FailureOr<Plan> explain(const Plan &plan, const PlanBudget &budget,
                                int kind);
  /// Lists them in such a plan.
  mlir::LogicalResult complete(Plan &plan);
  /// What all searches took, in sums of costs; no time.
  int64_t work() const;

private:
  class Planners;
  std::unique_ptr<Planners> planners;
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_BUDGETPLANS_H
