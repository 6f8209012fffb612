// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SolverFixture.h - small random problems and brute force ------------===//
#ifndef MTP_TEST_UNIT_PLAN_SOLVERFIXTURE_H
#define MTP_TEST_UNIT_PLAN_SOLVERFIXTURE_H

#include "compiler/plan/Pareto.h"

#include <algorithm>
#include <functional>
#include <random>

namespace mtp::plan {

/// A random DAG of up to 7 variables with up to 4 strategies each.
Problem randomProblem(std::mt19937_64 &random, int illegalPercent);
/// Bytes for it; some variables and pairs have none.
MemoryModel randomMemory(std::mt19937_64 &random, const Problem &problem);

/// Visits every assignment.
void forEachAssignment(
    const Problem &problem,
    const std::function<void(const std::vector<int> &)> &visit);

/// A residual stream with two branches a layer, and one mask that all layers
/// read. Layers have equal tables if `identical`.
Problem layers(int count, int strategies, bool identical = false);
/// Bytes that fall as costs rise: what is split takes less and is dearer.
MemoryModel layerBytes(const Problem &problem);

} // namespace mtp::plan

#endif // MTP_TEST_UNIT_PLAN_SOLVERFIXTURE_H
