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
};

TEST_F(ThreeAxesTest, PlansOfExportsHaveABound) {
  constexpr double largestGap = 0.01;
  for (const char *name : {"gpt2-dynamo", "gpt2-ts", "bert-ts"}) {
    SCOPED_TRACE(name);
    std::string error;
    module = readModel(MTP_MODELS "/" + std::string(name), context,
                       /*training=*/false, error);
    ASSERT_TRUE(module) << error;
    PlanOptions time;
    time.objective = Objective::Time;
    Plan plan = choose("a=2,b=2,c=2", time);
    EXPECT_GT(plan.lowerBound, 0);
    EXPECT_LE(double(plan.cost - plan.lowerBound),
              largestGap * double(plan.cost));
    EXPECT_LE(plan.cost, plan.megatron);
    EXPECT_LE(plan.cost, plan.allReplicated);
    for (uint64_t seed = 0; seed < 5; ++seed)
      EXPECT_LE(plan.lowerBound, random("a=2,b=2,c=2", seed).cost) << seed;
  }
}

} // namespace
