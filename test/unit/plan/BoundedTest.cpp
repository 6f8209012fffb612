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

constexpr int64_t manyEntries = int64_t(1) << 24;

/// Sequences of 12 are padded on 8 ranks, so ways over copies count, too.
TEST_F(BoundedTest, StarsAreABoundForEveryStrategy) {
  for (GptOptions options :
       {GptOptions{.layers = 2}, GptOptions{.layers = 1, .keyHeads = 2},
        GptOptions{.layers = 2, .sequence = 5}}) {
    parse(gpt(options));
    for (auto axes : std::vector<std::vector<std::pair<std::string, int64_t>>>{
             {{"tp", 8}}, {{"tp", 3}}, {{"tp", 4}}})
      withModel(axes, [&](Model model, const Space &) {
        auto exactStars = model.stars(/*exact=*/true, manyEntries);
        auto spread = model.stars(/*exact=*/false, manyEntries);
        ASSERT_TRUE(exactStars && spread);
        const std::vector<int> order = model.sequence();
        Model built = model;
        built.build();
        Solver exact(built.problem());
        auto optimal = exact.solve();
        ASSERT_TRUE(optimal);
        auto marginals = exact.minMarginals();
        for (bool isExact : {true, false}) {
          const StarProblem &stars =
              isExact ? exactStars->problem : spread->problem;
          DualBound dual =
              dualBound(stars, order, [&](const std::vector<int> &chosen) {
                return model.priceOf(stars, chosen);
              });
          EXPECT_LE(dual.bound, exact.optimum());
          EXPECT_GT(dual.bound, exact.optimum() / 4 * 3);
          EXPECT_GE(dual.cost, exact.optimum());
          for (size_t v = 0; v < order.size(); ++v)
            for (size_t x = 0; x < dual.marginals[v].size(); ++x)
              if (marginals[v][x] <= dual.cost)
                EXPECT_LE(dual.marginals[v][x], marginals[v][x]);
        }
        // The choices of the ops, without the copies.
        optimal->resize(order.size());
        EXPECT_EQ(model.priceOf(exactStars->problem, *optimal),
                  exact.optimum());
        EXPECT_LE(costOf(exactStars->problem, *optimal), exact.optimum());
        EXPECT_LE(costOf(spread->problem, *optimal),
                  costOf(exactStars->problem, *optimal));
      });
  }
}

TEST_F(BoundedTest, TablesOfStarsHaveALimit) {
  parse(gpt({.layers = 1}));
  withModel({{"tp", 4}}, [&](Model model, const Space &) {
    EXPECT_FALSE(model.stars(/*exact=*/false, 10));
    EXPECT_TRUE(model.stars(/*exact=*/false, manyEntries));
  });
}

/// What is left of a model is a model: of equal cost, if the optimum is kept.
TEST_F(BoundedTest, IllegalStrategiesAreForgotten) {
  parse(gpt({.layers = 2}));
  withModel({{"dp", 2}, {"tp", 2}}, [&](Model model, const Space &) {
    Model built = model;
    built.build();
    Solver exact(built.problem());
    auto optimal = exact.solve();
    ASSERT_TRUE(optimal);
    auto marginals = exact.minMarginals();
    std::vector<int> ops = *optimal;
    ops.resize(model.sequence().size());
    marginals.resize(ops.size());
    model.keepBelow(marginals, exact.optimum() + exact.optimum() / 16);
    auto count = [&] {
      size_t strategies = 0;
      for (const Variable &variable : model.problem().variables)
        strategies += variable.unary.size();
      return strategies;
    };
    size_t before = count();
    std::vector<int> kept = model.dropIllegal(ops);
    EXPECT_LT(count(), before / 2);
    auto stars = model.stars(/*exact=*/true, manyEntries);
    ASSERT_TRUE(stars);
    EXPECT_EQ(model.priceOf(stars->problem, kept), exact.optimum());
    model.build();
    Solver again(model.problem());
    ASSERT_TRUE(again.solve());
    EXPECT_EQ(again.optimum(), exact.optimum());
  });
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
        Model narrowed = model;
        auto bounded = solveBounded(narrowed, limits);
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
