// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Bounded.h"
#include "PlanFixture.h"

using namespace mtp;
using namespace mtp::plan;

namespace {

struct BoundedTest : PlanTest {
  /// Visits the model of everything that the rules allow on `axes`.
  void withModel(std::vector<std::pair<std::string, int64_t>> axes,
                 llvm::function_ref<void(const Model &, const Space &)> visit) {
    auto function = mainFunction(*module);
    Roles roles(function);
    MeshShape shape = refineMesh(function, roles, axes);
    std::vector<std::pair<std::string, int64_t>> links;
    for (const MeshShape::Axis &axis : shape.axes)
      links.push_back({axis.name(), axis.size});
    Conversions conversions(shape, Machine::cpuThreads(links));
    Space space(function, roles, shape, Freedom::All);
    visit(Model(function, space, conversions, Objective::Time), space);
  }
};

/// Sequences of 12 are padded on 8 ranks, so ways over copies count, too.
TEST_F(BoundedTest, TheRelaxationIsABoundForEveryStrategy) {
  for (GptOptions options :
       {GptOptions{.layers = 2}, GptOptions{.layers = 1, .keyHeads = 2},
        GptOptions{.layers = 2, .sequence = 5}}) {
    parse(gpt(options));
    for (auto axes : std::vector<std::vector<std::pair<std::string, int64_t>>>{
             {{"tp", 8}}, {{"tp", 3}}, {{"tp", 4}}})
      withModel(axes, [&](Model model, const Space &) {
        Solver relaxed(model.relaxation());
        ASSERT_TRUE(relaxed.solve());
        auto bounds = relaxed.minMarginals();
        model.build();
        Solver exact(model.problem());
        ASSERT_TRUE(exact.solve());
        EXPECT_LE(relaxed.optimum(), exact.optimum());
        EXPECT_GT(relaxed.optimum(), exact.optimum() / 2);
        auto marginals = exact.minMarginals();
        for (size_t v = 0; v < bounds.size(); ++v)
          for (size_t x = 0; x < bounds[v].size(); ++x)
            EXPECT_LE(bounds[v][x], marginals[v][x]);
      });
  }
}

TEST_F(BoundedTest, FindsTheOptimumOfTheWholeModel) {
  for (GptOptions options :
       {GptOptions{.layers = 2}, GptOptions{.layers = 1, .keyHeads = 2}}) {
    parse(gpt(options));
    for (auto axes : std::vector<std::vector<std::pair<std::string, int64_t>>>{
             {{"tp", 4}}, {{"dp", 2}, {"tp", 2}}, {{"dp", 2}, {"tp", 3}}})
      withModel(axes, [&](Model model, const Space &) {
        SolverOptions limits;
        limits.prune = true;
        auto bounded = solveBounded(model, limits);
        ASSERT_TRUE(bounded && bounded->model);
        EXPECT_EQ(bounded->bound, bounded->cost);
        EXPECT_EQ(costOf(bounded->model->problem(), bounded->assignment),
                  bounded->cost);
        model.build();
        Solver exact(model.problem(), limits);
        ASSERT_TRUE(exact.solve());
        EXPECT_EQ(bounded->cost, exact.optimum());
      });
  }
}

TEST_F(BoundedTest, ThreeAxesHaveAProvenOptimum) {
  parse(gpt({.layers = 1}));
  PlanOptions time;
  time.objective = Objective::Time;
  Plan plan = choose("a=2,b=2,c=2", time);
  EXPECT_EQ(plan.lowerBound, plan.cost);
  EXPECT_EQ(plan.method, "elimination within bounds");
  EXPECT_LE(plan.cost, plan.megatron);
  EXPECT_LE(plan.cost, plan.allReplicated);
  parse(gpt({.layers = 2}));
  for (const char *mesh : {"dp=2,tp=2,ep=2", "a=2,b=2,c=2"}) {
    plan = choose(mesh);
    EXPECT_EQ(plan.lowerBound, plan.cost) << mesh;
    EXPECT_EQ(plan.method, "elimination") << mesh;
  }
}

/// Layers that share weights make wide graphs: where the search ends early, it
/// says what is proven.
TEST_F(BoundedTest, WhatIsNotProvenHasABound) {
  parse(gpt({.layers = 6, .shared = true}));
  PlanOptions time;
  time.objective = Objective::Time;
  Plan plan = choose("dp=2,tp=2", time);
  EXPECT_LE(plan.lowerBound, plan.cost);
  EXPECT_GT(plan.lowerBound, plan.cost / 2);
  EXPECT_EQ(plan.notes.empty(), plan.lowerBound == plan.cost);
  EXPECT_LE(plan.cost, plan.megatron);
}

} // namespace
