// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SolverFixture.h"

#include <chrono>
#include <cstdio>
#include <gtest/gtest.h>
#include <numeric>

using namespace mtp::plan;

namespace {

TEST(Solver, EqualsBruteForceOnRandomGraphs) {
  std::mt19937_64 random(1);
  int infeasible = 0, left = 0, removed = 0;
  for (int run = 0; run < 500; ++run) {
    Problem problem = randomProblem(random, run % 3 * 15);
    std::vector<std::vector<Time>> forced;
    for (const Variable &variable : problem.variables)
      forced.emplace_back(variable.unary.size(), kIllegal);
    Time best = kIllegal;
    forEachAssignment(problem, [&](const std::vector<int> &assignment) {
      Time cost = costOf(problem, assignment);
      best = std::min(best, cost);
      for (size_t v = 0; v < assignment.size(); ++v)
        forced[v][assignment[v]] = std::min(forced[v][assignment[v]], cost);
    });
    Solver solver(problem);
    auto solution = solver.solve();
    if (best >= kIllegal) {
      ++infeasible;
      EXPECT_FALSE(solution);
      EXPECT_EQ(solver.error().kind, SolverError::Infeasible);
      EXPECT_FALSE(solver.error().variables.empty());
      continue;
    }
    ASSERT_TRUE(solution) << run;
    EXPECT_EQ(solver.optimum(), best) << run;
    EXPECT_EQ(costOf(problem, *solution), best) << run;
    EXPECT_EQ(solver.minMarginals(), forced) << run;

    // Without dominated strategies: the same for all that are left.
    SolverOptions options;
    options.prune = true;
    Solver pruned(problem, options);
    solution = pruned.solve();
    ASSERT_TRUE(solution) << run;
    EXPECT_EQ(costOf(problem, *solution), best) << run;
    auto marginals = pruned.minMarginals();
    for (size_t v = 0; v < forced.size(); ++v)
      for (size_t x = 0; x < forced[v].size(); ++x) {
        left += marginals[v][x] < kIllegal;
        removed += marginals[v][x] >= kIllegal && forced[v][x] < kIllegal;
        if (marginals[v][x] < kIllegal)
          EXPECT_EQ(marginals[v][x], forced[v][x]) << run;
      }
  }
  EXPECT_GT(left, 1000);
  EXPECT_GT(removed, 1000);
  EXPECT_GT(infeasible, 10);
  EXPECT_LT(infeasible, 300);
}

TEST(Solver, IsIndependentOfOrderAndNames) {
  std::mt19937_64 random(7);
  for (int run = 0; run < 100; ++run) {
    Problem problem = randomProblem(random, 10);
    for (Variable &variable : problem.variables)
      for (Time &cost : variable.unary)
        cost = cost < kIllegal ? cost / 25 : cost; // many ties
    SolverOptions options;
    options.prune = run % 2;
    auto solution = Solver(problem, options).solve();
    std::vector<int> place(problem.variables.size());
    std::iota(place.begin(), place.end(), 0);
    std::shuffle(place.begin(), place.end(), random);
    Problem shuffled;
    shuffled.variables.resize(place.size());
    for (size_t v = 0; v < place.size(); ++v) {
      shuffled.variables[place[v]] = problem.variables[v];
      shuffled.variables[place[v]].name = "other" + std::to_string(run);
    }
    shuffled.pairs = problem.pairs;
    for (Pair &pair : shuffled.pairs) {
      pair.a = place[pair.a];
      pair.b = place[pair.b];
    }
    std::shuffle(shuffled.pairs.begin(), shuffled.pairs.end(), random);
    auto other = Solver(shuffled, options).solve();
    ASSERT_EQ(solution.has_value(), other.has_value());
    for (size_t v = 0; solution && v < place.size(); ++v)
      EXPECT_EQ((*solution)[v], (*other)[place[v]]);
  }
}

TEST(Solver, TakesTheFirstStrategyAmongEquals) {
  Problem problem;
  for (int v = 0; v < 5; ++v)
    problem.variables.push_back({{3, 1, 1, 1}, uint64_t(v % 2), "v"});
  EXPECT_EQ(*Solver(problem).solve(), std::vector<int>(5, 1));
}

TEST(Solver, RefusesWhatIsTooWideByName) {
  Problem problem;
  for (int v = 0; v < 8; ++v)
    problem.variables.push_back(
        {std::vector<Time>(10, 1), 0, "op" + std::to_string(v)});
  for (int a = 0; a < 8; ++a)
    for (int b = a + 1; b < 8; ++b)
      problem.pairs.push_back({a, b, std::vector<Time>(100, 1)});
  SolverOptions options;
  options.tableLimit = 1000;
  Solver solver(problem, options);
  EXPECT_FALSE(solver.solve());
  EXPECT_EQ(solver.error().kind, SolverError::TooWide);
  EXPECT_NE(solver.error().message.find("op3"), std::string::npos);
}

TEST(Solver, RefusesMalformedProblems) {
  Problem problem;
  problem.variables = {{{1, 2}, 0, "a"}, {{1}, 0, "b"}};
  problem.pairs = {{0, 1, {1}}};
  Solver solver(problem);
  EXPECT_FALSE(solver.solve());
  EXPECT_EQ(solver.error().kind, SolverError::Malformed);
}

TEST(Solver, OfNothingIsNothing) {
  Solver solver(Problem{});
  EXPECT_TRUE(solver.solve());
  EXPECT_EQ(solver.optimum(), 0);
}

TEST(Solver, PrintsItsTimeOnDeepModels) {
  for (int strategies : {10, 25})
    for (int count : {12, 96}) {
      Problem problem = layers(count, strategies);
      auto start = std::chrono::steady_clock::now();
      Solver solver(problem);
      ASSERT_TRUE(solver.solve());
      double solveMs = std::chrono::duration<double, std::milli>(
                           std::chrono::steady_clock::now() - start)
                           .count();
      start = std::chrono::steady_clock::now();
      auto marginals = solver.minMarginals();
      double marginalMs = std::chrono::duration<double, std::milli>(
                              std::chrono::steady_clock::now() - start)
                              .count();
      for (const auto &marginal : marginals)
        EXPECT_EQ(*std::min_element(marginal.begin(), marginal.end()),
                  solver.optimum());
      std::printf("%d layers, %zu variables, %d strategies, width %d: %.1f ms, "
                  "min-marginals %.1f ms\n",
                  count, problem.variables.size(), strategies, solver.width(),
                  solveMs, marginalMs);
    }
}

} // namespace
