// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Bounded.h - the cheapest plan of a space that is too large ---------===//
//
// Converted copies make a model large: one state for every pair of a produced
// and a copied layout, 43 000 of a residual stream on three axes. Without them
// it is small and a lower bound (Model::relaxation), whose min-marginals say
// for every strategy what a plan with it costs at least.
//
//   1. bound the relaxation from below (DualBound.h): bound L, min-marginals;
//      what it suggests, as a plan: cost C
//   2. solve the relaxation of the strategies with a marginal of at most C, if
//      they are few enough: better marginals
//   3. keep the strategies with a marginal of at most a limit, a little above L
//   4. solve the exact model of these: cost C
//   5. C <= limit: optimal, since all that was left out costs more
//      otherwise, again with a larger limit, at most C
//
// Where even that is too large, the best plan found comes with the bound that
// is proven.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_BOUNDED_H
#define MTP_COMPILER_PLAN_BOUNDED_H

#include "compiler/plan/Model.h"

namespace mtp::plan {

struct BoundedSolution {
  /// Of the strategies that were kept, and its assignment. Nothing if that is
  /// too large.
  std::optional<Model> model;
  std::vector<int> assignment;
  Time cost = kIllegal; ///< with the penalties of the objective
  Time bound = 0;       ///< no plan of the space costs less
  int width = 0;
};

/// `model` is restricted, not built. Nothing if the relaxation is too large or
/// there is no plan.
std::optional<BoundedSolution> solveBounded(Model &model,
                                            const SolverOptions &limits);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_BOUNDED_H
