// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanFixture.h"
#include "Shuffle.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::plan;

namespace {

struct StabilityTest : PlanTest {
  void disturb(std::mt19937_64 &random) {
    shuffle(*module, random);
    rename(*module, random);
  }
  std::string difference(const ChoicesByOp &expected, const Plan &plan) {
    return differingChoice(expected, choicesByOp(*module, plan));
  }
};

TEST_F(StabilityTest, OrderAndNamesDoNotMatter) {
  for (GptOptions options :
       {GptOptions{.layers = 3}, GptOptions{.layers = 2, .keyHeads = 2}})
    for (const char *mesh : {"tp=4", "dp=2,tp=2"})
      for (Objective objective : {Objective::Parallel, Objective::Time}) {
        PlanOptions how;
        how.objective = objective;
        std::mt19937_64 random(31);
        parse(gpt(options));
        Plan first = choose(mesh, how);
        auto expected = choicesByOp(*module, first);
        int runs = objective == Objective::Parallel ? 10 : 2;
        for (int run = 0; run < runs; ++run) {
          disturb(random);
          Plan plan = choose(mesh, how);
          EXPECT_EQ(plan.cost, first.cost);
          EXPECT_EQ(difference(expected, plan), "");
        }
      }
}

/// The strategies that the bounds leave depend on neither.
TEST_F(StabilityTest, OrderAndNamesDoNotMatterOnThreeAxes) {
  PlanOptions how;
  how.objective = Objective::Time;
  std::mt19937_64 random(32);
  parse(gpt({.layers = 1}));
  Plan first = choose("a=2,b=2,c=2", how);
  EXPECT_EQ(first.method, "elimination within bounds");
  auto expected = choicesByOp(*module, first);
  disturb(random);
  Plan plan = choose("a=2,b=2,c=2", how);
  EXPECT_EQ(plan.cost, first.cost);
  EXPECT_EQ(plan.lowerBound, first.lowerBound);
  EXPECT_EQ(difference(expected, plan), "");
}

/// Under the objective `time` the plan is the fastest of all.
TEST_F(StabilityTest, RandomPlansAreNotFaster) {
  for (GptOptions options :
       {GptOptions{.layers = 1}, GptOptions{.layers = 1, .keyHeads = 2}})
    for (const char *mesh : {"tp=2", "tp=4", "dp=2,tp=2"}) {
      parse(gpt(options));
      PlanOptions time;
      time.objective = Objective::Time;
      Plan plan = choose(mesh, time);
      EXPECT_LE(plan.cost, plan.megatron);
      EXPECT_LE(plan.cost, plan.allReplicated);
      for (uint64_t seed = 0; seed < 20; ++seed)
        EXPECT_LE(plan.cost, random(mesh, seed).cost) << mesh << " " << seed;
    }
}

/// Layers of one structure cost no more to solve than a few of them.
TEST_F(StabilityTest, EqualLayersAreSolvedOnce) {
  std::vector<int> computed;
  for (int layers : {12, 48}) {
    parse(gpt({.layers = layers}));
    Solver solver(problemOf("dp=2,tp=2", Objective::Parallel, Freedom::Roles));
    ASSERT_TRUE(solver.solve());
    computed.push_back(solver.computedMessages());
  }
  EXPECT_LT(computed[1], computed[0] + computed[0] / 2);
}

} // namespace
