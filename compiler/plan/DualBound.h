// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- DualBound.h - bounds where elimination would be too large ----------===//
//
// A star is a value: the op that makes it, those that read it, and one copy in
// another layout, or none, that they may share:
//
//   cost(p, r_1 ... r_n) = min over c of
//                          way(p, c) + sum_i min(way(p, r_i), way(c, r_i))
//
// The copy is no variable: the least over all r_i beside p and c is
// sum_i min(f_i(p), f_i(c)) with f_i(z) = least of way(z, r_i), so a star is
// as cheap to look at as its ways are many.
//
// Costs may be moved between a variable and its stars without changing any
// total. What is moved is chosen so that the sum of the least entries, which no
// assignment can undercut, grows: variables are visited forth and back; each
// takes what its stars can spare and hands it on, in equal parts, to the stars
// that it shares with later ones (Kolmogorov 2015, sequential reweighted
// message passing).
//
//   m_e(x)   = least of star e beside x, with what its other ends moved there
//   T(x)     = unary(x) + sum_e m_e(x)
//   moved(x) = -m_e(x) + T(x) / k    to the k later stars, else -m_e(x)
//
// On trees the bound is the optimum after one round. Strategies and copies
// whose least total is above that of a known assignment are dropped on the way.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_DUALBOUND_H
#define MTP_COMPILER_PLAN_DUALBOUND_H

#include "compiler/plan/Solver.h"

#include <functional>

namespace mtp::plan {

/// A table of costs, row-major. Equal stars share it.
using SharedTable = std::shared_ptr<const std::vector<Time>>;

struct Star {
  struct End {
    int variable = 0;
    std::vector<int> layoutOf; ///< by strategy: row or column of the tables
  };
  End maker;
  std::vector<End> readers;
  int rows = 0, columns = 0; ///< layouts it is made in; layouts it is read in
  SharedTable made;          ///< from rows to columns
  SharedTable copied;        ///< from columns to columns; none: no copies
  /// Where the value is returned: what that costs, from the rows and from the
  /// columns. Empty: it is not.
  std::vector<Time> madeReturn, copiedReturn;
};

/// minimize   sum_v unary_v(x_v) + sum over stars
struct StarProblem {
  std::vector<std::vector<Time>> unary;
  std::vector<Star> stars;
};

/// Pairs as stars with one reader.
StarProblem starsOf(const Problem &problem);

/// Cost of an assignment; the copies are the best.
Time costOf(const StarProblem &problem, const std::vector<int> &assignment);

struct DualBound {
  Time bound = 0; ///< no assignment costs less; kIllegal: none is legal
  /// Nor one with this strategy, by variable; kIllegal: there is none, or none
  /// that is cheaper than `cost`.
  std::vector<std::vector<Time>> marginals;
  /// The same for copies, by star and column; empty: the star has none.
  std::vector<std::vector<Time>> copies;
  /// The cheapest assignment that was met, and its cost; empty and kIllegal if
  /// none was.
  std::vector<int> assignment;
  Time cost = kIllegal;
};

/// What an assignment costs.
using Price = std::function<Time(const std::vector<int> &)>;

/// `sequence`: all variables, in the order of the visits. What is legal costs
/// less than 2^58. Where the problem is itself a bound, `price` says what an
/// assignment costs indeed.
DualBound dualBound(const StarProblem &problem,
                    const std::vector<int> &sequence, const Price &price = {});

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_DUALBOUND_H
