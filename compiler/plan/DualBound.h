// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- DualBound.h - bounds where elimination would be too large ----------===//
//
// Costs may be moved between a variable and its tables without changing any
// total. What is moved is chosen so that the sum of the least entries, which no
// assignment can undercut, grows: variables are visited forth and back; each
// takes what its tables can spare and hands it on, in equal parts, to the
// tables that it shares with later ones (Kolmogorov 2015, sequential
// reweighted message passing).
//
//   m_e(x)   = least of table e beside x, with what its other end moved there
//   T(x)     = unary(x) + sum_e m_e(x)
//   moved(x) = -m_e(x) + T(x) / k    to the k later tables, else -m_e(x)
//
// A visit reads every entry of the variable's tables once or twice, so it works
// for any width. On trees the bound is the optimum after one round.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_DUALBOUND_H
#define MTP_COMPILER_PLAN_DUALBOUND_H

#include "compiler/plan/Solver.h"

namespace mtp::plan {

struct DualBound {
  Time bound = 0; ///< no assignment costs less; kIllegal: none is legal
  /// Nor one with this strategy, by variable; kIllegal: there is none.
  std::vector<std::vector<Time>> marginals;
  /// A cheap assignment, variable by variable; it may be illegal. Empty if none
  /// is legal.
  std::vector<int> assignment;
};

/// `sequence`: all variables, in the order of the visits. What is legal costs
/// less than 2^58.
DualBound dualBound(const Problem &problem, const std::vector<int> &sequence);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_DUALBOUND_H
