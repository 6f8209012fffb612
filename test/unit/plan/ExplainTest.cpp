// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanFixture.h"

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
  }
  // Parts of the time add up to it.
  double sum = 0;
  for (const nlohmann::json &part : json["contributions"]["time"])
    sum += part["us"].get<double>();
  EXPECT_NEAR(sum, json["cost_us"].get<double>(), 1e-3);
  for (const nlohmann::json &c : json["collectives"])
    EXPECT_FALSE(c["conjugate"].get<std::string>().empty());
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
