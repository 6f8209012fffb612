// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanFixture.h"

#include <random>

using namespace mlir;
using namespace mtp;
using namespace mtp::plan;

namespace {

struct StabilityTest : PlanTest {
  /// Any other order in which every op stands behind its operands.
  void shuffle(std::mt19937_64 &random) {
    Block &block = mainFunction(*module).getBody().front();
    Operation *end = block.getTerminator();
    std::vector<Operation *> left;
    for (Operation &op : block.without_terminator())
      left.push_back(&op);
    DenseSet<Operation *> placed;
    while (!left.empty()) {
      size_t pick = random() % left.size();
      bool ready = llvm::all_of(left[pick]->getOperands(), [&](Value operand) {
        Operation *before = operand.getDefiningOp();
        return !before || placed.contains(before);
      });
      if (!ready)
        continue;
      left[pick]->moveBefore(end);
      placed.insert(left[pick]);
      left.erase(left.begin() + long(pick));
    }
  }

  /// New names for every op and initializer.
  void rename(std::mt19937_64 &random) {
    llvm::StringMap<std::string> names;
    for (auto initializer : module->getOps<InitializerOp>()) {
      std::string name = "w" + std::to_string(random());
      names[initializer.getSymName()] = name;
      initializer.setSymName(name);
    }
    for (Operation &op : mainFunction(*module).getBody().front()) {
      op.setLoc(NameLoc::get(
          StringAttr::get(&context, "n" + std::to_string(random()))));
      if (auto parameter = dyn_cast<ParameterOp>(op))
        parameter.setSource(names[parameter.getSource()]);
    }
  }

  /// The plan's choices by op, whatever the order and the names are.
  DenseMap<Operation *, PlannedOp> choices(const Plan &plan) {
    DenseMap<Operation *, PlannedOp> result;
    for (auto [op, planned] : llvm::zip_equal(
             mainFunction(*module).getBody().front().without_terminator(),
             plan.ops))
      result[&op] = planned;
    return result;
  }

  void expectChoices(const Plan &plan,
                     const DenseMap<Operation *, PlannedOp> &expected) {
    for (auto &[op, planned] : choices(plan)) {
      const PlannedOp &before = expected.at(op);
      EXPECT_EQ(planned.operands, before.operands) << before.name;
      EXPECT_EQ(planned.results, before.results) << before.name;
      EXPECT_EQ(planned.copies, before.copies) << before.name;
    }
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
        auto expected = choices(first);
        int runs = objective == Objective::Parallel ? 10 : 2;
        for (int run = 0; run < runs; ++run) {
          shuffle(random);
          rename(random);
          Plan plan = choose(mesh, how);
          EXPECT_EQ(plan.cost, first.cost);
          expectChoices(plan, expected);
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
  auto expected = choices(first);
  shuffle(random);
  rename(random);
  Plan plan = choose("a=2,b=2,c=2", how);
  EXPECT_EQ(plan.cost, first.cost);
  EXPECT_EQ(plan.lowerBound, first.lowerBound);
  expectChoices(plan, expected);
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
