// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SolverFixture.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>

using namespace mtp::plan;

namespace {

/// Cost and bytes are those of the assignment.
void expectCounted(const ParetoResult &result, const Problem &problem,
                   const MemoryModel &memory) {
  EXPECT_EQ(result.cost, costOf(problem, result.assignment));
  EXPECT_EQ(result.bytes.total(),
            bytesOf(problem, memory, result.assignment).total());
}

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
      expectCounted(result, problem, memory);
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

/// All budgets of one problem, in any order, by one solver; where tables are
/// too large for lists, too.
TEST(Pareto, AnswersForOneBudgetAfterTheOther) {
  std::mt19937_64 random(10);
  int bound = 0;
  for (int run = 0; run < 150; ++run) {
    Problem problem = randomProblem(random, run % 3 * 10);
    MemoryModel memory = randomMemory(random, problem);
    std::vector<std::pair<int64_t, Time>> all; // bytes and costs
    int64_t least = INT64_MAX, most = 0;
    forEachAssignment(problem, [&](const std::vector<int> &assignment) {
      Time cost = costOf(problem, assignment);
      if (cost >= kIllegal)
        return;
      all.push_back({bytesOf(problem, memory, assignment).total(), cost});
      least = std::min(least, all.back().first);
      most = std::max(most, all.back().first);
    });
    if (all.empty())
      continue;
    ParetoOptions options;
    options.tables.prune = run % 2;
    // Nothing is narrow enough, or only what is left of a few strategies.
    if (run % 4)
      options.listTable = std::array{1, 6, 8}[run % 4 - 1];
    ParetoSolver solver(problem, memory, 0, options);
    for (int query = 0; query < 12; ++query) {
      int64_t budget =
          least - 1 + int64_t(random() % uint64_t(most - least + 2));
      Time best = kIllegal;
      for (auto [bytes, cost] : all)
        if (bytes <= budget)
          best = std::min(best, cost);
      solver.setBudget(budget);
      ParetoResult result = solver.solve();
      ASSERT_EQ(result.assignment.size(), problem.variables.size()) << run;
      expectCounted(result, problem, memory);
      if (best >= kIllegal) {
        EXPECT_EQ(result.status, ParetoResult::Infeasible) << run;
        EXPECT_EQ(result.bytes.total(), least) << run;
        continue;
      }
      EXPECT_LE(result.bytes.total(), budget) << run;
      EXPECT_LE(result.bound, best) << run << ", budget " << budget;
      if (result.status == ParetoResult::Gap && options.listTable < 1024) {
        EXPECT_GE(result.cost, best) << run << ", budget " << budget;
        EXPECT_LT(result.bound, result.cost) << run << ", budget " << budget;
        continue;
      }
      ASSERT_EQ(result.status, ParetoResult::Optimal) << run;
      EXPECT_EQ(result.cost, best) << run << ", budget " << budget;
      EXPECT_EQ(result.bound, best) << run << ", budget " << budget;
      bound += best > result.unconstrained;
    }
  }
  EXPECT_GT(bound, 300);
}

/// What is too large for lists is searched among the strategies that a limit
/// leaves: the optimum of a deep model, with lists of a tenth of its tables.
TEST(Pareto, FindsTheOptimumOfTablesThatAreTooLargeForLists) {
  Problem problem = layers(4, 10, true);
  MemoryModel memory = layerBytes(problem);
  int64_t least = ParetoSolver(problem, memory, 0).least().bytes.total();
  ParetoOptions options;
  options.listTable = 1000; // of 10^4
  ParetoSolver narrow(problem, memory, 0, options);
  int optimal = 0;
  for (int percent : {105, 120, 150, 200, 300}) {
    int64_t budget = least * percent / 100;
    ParetoResult exact = ParetoSolver(problem, memory, budget).solve();
    ASSERT_EQ(exact.status, ParetoResult::Optimal);
    narrow.setBudget(budget);
    ParetoResult result = narrow.solve();
    EXPECT_LE(result.bytes.total(), budget);
    EXPECT_LE(result.bound, exact.cost);
    EXPECT_GE(result.cost, exact.cost);
    if (result.status == ParetoResult::Optimal) {
      EXPECT_EQ(result.cost, exact.cost);
      ++optimal;
    }
    std::printf("%d %%: cost %lld, bound %lld, exact %lld\n", percent,
                (long long)result.cost, (long long)result.bound,
                (long long)exact.cost);
  }
  EXPECT_GE(optimal, 3);
}

TEST(Pareto, SaysHowFarItMayBeFromTheOptimum) {
  Problem problem = layers(4, 10, true);
  MemoryModel memory = layerBytes(problem);
  int64_t budget = ParetoSolver(problem, memory, 0).least().bytes.total() * 2;
  ParetoResult exact = ParetoSolver(problem, memory, budget).solve();
  ASSERT_EQ(exact.status, ParetoResult::Optimal);
  ASSERT_GT(exact.labels, 200);
  for (int64_t limit : {0, 1, 20, 200}) {
    ParetoOptions options;
    options.labelLimit = limit;
    ParetoResult result =
        ParetoSolver(problem, memory, budget, options).solve();
    EXPECT_EQ(result.status, ParetoResult::Gap) << limit;
    EXPECT_LE(result.bytes.total(), budget);
    EXPECT_EQ(result.cost, costOf(problem, result.assignment));
    EXPECT_LE(result.bound, exact.cost);
    EXPECT_GE(result.cost, exact.cost);
    EXPECT_LT(result.bound, result.cost);
  }
}

/// What was asked before is answered with the price that proves it.
TEST(Pareto, AnswersAgainWithTheSamePrice) {
  std::mt19937_64 random(23);
  int priced = 0;
  for (int run = 0; run < 100; ++run) {
    Problem problem = randomProblem(random, run % 3 * 10);
    MemoryModel memory = randomMemory(random, problem);
    ParetoSolver solver(problem, memory, 0);
    ParetoResult least = solver.least();
    if (least.assignment.empty())
      continue;
    solver.setBudget(least.bytes.total() + run % 7);
    ParetoResult first = solver.solve();
    solver.setBudget(INT64_MAX);
    (void)solver.solve();
    solver.setBudget(least.bytes.total() + run % 7);
    ParetoResult again = solver.solve();
    EXPECT_EQ(again.status, first.status) << run;
    EXPECT_EQ(again.cost, first.cost) << run;
    EXPECT_EQ(again.bound, first.bound) << run;
    EXPECT_EQ(again.multiplier, first.multiplier) << run;
    EXPECT_EQ(again.passes, 0) << run;
    priced += again.multiplier > 0;
  }
  EXPECT_GT(priced, 20);
}

/// A chain of equal layers, each fast or small, with a cost where they change.
/// The best are k small ones at one end: a closed form.
TEST(Pareto, IsTheClosedFormOfADeepChain) {
  constexpr int count = 96;
  constexpr Time fast = 1000, small = 1270, change = 5000;
  constexpr int64_t bytes = 300;
  Problem problem;
  MemoryModel memory;
  for (int v = 0; v < count; ++v) {
    problem.variables.push_back({{fast, small}, 1, "layer"});
    memory.variables.push_back({{bytes, 0}, {}});
    if (v > 0)
      problem.pairs.push_back({v - 1, v, {0, change, change, 0}});
  }
  ParetoSolver solver(problem, memory, 0);
  for (int k = 1; k < count; k += 5) {
    solver.setBudget(bytes * (count - k) + bytes / 2);
    ParetoResult result = solver.solve();
    EXPECT_EQ(result.status, ParetoResult::Optimal) << k;
    EXPECT_EQ(result.cost,
              std::min(fast * (count - k) + small * k + change, small * count))
        << k;
    EXPECT_EQ(result.bound, result.cost) << k;
  }
}

TEST(Pareto, IsIndependentOfOrderAndNames) {
  std::mt19937_64 random(17);
  for (int run = 0; run < 100; ++run) {
    Problem problem = randomProblem(random, 10);
    MemoryModel memory = randomMemory(random, problem);
    memory.pairs.resize(problem.pairs.size());
    ParetoResult least = ParetoSolver(problem, memory, 0).least();
    if (least.assignment.empty())
      continue;
    int64_t budget = least.bytes.total() + run % 20;
    ParetoResult result = ParetoSolver(problem, memory, budget).solve();
    std::vector<int> place(problem.variables.size());
    std::iota(place.begin(), place.end(), 0);
    std::shuffle(place.begin(), place.end(), random);
    Problem shuffled = problem;
    MemoryModel moved = memory;
    for (size_t v = 0; v < place.size(); ++v) {
      shuffled.variables[place[v]] = problem.variables[v];
      shuffled.variables[place[v]].name = "other";
      moved.variables[place[v]] = memory.variables[v];
    }
    for (Pair &pair : shuffled.pairs) {
      pair.a = place[pair.a];
      pair.b = place[pair.b];
    }
    ParetoResult other = ParetoSolver(shuffled, moved, budget).solve();
    ASSERT_EQ(other.assignment.size(), place.size());
    for (size_t v = 0; v < place.size(); ++v)
      EXPECT_EQ(result.assignment[v], other.assignment[place[v]]) << run;
  }
}

TEST(Pareto, RefusesMalformedBytes) {
  Problem problem;
  problem.variables = {{{1, 2}, 0, "a"}, {{1}, 0, "b"}};
  for (MemoryModel memory :
       {MemoryModel{{{{1}, {}}, {}}, {}}, MemoryModel{{{{-1, 2}, {}}, {}}, {}},
        MemoryModel{{{{1, 2}, {}}}, {}},
        MemoryModel{{{{int64_t(1) << 60, 0}, {}}, {{1}, {}}}, {}}}) {
    ParetoSolver solver(problem, memory, 10);
    EXPECT_EQ(solver.solve().status, ParetoResult::Failed);
    EXPECT_EQ(solver.error().kind, SolverError::Malformed);
  }
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
      if (count > 12 && percent < 50)
        continue; // seconds
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
