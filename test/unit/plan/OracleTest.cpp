// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LinearProgram.h"
#include "PlanFixture.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace mtp;
using namespace mtp::plan;

namespace {

/// Depth of the deepest model; MTP_ORACLE_LAYERS sets it (scripts/full.sh).
int deepest() {
  const char *asked = std::getenv("MTP_ORACLE_LAYERS");
  return asked ? std::atoi(asked) : 4;
}

/// CBC's numbers are doubles with tolerances, ours integers: CBC's assignment
/// is priced here.
TEST_F(PlanTest, CbcFindsNoCheaperPlan) {
  if (!haveCbc())
    GTEST_SKIP() << "there is no cbc; scripts/setup.sh installs it";
  struct Case {
    const char *mesh;
    Freedom freedom;
  };
  for (Case one :
       {Case{"tp=2", Freedom::All}, {"dp=2,tp=2", Freedom::Sequence}})
    for (int layers : {1, 2, 4, 8, 12}) {
      if (layers > deepest())
        continue;
      parse(gpt({.layers = layers}));
      Problem problem = problemOf(one.mesh, Objective::Time, one.freedom);
      Solver solver(problem);
      ASSERT_TRUE(solver.solve());
      auto start = std::chrono::steady_clock::now();
      auto theirs = solveWithCbc(problem);
      ASSERT_TRUE(theirs);
      EXPECT_EQ(costOf(problem, *theirs), solver.optimum()) << layers;
      std::printf("%s, %d layers, %zu variables: %lld ps, cbc took %.1f s\n",
                  one.mesh, layers, problem.variables.size(),
                  (long long)solver.optimum(),
                  std::chrono::duration<double>(
                      std::chrono::steady_clock::now() - start)
                      .count());
    }
}

/// Bytes that depend on the strategy's position and the number of strategies
/// alone: equal in all layers.
MemoryModel scatteredBytes(const Problem &problem) {
  MemoryModel memory;
  for (const Variable &variable : problem.variables) {
    uint64_t strategies = variable.unary.size();
    Footprint footprint;
    for (uint64_t x = 0; x < strategies; ++x) {
      uint64_t scattered = (x + 1) * (strategies + 7) * 2654435761u >> 12;
      footprint.bytes.push_back(int64_t(scattered % 1000) * 64);
      footprint.transient.push_back(int64_t(scattered % 7) * 1024);
    }
    memory.variables.push_back(std::move(footprint));
  }
  return memory;
}

TEST_F(PlanTest, CbcFindsNoCheaperPlanThatFits) {
  if (!haveCbc())
    GTEST_SKIP() << "there is no cbc; scripts/setup.sh installs it";
  for (int layers : {1, 2}) {
    parse(gpt({.layers = layers}));
    Problem problem = problemOf("tp=2", Objective::Time, Freedom::All);
    MemoryModel memory = scatteredBytes(problem);
    int64_t least = ParetoSolver(problem, memory, 0).least().bytes.total();
    int64_t most = bytesOf(problem, memory, *Solver(problem).solve()).total();
    ASSERT_LT(least, most);
    // CBC is slow where the budget leaves much room.
    std::vector<int> percents{10, 20};
    if (deepest() > 4)
      percents.push_back(60);
    for (int percent : percents) {
      int64_t budget = least + (most - least) * percent / 100;
      auto start = std::chrono::steady_clock::now();
      auto seconds = [&] {
        auto now = std::chrono::steady_clock::now();
        double passed = std::chrono::duration<double>(now - start).count();
        start = now;
        return passed;
      };
      ParetoResult ours = ParetoSolver(problem, memory, budget).solve();
      double mine = seconds();
      ASSERT_EQ(ours.status, ParetoResult::Optimal);
      auto theirs = solveWithCbc(problem, memory, budget);
      ASSERT_TRUE(theirs);
      EXPECT_LE(bytesOf(problem, memory, *theirs).total(), budget);
      EXPECT_EQ(costOf(problem, *theirs), ours.cost)
          << layers << " layers, budget " << budget;
      std::printf(
          "%d layers, %lld of %lld to %lld bytes: %lld ps (%lld without "
          "budget), %.3f s, cbc %.1f s\n",
          layers, (long long)budget, (long long)least, (long long)most,
          (long long)ours.cost, (long long)ours.unconstrained, mine, seconds());
    }
    EXPECT_FALSE(solveWithCbc(problem, memory, least - 1));
  }
}

/// What explain says a choice costs is what planning with that choice costs:
/// of every variable, the runner-up and the dearest.
TEST_F(PlanTest, MinMarginalsEqualSolvingAgainWithTheChoiceForced) {
  for (GptOptions options :
       {GptOptions{.layers = 2}, GptOptions{.layers = 2, .keyHeads = 2}})
    for (const char *mesh : {"tp=4", "dp=2,tp=2"}) {
      parse(gpt(options));
      Problem problem = problemOf(mesh, Objective::Parallel, Freedom::Sequence);
      Solver solver(problem);
      auto optimum = solver.solve();
      ASSERT_TRUE(optimum);
      std::vector<std::vector<Time>> marginals = solver.minMarginals();
      int compared = 0;
      for (size_t v = 0; v < marginals.size(); ++v) {
        EXPECT_EQ(marginals[v][(*optimum)[v]], solver.optimum());
        int runnerUp = -1, dearest = -1;
        for (int x = 0; x < int(marginals[v].size()); ++x) {
          Time cost = marginals[v][x];
          if (x == (*optimum)[v] || cost >= kIllegal)
            continue;
          if (runnerUp < 0 || cost < marginals[v][runnerUp])
            runnerUp = x;
          if (dearest < 0 || cost > marginals[v][dearest])
            dearest = x;
        }
        for (int x : std::set<int>{runnerUp, dearest}) {
          if (x < 0)
            continue;
          Problem forced = problem;
          std::vector<Time> &unary = forced.variables[v].unary;
          for (int other = 0; other < int(unary.size()); ++other)
            if (other != x)
              unary[other] = kIllegal;
          SolverOptions pruned;
          pruned.prune = true;
          Solver again(forced, pruned);
          ASSERT_TRUE(again.solve());
          EXPECT_EQ(again.optimum(), marginals[v][x])
              << problem.variables[v].name;
          ++compared;
        }
      }
      EXPECT_GT(compared, 100) << mesh;
    }
}

} // namespace
