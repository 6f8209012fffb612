// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ThreeAxesTest.cpp - the free optimum of exports on three axes ------===//
#include "ModelFile.h"
#include "PlanFixture.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::plan;

namespace {

struct ThreeAxesTest : PlanTest {
  ThreeAxesTest() { loadDialects(context); }

  void expectBound(const std::string &name, Objective objective) {
    SCOPED_TRACE(name);
    constexpr const char *mesh = "a=2,b=2,c=2";
    constexpr double largestGap = 0.01;
    std::string error;
    module =
        readModel(MTP_MODELS "/" + name, context, /*training=*/false, error);
    ASSERT_TRUE(module) << error;
    PlanOptions options;
    options.objective = objective;
    Plan plan = choose(mesh, options);
    EXPECT_GT(plan.lowerBound, 0);
    EXPECT_LE(double(plan.cost - plan.lowerBound),
              largestGap * double(plan.cost));
    if (objective != Objective::Time)
      return;
    EXPECT_LE(plan.cost, plan.megatron);
    EXPECT_LE(plan.cost, plan.allReplicated);
    for (uint64_t seed = 0; seed < 5; ++seed)
      EXPECT_LE(plan.lowerBound, random(mesh, seed).cost) << seed;
  }
};

TEST_F(ThreeAxesTest, FastestPlansOfExportsHaveABound) {
  for (const char *name : {"gpt2-dynamo", "gpt2-ts", "bert-ts"})
    expectBound(name, Objective::Time);
}

/// Their models are too large to be built, or too wide.
TEST_F(ThreeAxesTest, ParallelPlansOfExportsHaveABound) {
  for (const char *name : {"vit-dynamo", "gpt2-ts-dropout"})
    expectBound(name, Objective::Parallel);
}

} // namespace
