// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Bounded.h - the cheapest plan of a space that is too large ---------===//
//
// Converted copies make a model large: one state for every pair of a produced
// and a copied layout, 43 000 of a residual stream on three axes. As stars
// (DualBound.h) they are no states.
//
//   1. bound the stars from below, with conversions that cost a little less
//      and are quickly known (Conversions::leastCosts): bound L, min-marginals,
//      a plan that costs C; strategies with a marginal above C are dropped
//   2. the same with what conversions cost indeed
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

/// `model` is restricted, not built; it loses strategies. Nothing if its stars
/// are too large or there is no plan.
std::optional<BoundedSolution> solveBounded(Model &model,
                                            const SolverOptions &limits);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_BOUNDED_H
