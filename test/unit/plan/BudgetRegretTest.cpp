// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SolverFixture.h"

#include "compiler/plan/BudgetRegret.h"

#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace mtp::plan;

namespace {

/// Marginals from every assignment.
struct BruteForce {
  std::vector<std::vector<Time>> cost;     ///< of what fits
  std::vector<std::vector<int64_t>> bytes; ///< of the smallest; 0: none
  int64_t least = INT64_MAX, most = 0;     ///< bytes of any assignment

  BruteForce(const Problem &problem, const MemoryModel &memory,
             int64_t budget) {
    for (const Variable &variable : problem.variables) {
      cost.emplace_back(variable.unary.size(), kIllegal);
      bytes.emplace_back(variable.unary.size(), INT64_MAX);
    }
    forEachAssignment(problem, [&](const std::vector<int> &assignment) {
      Time total = costOf(problem, assignment);
      if (total >= kIllegal)
        return;
      int64_t needed = bytesOf(problem, memory, assignment).total();
      least = std::min(least, needed);
      most = std::max(most, needed);
      for (size_t v = 0; v < assignment.size(); ++v) {
        int x = assignment[v];
        bytes[v][x] = std::min(bytes[v][x], needed);
        if (needed <= budget)
          cost[v][x] = std::min(cost[v][x], total);
      }
    });
  }
};

/// Each of its marginals is the true one or, where it says so, no more.
void expectSound(const BudgetRegret &regret, const BruteForce &truth, int run) {
  for (size_t v = 0; v < truth.cost.size(); ++v)
    for (size_t x = 0; x < truth.cost[v].size(); ++x) {
      const Marginal &mine = regret.marginals()[v][x];
      SCOPED_TRACE(testing::Message() << run << ": " << v << ", " << x);
      if (truth.bytes[v][x] == INT64_MAX) { // nothing legal has it
        EXPECT_FALSE(mine.fits());
        EXPECT_EQ(mine.neededBytes, 0);
      } else if (!mine.fits()) {
        EXPECT_EQ(truth.cost[v][x], kIllegal);
        EXPECT_GT(mine.neededBytes, regret.budget());
        EXPECT_LE(mine.neededBytes, truth.bytes[v][x]);
        if (!mine.isBound)
          EXPECT_EQ(mine.neededBytes, truth.bytes[v][x]);
      } else {
        EXPECT_GE(mine.cost, regret.optimum());
        EXPECT_LE(mine.cost, truth.cost[v][x]);
        if (!mine.isBound)
          EXPECT_EQ(mine.cost, truth.cost[v][x]);
      }
    }
}

/// The answer that the marginals give.
Marginal answerTo(const Question &question, const Marginals &marginals) {
  Marginal best;
  for (size_t x = 0; x < question.among.size(); ++x)
    if (question.among[x] && marginals[question.variable][x].isBefore(best))
      best = marginals[question.variable][x];
  return best;
}

/// Every strategy of every variable against every assignment, under budgets
/// that bind and others that do not. scripts/fuzz.sh sets how many problems,
/// and which.
TEST(BudgetRegret, EqualsBruteForceOnRandomGraphs) {
  const char *asked = std::getenv("MTP_RANDOM_PROBLEMS");
  int problems = asked ? std::atoi(asked) : 300;
  const char *seed = std::getenv("MTP_RANDOM_SEED");
  std::mt19937_64 random(seed ? 2000 + std::atoi(seed) : 5);
  int exact = 0, tooLarge = 0, bounds = 0, searches = 0, open = 0;
  for (int run = 0; run < problems; ++run) {
    Problem problem = randomProblem(random, run % 3 * 10);
    MemoryModel memory = randomMemory(random, problem);
    BruteForce any(problem, memory, INT64_MAX);
    if (any.most == 0 && any.least == INT64_MAX)
      continue;
    for (int64_t budget : {any.least, (3 * any.least + any.most) / 4,
                           (any.least + any.most) / 2, any.most}) {
      BruteForce truth(problem, memory, budget);
      ParetoOptions options;
      options.tables.prune = run % 2;
      ParetoResult chosen =
          ParetoSolver(problem, memory, budget, options).solve();
      ASSERT_EQ(chosen.status, ParetoResult::Optimal);
      std::vector<Question> questions;
      for (size_t v = 0; v < truth.cost.size(); ++v) {
        Question others{int(v), {}}, some{int(v), {}};
        for (size_t x = 0; x < truth.cost[v].size(); ++x) {
          others.among.push_back(chosen.assignment[v] != int(x));
          some.among.push_back(random() % 2);
        }
        questions.push_back(others);
        questions.push_back(some);
      }
      BudgetRegretOptions limits;
      limits.search = options;
      BudgetRegret regret(problem, memory, budget, chosen, limits);
      ASSERT_TRUE(regret.bound());
      expectSound(regret, truth, run);
      regret.answer(questions);
      expectSound(regret, truth, run);
      EXPECT_EQ(regret.unanswered(), 0);
      for (const Question &question : questions) {
        Time least = kIllegal;
        int64_t bytes = INT64_MAX;
        for (size_t x = 0; x < question.among.size(); ++x)
          if (question.among[x]) {
            least = std::min(least, truth.cost[question.variable][x]);
            bytes = std::min(bytes, truth.bytes[question.variable][x]);
          }
        Marginal answer = answerTo(question, regret.marginals());
        EXPECT_FALSE(answer.isBound) << run;
        EXPECT_EQ(answer.cost, least) << run << ", budget " << budget;
        if (least >= kIllegal)
          EXPECT_EQ(answer.neededBytes, bytes == INT64_MAX ? 0 : bytes) << run;
        ++(least < kIllegal ? exact : tooLarge);
      }
      searches += regret.searches();

      // Without work the bounds are all there is, and they say so.
      limits.workLimit = 0;
      BudgetRegret idle(problem, memory, budget, chosen, limits);
      ASSERT_TRUE(idle.bound());
      idle.answer(questions);
      EXPECT_EQ(idle.searches(), 0);
      expectSound(idle, truth, run);
      int unknown = 0;
      for (const Question &question : questions)
        unknown += answerTo(question, idle.marginals()).isBound;
      EXPECT_EQ(idle.unanswered(), unknown);
      bounds += unknown;

      // A little work: lists that are too short give bounds as well.
      limits.workLimit = 2 * int64_t(problem.variables.size());
      BudgetRegret busy(problem, memory, budget, chosen, limits);
      ASSERT_TRUE(busy.bound());
      busy.answer(questions);
      expectSound(busy, truth, run);
      open += busy.unanswered();
    }
  }
  std::printf("%d answers with a cost, %d that do not fit; %d searches; %d "
              "bounds without work, %d with a little\n",
              exact, tooLarge, searches, bounds, open);
  EXPECT_GT(exact, 4 * problems);
  EXPECT_GT(tooLarge, problems / 4);
  EXPECT_GT(bounds, problems);
  EXPECT_GT(open, problems / 8);
  EXPECT_LT(open, bounds);
}

/// Equal layers: what is said does not depend on the run, and the first of
/// equal ops is searched for before the second.
TEST(BudgetRegret, TellsMostOfEqualLayersWithLittleWork) {
  Problem problem = layers(3, 5, true);
  MemoryModel memory = layerBytes(problem);
  int64_t least = ParetoSolver(problem, memory, 0).least().bytes.total();
  int64_t most = bytesOf(problem, memory, *Solver(problem).solve()).total();
  int64_t budget = least + (most - least) * 3 / 4;
  ParetoResult chosen = ParetoSolver(problem, memory, budget).solve();
  ASSERT_EQ(chosen.status, ParetoResult::Optimal);
  ASSERT_GT(chosen.cost, chosen.unconstrained);
  std::vector<Question> questions;
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    questions.push_back({int(v), std::vector<bool>(5, true)});
    questions.back().among[chosen.assignment[v]] = false;
  }
  BudgetRegretOptions limits;
  BudgetRegret all(problem, memory, budget, chosen, limits);
  ASSERT_TRUE(all.bound());
  all.answer(questions);
  EXPECT_EQ(all.unanswered(), 0);
  std::printf("%zu questions: %d searches, %lld labels\n", questions.size(),
              all.searches(), (long long)all.work());
  for (const Question &question : questions) {
    Problem pinned = problem;
    std::vector<Time> &unary = pinned.variables[question.variable].unary;
    unary[chosen.assignment[question.variable]] = kIllegal;
    ParetoResult other = ParetoSolver(pinned, memory, budget).solve();
    Marginal answer = answerTo(question, all.marginals());
    if (other.status == ParetoResult::Infeasible)
      EXPECT_EQ(answer.neededBytes, other.bytes.total());
    else
      EXPECT_EQ(answer.cost, other.cost) << question.variable;
  }
  limits.workLimit = all.work() / 4;
  int unanswered = -1;
  for (int repeat = 0; repeat < 2; ++repeat) {
    BudgetRegret some(problem, memory, budget, chosen, limits);
    ASSERT_TRUE(some.bound());
    some.answer(questions);
    EXPECT_GT(some.unanswered(), 0);
    EXPECT_LT(some.unanswered(), int(questions.size()));
    if (unanswered >= 0)
      EXPECT_EQ(some.unanswered(), unanswered);
    unanswered = some.unanswered();
    // A search may go over the limit by itself alone.
    EXPECT_LT(some.work(), all.work());
  }
}

} // namespace
