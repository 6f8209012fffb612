// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanFixture.h"

#include "compiler/plan/BudgetPlans.h"

using namespace mtp;
using namespace mtp::plan;

namespace {

class ExplainTest : public PlanTest {};

TEST_F(ExplainTest, RegretOfEveryOpIsThatOfPlanningAgain) {
  parse(gpt({.layers = 2}));
  comparePlansWithRunnersUp("tp=2", 20);
}

TEST_F(ExplainTest, RegretOfEveryOpWithFewerKeyHeads) {
  parse(gpt({.layers = 1, .keyHeads = 2}));
  comparePlansWithRunnersUp("tp=4", 10);
}

TEST_F(ExplainTest, RegretOfEveryOpOnTwoAxes) {
  parse(gpt({.layers = 1}));
  comparePlansWithRunnersUp("dp=2,tp=2", 10);
}

TEST_F(ExplainTest, RegretUnderABudgetIsThatOfPlanningAgain) {
  parse(gpt({.layers = 2}));
  compareWithinBudgets("tp=2", /*training=*/true, 30);
  compareWithinBudgets("tp=4", /*training=*/false, 30);
}

TEST_F(ExplainTest, RegretUnderABudgetOnTwoAxes) {
  parse(gpt({.layers = 1}));
  compareWithinBudgets("dp=2,tp=2", /*training=*/true, 10);
}

/// Searches that share what was made before answer as those that start anew.
TEST_F(ExplainTest, PlansOfOneModuleAreThoseOfSearchesAlone) {
  parse(gpt({.layers = 2}));
  PlanBudget budget;
  budget.parameterBytes = [](mlir::Operation *op, const Layout &layout,
                             const MeshShape &mesh) {
    return arenaBytes(tensorInfo(op->getResult(0)), layout, mesh);
  };
  PlanOptions free, sequence, within;
  sequence.sequenceParallel = true;
  within.budget = &budget;
  BudgetPlans plans(*module, {{"tp", 4}}, free);
  for (const PlanOptions *options : {&free, &sequence, &free}) {
    auto plan = plans.choose(*options);
    ASSERT_TRUE(succeeded(plan));
    EXPECT_EQ(plan->cost, choose("tp=4", *options).cost);
  }
  budget.bytes = 1;
  const int64_t least = choose("tp=4", within).bytes;
  budget.bytes = INT64_MAX;
  const int64_t most = choose("tp=4", within).bytes;
  ASSERT_LT(least, most);
  for (int part : {3, 1, 4, 2}) {
    budget.bytes = least + (most - least) * part / 4;
    within.explain = false;
    auto draft = plans.within(budget, 0);
    ASSERT_TRUE(succeeded(draft) && succeeded(plans.complete(*draft)));
    Plan alone = choose("tp=4", within);
    EXPECT_EQ(draft->cost, alone.cost) << part;
    EXPECT_LE(draft->bytes, budget.bytes) << part;
    within.explain = true;
    within.prefer = &*draft;
    auto explained = plans.explain(*draft, budget, 0);
    ASSERT_TRUE(succeeded(explained));
    alone = choose("tp=4", within);
    explained->solveMs = alone.solveMs = 0;
    EXPECT_EQ(explainJson(*explained), explainJson(alone)) << part;
    within.prefer = nullptr;
  }
}

TEST_F(ExplainTest, ALimitOfBytesIsNamed) {
  parse(gpt({.layers = 1}));
  PlanBudget budget;
  budget.parameterBytes = [](mlir::Operation *op, const Layout &layout,
                             const MeshShape &mesh) {
    return arenaBytes(tensorInfo(op->getResult(0)), layout, mesh);
  };
  PlanOptions options;
  options.explain = true;
  options.budget = &budget;
  budget.bytes = 1;
  budget.bytes = choose("tp=4", options).bytes;
  Plan plan = choose("tp=4", options);
  ASSERT_EQ(plan.limit, budget.bytes);
  nlohmann::json json = explainJson(plan);
  EXPECT_EQ(json["layout_limit"]["bytes"], budget.bytes);
  EXPECT_EQ(json["layout_limit"]["used"], plan.bytes);
  std::string limit = std::to_string(budget.bytes), text = explainText(plan);
  EXPECT_NE(text.find("layouts are the cheapest within " + limit),
            std::string::npos)
      << text;
  // Nothing that takes more may be chosen at the smallest limit.
  int large = 0;
  for (const nlohmann::json &op : json["choices"])
    for (const nlohmann::json &choice : op["strategies"]) {
      if (choice["needed_bytes"].is_null())
        continue;
      ++large;
      EXPECT_GT(choice["needed_bytes"], budget.bytes);
      EXPECT_TRUE(choice["regret_us"].is_null());
      EXPECT_NE(choice["why"].get<std::string>().find(limit),
                std::string::npos);
    }
  EXPECT_GT(large, 10);
}

TEST_F(ExplainTest, TheJsonHasTheDocumentedKeys) {
  parse(gpt({.layers = 1}));
  PlanOptions options;
  options.explain = true;
  Plan plan = choose("dp=2,tp=2", options);
  nlohmann::json json = explainJson(plan);
  for (const char *key :
       {"format", "version", "mesh", "cost_us", "lower_bound_us",
        "all_replicated_us", "megatron_us", "solve_ms", "notes", "inputs",
        "ops", "choices", "contributions", "weights", "collectives", "whole"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["ops"].size(), plan.ops.size());
  // The chosen strategy is the one of the plan.
  size_t next = json["inputs"].size();
  for (const nlohmann::json &op : json["ops"]) {
    if (op["results"].empty())
      continue; // a constant
    const nlohmann::json &choice = json["choices"].at(next++);
    EXPECT_EQ(choice["name"], op["name"]);
    EXPECT_EQ(choice["strategies"][0]["results"], op["results"]);
    EXPECT_EQ(choice["strategies"][0]["regret_us"], 0.0);
    for (const nlohmann::json &strategy : choice["strategies"]) {
      EXPECT_EQ(strategy["is_bound"], false);
      EXPECT_TRUE(strategy["needed_bytes"].is_null());
    }
  }
  // Parts of the time add up to it.
  double sum = 0;
  for (const nlohmann::json &part : json["contributions"]["time"])
    sum += part["us"].get<double>();
  EXPECT_NEAR(sum, json["cost_us"].get<double>(), 1e-3);
  for (const nlohmann::json &c : json["collectives"]) {
    EXPECT_FALSE(c["conjugate"].get<std::string>().empty());
    EXPECT_EQ(c["is_bound"], false);
  }
  EXPECT_FALSE(json.contains("layout_limit"));
}

TEST_F(ExplainTest, IdleRanksAreTold) {
  parse(gpt({.layers = 1}));
  Plan plan = choose("dp=8,tp=2");
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_EQ(plan.notes[0],
            "axis dp of 8: no dimension has more than 2 blocks to split over "
            "it, 6 ranks are idle");
  EXPECT_TRUE(choose("dp=2,tp=2").notes.empty());
}

} // namespace
