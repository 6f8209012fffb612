// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LinearProgram.h - the cost model as an ILP, solved by CBC ----------===//
//
//   minimize    sum c(v,x) n(v,x) + sum c(p,x,y) e(p,x,y)
//   subject to  sum_x n(v,x) = 1                       for each variable
//               sum_y e(p,x,y) = n(a,x)                for each pair and x
//               sum_x e(p,x,y) = n(b,y)                for each pair and y
//               sum bytes n + sum bytes e + t <= budget
//               t >= transient n                       if there is a budget
//               n in {0, 1}, e >= 0
//
// The same optimum as Solver's and ParetoSolver's, from a program that shares
// no code with them.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TEST_UNIT_PLAN_LINEARPROGRAM_H
#define MTP_TEST_UNIT_PLAN_LINEARPROGRAM_H

#include "compiler/plan/Pareto.h"

namespace mtp::plan {

/// True if there is a `cbc` to run.
bool haveCbc();
/// CBC's assignment, or nothing if it says that there is none. Throws what it
/// printed if it failed.
std::optional<std::vector<int>>
solveWithCbc(const Problem &problem, const MemoryModel &memory = {},
             std::optional<int64_t> budget = std::nullopt);

} // namespace mtp::plan

#endif // MTP_TEST_UNIT_PLAN_LINEARPROGRAM_H
