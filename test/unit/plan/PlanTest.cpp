// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanFixture.h"

#include <fstream>
#include <random>

using namespace mtp;
using namespace mtp::plan;
using mlir::failed;
using mlir::succeeded;

namespace {

int count(const Plan &plan, const std::string &kind, const std::string &phase) {
  return int(
      llvm::count_if(plan.collectives, [&](const PredictedCollective &c) {
        return c.kind == kind && c.phase == phase;
      }));
}

std::string weightLayout(const Plan &plan, const std::string &name) {
  for (const PredictedWeight &weight : plan.weights)
    if (weight.name == name)
      return weight.layout;
  return "missing";
}

//===----------------------------------------------------------------------===//
// The plan of Megatron-LM is found
//===----------------------------------------------------------------------===//

TEST_F(PlanTest, FindsColumnThenRowWithTwoAllReducesALayerEachWay) {
  parse(gpt({.layers = 2}));
  Plan plan = choose("tp=2");
  // The embedding's forward and the head's backward are one more each.
  EXPECT_EQ(count(plan, "all_reduce", "forward"), 5);
  EXPECT_EQ(count(plan, "all_reduce", "backward"), 5);
  EXPECT_EQ(plan.collectives.size(), 10u);
  for (const char *column : {"l0_q_w", "l0_k_w", "l0_v_w", "l1_fc_w"})
    EXPECT_EQ(weightLayout(plan, column), "tp = S(1)") << column;
  for (const char *row : {"l0_o_w", "l1_pr_w"})
    EXPECT_EQ(weightLayout(plan, row), "tp = S(0)") << row;
  EXPECT_EQ(weightLayout(plan, "l0_fc_b"), "tp = S(0)");
  EXPECT_EQ(weightLayout(plan, "l0_pr_b"), "");
  EXPECT_EQ(weightLayout(plan, "l0_ln1_g"), "");
  EXPECT_EQ(weightLayout(plan, "wte"), "tp = S(0)"); // table and tied head
  EXPECT_EQ(plan.ops.back().results[0].text(plan.mesh), "tp = S(2)");
  EXPECT_EQ(plan.cost, plan.lowerBound);
}

TEST_F(PlanTest, PredictsBytesOfTheWholeActivation) {
  parse(gpt({.layers = 1}));
  for (const PredictedCollective &c : choose("tp=2").collectives)
    EXPECT_EQ(c.bytes, 2 * 12 * 64 * 4) << c.value;
}

TEST_F(PlanTest, ScalesToManyLayers) {
  parse(gpt({.layers = 24}));
  Plan plan = choose("tp=2");
  EXPECT_EQ(count(plan, "all_reduce", "forward"), 2 * 24 + 1);
  EXPECT_LE(plan.width, 3);
  std::printf("24 layers: planned in %.1f ms, width %d\n", plan.solveMs,
              plan.width);
}

TEST_F(PlanTest, SplitsTheBatchOnDpAndReducesEveryGradientOnce) {
  parse(gpt({.layers = 1}));
  Plan plan = choose("dp=2,tp=2");
  EXPECT_EQ(plan.arguments[0].results[0].text(plan.mesh), "dp = S(0)");
  EXPECT_EQ(plan.arguments[1].results[0].text(plan.mesh), ""); // positions 1x12
  EXPECT_EQ(plan.ops.back().results[0].text(plan.mesh), "dp = S(0), tp = S(2)");
  std::map<std::string, int> gradients;
  for (const PredictedCollective &c : plan.collectives)
    if (c.axis == "dp") {
      EXPECT_EQ(c.phase, "backward");
      ++gradients[c.value];
    }
  EXPECT_EQ(gradients.size(), plan.weights.size());
  for (const auto &[name, times] : gradients)
    EXPECT_EQ(times, 1) << name;
}

TEST_F(PlanTest, CutsUnevenHeadsInUnits) {
  parse(gpt({.layers = 1}));
  Plan plan = choose("tp=3");
  EXPECT_EQ(weightLayout(plan, "l0_q_w"), "tp = S(1, unit 16)");
  EXPECT_EQ(weightLayout(plan, "l0_o_w"), "tp = S(0, unit 16)");
  EXPECT_EQ(weightLayout(plan, "l0_fc_w"), "tp = S(1)");
  EXPECT_EQ(count(plan, "all_reduce", "forward"), 3);
}

TEST_F(PlanTest, RefinesTheAxisForFewerKeyHeadsThanRanks) {
  parse(gpt({.layers = 1, .keyHeads = 2}));
  Plan plan = choose("tp=4");
  ASSERT_EQ(plan.mesh.size(), 2);
  EXPECT_EQ(plan.mesh.axes[0].name(), "tp.0");
  EXPECT_EQ(weightLayout(plan, "l0_k_w"), "tp.0 = S(1)");
  EXPECT_EQ(weightLayout(plan, "l0_q_w"), "tp = S(1)");
  EXPECT_EQ(weightLayout(plan, "l0_fc_w"), "tp = S(1)");
  EXPECT_EQ(count(plan, "all_reduce", "forward"), 3);
  EXPECT_EQ(count(plan, "all_gather", "forward"), 0);
  EXPECT_EQ(choose("tp=2").mesh.size(), 1);
  EXPECT_EQ(choose("tp=3").mesh.size(), 1); // 3 is no multiple of 2
}

TEST_F(PlanTest, LayersThatShareWeightsHaveOnePlan) {
  parse(gpt({.layers = 16, .shared = true}));
  Plan plan = choose("tp=2");
  EXPECT_EQ(count(plan, "all_reduce", "forward"), 33);
  EXPECT_EQ(count(plan, "all_reduce", "backward"), 33);
  EXPECT_EQ(plan.collectives.size(), 66u);
}

TEST_F(PlanTest, SequenceParallelismKeepsNoWholeActivation) {
  PlanOptions options;
  options.sequenceParallel = true;
  for (const char *mesh : {"tp=2", "tp=3", "dp=2,tp=2"}) {
    parse(gpt({.layers = 3}));
    Plan plan = choose(mesh, options);
    // Two of each in a layer; the embedding is scattered, the head gathered.
    auto onTp = [&](const std::string &kind, const std::string &phase) {
      return llvm::count_if(plan.collectives, [&](auto &c) {
        return c.kind == kind && c.phase == phase && c.axis == "tp";
      });
    };
    EXPECT_EQ(onTp("all_gather", "forward"), 2 * 3 + 1) << mesh;
    EXPECT_EQ(onTp("reduce_scatter", "forward"), 2 * 3 + 1) << mesh;
    EXPECT_EQ(onTp("all_reduce", "forward"), 0) << mesh;
    EXPECT_EQ(onTp("all_gather", "backward"), 2 * 3 + 1) << mesh;
    EXPECT_EQ(onTp("reduce_scatter", "backward"), 2 * 3 + 1) << mesh;
    for (const PlannedOp &op : plan.ops)
      if (op.kind == "mtp.layer_norm") {
        EXPECT_NE(op.results[0].text(plan.mesh).find("tp = S(1)"),
                  std::string::npos)
            << op.name;
      }
    EXPECT_EQ(weightLayout(plan, "l0_q_w").substr(0, 8), "tp = S(1") << mesh;
    EXPECT_EQ(weightLayout(plan, "l1_pr_w").substr(0, 8), "tp = S(0") << mesh;
    ASSERT_TRUE(succeeded(applyPlan(*module, plan)));
    ASSERT_TRUE(succeeded(mlir::verify(*module))) << messages;
  }
}

TEST_F(PlanTest, OfOneRankHasNoConversions) {
  parse(gpt({.layers = 1}));
  Plan plan = choose("dp=1,tp=1");
  EXPECT_TRUE(plan.collectives.empty());
  EXPECT_EQ(plan.cost, plan.allReplicated);
}

//===----------------------------------------------------------------------===//
// Objective, pins, explanations
//===----------------------------------------------------------------------===//

TEST_F(PlanTest, TimeIsNeverWorseThanReplicatedOrMegatron) {
  for (GptOptions options :
       {GptOptions{.layers = 1}, GptOptions{.layers = 1, .keyHeads = 2},
        GptOptions{.layers = 3, .shared = true}}) {
    parse(gpt(options));
    for (const char *mesh : {"tp=2", "tp=4", "dp=2,tp=2", "dp=3"}) {
      PlanOptions time;
      time.objective = Objective::Time;
      Plan plan = choose(mesh, time);
      EXPECT_LE(plan.cost, plan.allReplicated) << mesh;
      EXPECT_LE(plan.cost, plan.megatron) << mesh;
      EXPECT_LE(plan.lowerBound, plan.cost) << mesh;
    }
  }
}

TEST_F(PlanTest, PinsAreKept) {
  parse(gpt({.layers = 2}));
  PlanOptions pinned;
  pinned.pins = {{"l0_fc_w", "tp = S(0)"}, {"l1_*_b", "tp = I"}};
  Plan plan = choose("tp=2", pinned);
  EXPECT_EQ(weightLayout(plan, "l0_fc_w"), "tp = S(0)");
  EXPECT_EQ(weightLayout(plan, "l1_q_b"), "");
  EXPECT_EQ(weightLayout(plan, "l0_q_b"), "tp = S(0)");
  EXPECT_GE(plan.cost, plan.megatron);
}

TEST_F(PlanTest, PinsThatCannotHoldAreRefused) {
  parse(gpt({.layers = 1}));
  PlanOptions pinned;
  pinned.pins = {{"nothing", "tp = S(0)"}};
  EXPECT_NE(refusal("tp=2", pinned).find("no value is named 'nothing'"),
            std::string::npos);
  pinned.pins = {{"wte", "tp = S(7)"}};
  EXPECT_NE(refusal("tp=2", pinned).find("dimension 7"), std::string::npos);
  pinned.pins = {{"wte", "tp = P(sum)"}};
  EXPECT_NE(refusal("tp=2", pinned).find("cannot have the layout"),
            std::string::npos);
  pinned.pins = {{"wte", "xp = S(0)"}};
  EXPECT_NE(refusal("tp=2", pinned).find("no axis 'xp'"), std::string::npos);
}

TEST_F(PlanTest, RegretEqualsPlanningAgainWithThePin) {
  parse(gpt({.layers = 1}));
  // Every other layout of some values: min-marginals against a new solution.
  int compared = 0;
  forEachAlternative("tp=2", [&](const std::string &name, const Layout &layout,
                                 Time total, const MeshShape &mesh) {
    std::string text = layout.text(mesh);
    PlanOptions pinned;
    pinned.pins = {{name, text.empty() ? "tp = I" : text}};
    Plan plan = choose("tp=2", pinned);
    if (total < kPenalty)
      EXPECT_EQ(plan.lowerBound, total) << name << " as " << text;
    ++compared;
  });
  EXPECT_GT(compared, 30);
}

TEST_F(PlanTest, ExplainsEveryCollectiveAndWholeWeight) {
  parse(gpt({.layers = 1}));
  PlanOptions options;
  options.explain = true;
  Plan plan = choose("tp=2", options);
  for (const PredictedCollective &c : plan.collectives) {
    EXPECT_FALSE(c.runnerUp.empty()) << c.value;
    EXPECT_FALSE(c.reason.empty()) << c.value;
    EXPECT_GE(c.regret, 0);
  }
  EXPECT_TRUE(llvm::any_of(
      plan.whole, [](const WholeValue &w) { return w.value == "l0_ln1_g"; }));
  EXPECT_NE(explainText(plan).find("row parallel: 2 blocks of [32, 64]"),
            std::string::npos);
  EXPECT_NE(explainText(plan).find("vocabulary parallel"), std::string::npos);
  EXPECT_EQ(explainJson(plan)["collectives"].size(), plan.collectives.size());
}

//===----------------------------------------------------------------------===//
// Determinism and files
//===----------------------------------------------------------------------===//

TEST_F(PlanTest, IsTheSameEveryTime) {
  parse(gpt({.layers = 3, .keyHeads = 2}));
  for (const char *mesh : {"tp=4", "dp=2,tp=2"}) {
    std::string first = savePlan(choose(mesh), "hash").dump();
    for (int run = 0; run < 20; ++run) {
      parse(gpt({.layers = 3, .keyHeads = 2})); // other addresses
      EXPECT_EQ(savePlan(choose(mesh), "hash").dump(), first);
    }
  }
}

TEST_F(PlanTest, ComesBackFromAFile) {
  for (GptOptions options :
       {GptOptions{.layers = 1}, GptOptions{.layers = 1, .keyHeads = 2}}) {
    parse(gpt(options));
    for (const char *mesh : {"tp=2", "tp=3", "tp=4", "dp=2,tp=2"}) {
      std::vector<Plan> plans{choose(mesh)};
      for (uint64_t seed = 0; seed < 5; ++seed)
        plans.push_back(random(mesh, seed));
      for (const Plan &plan : plans) {
        nlohmann::json file = savePlan(plan, "hash");
        auto loaded = load(mesh, file, "hash");
        ASSERT_TRUE(succeeded(loaded)) << mesh << ": " << messages;
        EXPECT_EQ(savePlan(*loaded, "hash"), file);
        EXPECT_EQ(loaded->cost, plan.cost);
        EXPECT_EQ(loaded->collectives.size(), plan.collectives.size());
      }
    }
  }
}

TEST_F(PlanTest, TheFileHasTheDocumentedKeys) {
  std::ifstream page(MTP_DOCS "/plan-file.md");
  std::set<std::string> documented, found;
  for (std::string line; std::getline(page, line);)
    if (line.rfind("| `", 0) == 0)
      documented.insert(line.substr(3, line.find('`', 3) - 3));
  parse(gpt({.layers = 1}));
  nlohmann::json file = savePlan(choose("dp=2,tp=2"), "hash");
  for (const auto &[key, value] : file.items())
    found.insert(key);
  for (const char *list : {"inputs", "ops"})
    for (const nlohmann::json &entry : file[list])
      for (const auto &[key, value] : entry.items())
        found.insert(key);
  EXPECT_EQ(found, documented);
}

TEST_F(PlanTest, AStaleOrIllTypedFileIsRefusedByName) {
  parse(gpt({.layers = 1}));
  nlohmann::json good = savePlan(choose("tp=2"), "hash");
  auto refused = [&](auto change, const char *expected,
                     const char *mesh = "tp=2") {
    nlohmann::json file = good;
    change(file);
    messages.clear();
    EXPECT_TRUE(failed(load(mesh, file, "hash")));
    EXPECT_NE(messages.find(expected), std::string::npos) << messages;
  };
  using json = nlohmann::json;
  refused([](json &f) { f["version"] = 2; }, "version 1");
  refused([](json &f) { f["model"] = "other"; }, "another model");
  refused([](json &) {}, "mesh tp=2", "tp=4");
  refused([](json &f) { f["ops"].erase(3); }, "stale");
  refused([](json &f) { f["ops"][0]["name"] = "renamed"; }, "'renamed'");
  refused([](json &f) { f["ops"].back()["results"][0] = "tp = S(9)"; },
          "dimension 9");
  refused([](json &f) { f["ops"].back()["results"][0] = "tp = R"; },
          "sharding rule of mtp.matmul");
  refused([](json &f) { f["ops"].back()["operands"] = 3; }, "needs 2 operands");
  refused([](json &f) { f["inputs"][0]["results"][0] = "tp = P(sum)"; },
          "'ids'");
  refused([](json &f) { f = json::array(); }, "version 1");
}

//===----------------------------------------------------------------------===//
// Random plans and typed modules
//===----------------------------------------------------------------------===//

TEST_F(PlanTest, RandomPlansAreWellTyped) {
  for (GptOptions options :
       {GptOptions{.layers = 1}, GptOptions{.layers = 1, .keyHeads = 2},
        GptOptions{.layers = 1, .batch = 1}})
    for (const char *mesh :
         {"tp=2", "tp=3", "tp=8", "dp=2,tp=2", "dp=2,tp=4", "a=2,b=2,c=2"}) {
      std::set<std::string> distinct;
      for (uint64_t seed = 0; seed < 4; ++seed) {
        parse(gpt(options));
        Plan plan = random(mesh, seed);
        distinct.insert(savePlan(plan, "").dump());
        EXPECT_EQ(savePlan(random(mesh, seed), ""), savePlan(plan, ""));
        ASSERT_TRUE(succeeded(applyPlan(*module, plan))) << mesh << " " << seed;
        ASSERT_TRUE(succeeded(mlir::verify(*module)))
            << mesh << " " << seed << messages;
      }
      EXPECT_EQ(distinct.size(), 4u);
    }
}

TEST_F(PlanTest, AppliedCollectivesAreThePredictedOnes) {
  for (const char *mesh : {"tp=2", "tp=3", "tp=4", "dp=2,tp=2"})
    for (uint64_t seed = 0; seed < 10; ++seed) {
      parse(gpt({.layers = 1, .keyHeads = 2}));
      Plan plan = seed == 0 ? choose(mesh) : random(mesh, seed);
      ASSERT_TRUE(succeeded(applyPlan(*module, plan)));
      ASSERT_TRUE(succeeded(mlir::verify(*module)));
      predictCollectives(*module);
      std::multiset<std::string> predicted, found;
      for (const PredictedCollective &c : plan.collectives)
        if (c.phase == "forward")
          predicted.insert("mtp." + c.op + " " + c.axis + " of " + c.value +
                           ", bytes " + std::to_string(c.bytes));
      module->walk([&](ConversionOpInterface op) {
        if (collectiveName(op.getTransfer()).empty())
          return;
        std::string axes;
        for (mlir::Attribute axis : op.getAxes())
          axes += (axes.empty() ? "" : ",") +
                  mlir::cast<mlir::StringAttr>(axis).str();
        auto bytes = op->getAttrOfType<mlir::IntegerAttr>("predicted_bytes");
        auto node = op->getAttrOfType<mlir::StringAttr>("node");
        ASSERT_TRUE(bytes && node);
        found.insert(op->getName().getStringRef().str() + " " + axes + " of " +
                     node.str() + ", bytes " + std::to_string(bytes.getInt()));
      });
      EXPECT_EQ(found, predicted) << mesh << " " << seed;
    }
}

} // namespace
