// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SolverFixture.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace mtp::plan;

namespace {

/// Against every assignment, under budgets from below the least bytes to more
/// than all. scripts/fuzz.sh sets how many, and which.
TEST(Pareto, EqualsBruteForceOnRandomGraphs) {
  const char *asked = std::getenv("MTP_RANDOM_PROBLEMS");
  int problems = asked ? std::atoi(asked) : 500;
  const char *seed = std::getenv("MTP_RANDOM_SEED");
  std::mt19937_64 random(seed ? 1000 + std::atoi(seed) : 3);
  int infeasible = 0, bound = 0, free = 0;
  for (int run = 0; run < problems; ++run) {
    Problem problem = randomProblem(random, run % 3 * 10);
    MemoryModel memory = randomMemory(random, problem);
    struct Known {
      Time cost;
      int64_t bytes;
    };
    std::vector<Known> all;
    int64_t least = INT64_MAX, most = 0;
    forEachAssignment(problem, [&](const std::vector<int> &assignment) {
      Time cost = costOf(problem, assignment);
      if (cost >= kIllegal)
        return;
      all.push_back({cost, bytesOf(problem, memory, assignment).total()});
      least = std::min(least, all.back().bytes);
      most = std::max(most, all.back().bytes);
    });
    ParetoOptions options;
    options.tables.prune = run % 2;
    if (all.empty()) {
      ParetoSolver solver(problem, memory, 100, options);
      EXPECT_EQ(solver.solve().status, ParetoResult::Failed);
      EXPECT_EQ(solver.error().kind, SolverError::Infeasible);
      continue;
    }
    for (int64_t budget :
         {least - 1, least, (3 * least + most) / 4, (least + most) / 2, most}) {
      Time best = kIllegal, cheapest = kIllegal;
      for (const Known &known : all) {
        cheapest = std::min(cheapest, known.cost);
        if (known.bytes <= budget)
          best = std::min(best, known.cost);
      }
      ParetoSolver solver(problem, memory, budget, options);
      ParetoResult result = solver.solve();
      ASSERT_EQ(result.assignment.size(), problem.variables.size()) << run;
      EXPECT_EQ(result.cost, costOf(problem, result.assignment));
      EXPECT_EQ(result.bytes.total(),
                bytesOf(problem, memory, result.assignment).total());
      if (best >= kIllegal) {
        ++infeasible;
        EXPECT_EQ(result.status, ParetoResult::Infeasible) << run;
        EXPECT_EQ(result.bytes.total(), least) << run;
        continue;
      }
      ASSERT_EQ(result.status, ParetoResult::Optimal) << run;
      EXPECT_EQ(result.cost, best) << run << ", budget " << budget;
      EXPECT_EQ(result.bound, best);
      EXPECT_EQ(result.unconstrained, cheapest);
      EXPECT_LE(result.bytes.total(), budget);
      EXPECT_EQ(solver.least().bytes.total(), least);
      ++(best > cheapest ? bound : free);
    }
  }
  std::printf("%d problems: %d plans cost more for the budget, %d do not, %d "
              "do not fit\n",
              problems, bound, free, infeasible);
  EXPECT_GT(bound, problems / 4);
  EXPECT_GT(free, problems / 4);
  EXPECT_GT(infeasible, problems / 4);
}

TEST(Pareto, PrintsItsTimeOnDeepModels) {
  for (int count : {4, 12, 96}) {
    Problem problem = layers(count, 10, true);
    MemoryModel memory = layerBytes(problem);
    auto start = std::chrono::steady_clock::now();
    auto ms = [&] {
      return std::chrono::duration<double, std::milli>(
                 std::chrono::steady_clock::now() - start)
          .count();
    };
    int64_t most = bytesOf(problem, memory, *Solver(problem).solve()).total();
    int64_t least = ParetoSolver(problem, memory, 0).least().bytes.total();
    for (int percent : {75, 25}) {
      int64_t budget = least + (most - least) * percent / 100;
      start = std::chrono::steady_clock::now();
      ParetoResult result = ParetoSolver(problem, memory, budget).solve();
      EXPECT_EQ(result.status, ParetoResult::Optimal);
      EXPECT_LE(result.bytes.total(), budget);
      std::printf("%d layers, budget %lld of %lld to %lld: %.1f ms, %d passes, "
                  "%lld labels, costs %.2f %% more\n",
                  count, (long long)budget, (long long)least, (long long)most,
                  ms(), result.passes, (long long)result.labels,
                  100.0 * double(result.cost - result.unconstrained) /
                      double(result.unconstrained));
    }
  }
}

} // namespace
