// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/DualBound.h"
#include "SolverFixture.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace mtp::plan;

namespace {

std::vector<int> inOrder(const Problem &problem) {
  std::vector<int> sequence(problem.variables.size());
  std::iota(sequence.begin(), sequence.end(), 0);
  return sequence;
}

TEST(DualBound, IsBelowEveryAssignment) {
  std::mt19937_64 random(3);
  double tightness = 0;
  int feasible = 0, infeasible = 0;
  for (int run = 0; run < 500; ++run) {
    Problem problem = randomProblem(random, run % 3 * 15);
    DualBound dual = dualBound(problem, inOrder(problem));
    Time best = kIllegal;
    forEachAssignment(problem, [&](const std::vector<int> &assignment) {
      Time cost = costOf(problem, assignment);
      best = std::min(best, cost);
      for (size_t v = 0; cost < kIllegal && v < assignment.size(); ++v)
        EXPECT_LE(dual.marginals[v][assignment[v]], cost) << run;
    });
    if (best >= kIllegal) {
      if (dual.bound == kIllegal)
        ++infeasible;
      continue;
    }
    EXPECT_LE(dual.bound, best) << run;
    EXPECT_GE(costOf(problem, dual.assignment), best) << run;
    tightness += best > 0 ? double(dual.bound) / double(best) : 1;
    ++feasible;
  }
  EXPECT_GT(feasible, 300);
  EXPECT_GT(infeasible, 0);
  EXPECT_GT(tightness / feasible, 0.8);
}

TEST(DualBound, IsTheOptimumOfAChain) {
  std::mt19937_64 random(4);
  for (int run = 0; run < 100; ++run) {
    Problem problem = randomProblem(random, 0);
    std::erase_if(problem.pairs,
                  [](const Pair &pair) { return pair.b != pair.a + 1; });
    DualBound dual = dualBound(problem, inOrder(problem));
    Solver solver(problem);
    ASSERT_TRUE(solver.solve());
    // Parts of a cost are whole numbers.
    EXPECT_NEAR(double(dual.bound), double(solver.optimum()), 16) << run;
    EXPECT_LE(dual.bound, solver.optimum()) << run;
  }
}

} // namespace
