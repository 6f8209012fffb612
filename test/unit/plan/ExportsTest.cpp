// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ExportsTest.cpp - what holds of the plans of real exports ----------===//
//
// One model of each family. With MTP_EVERY_EXPORT in the environment all models
// on all meshes of test/models/cases.py.
//
//===----------------------------------------------------------------------===//
#include "ModelFile.h"
#include "PlanFixture.h"
#include "Shuffle.h"

#include "compiler/plan/StepTime.h"
#include "dialects/spmd/SpmdDialect.h"

#include <set>
#include <sstream>

using namespace mlir;
using namespace mtp;
using namespace mtp::plan;

namespace {

struct ExportsTest : PlanTest {
  ExportsTest() { loadDialects(context); }

  void read(const std::string &name) {
    std::string error;
    module =
        readModel(MTP_MODELS "/" + name, context, /*training=*/false, error);
  }

  void forEachExport(
      function_ref<void(const std::string &, const std::string &)> visit) {
    using Meshes = std::vector<std::string>;
    const Meshes one{"tp=2"}, two{"dp=2,tp=2"};
    std::map<std::string, Meshes> runs{
        {"gpt2-ts", two}, {"llama-dynamo", two}, {"bert-ts", one},
        {"t5-ts", one},   {"vit-dynamo", one},   {"mixtral-dynamo", two}};
    if (std::getenv("MTP_EVERY_EXPORT"))
      for (const std::string &name : modelNames(MTP_MODELS))
        runs[name] = {"tp=2", "tp=3",      "tp=4",     "tp=8",
                      "dp=3", "dp=2,tp=2", "dp=2,tp=4"};
    int visited = 0;
    for (const auto &[name, meshes] : runs)
      for (const std::string &mesh : meshes) {
        SCOPED_TRACE(name + " on " + mesh);
        read(name);
        if (name == "mixtral-ts") { // its shapes depend on data
          EXPECT_FALSE(module);
          continue;
        }
        ASSERT_TRUE(module) << messages;
        visit(name, mesh);
        ++visited;
      }
    EXPECT_GE(visited, 6);
  }
};

/// 20 plans: ten of the same file, read again, and ten of other orders and
/// names.
TEST_F(ExportsTest, PlansAreTheSameEveryTime) {
  forEachExport([&](const std::string &name, const std::string &mesh) {
    Plan first = choose(mesh);
    const std::string bytes = savePlan(first, "hash").dump();
    for (int run = 1; run < 10; ++run) {
      read(name); // other addresses
      ASSERT_EQ(savePlan(choose(mesh), "hash").dump(), bytes);
    }
    std::mt19937_64 random(31);
    ChoicesByOp expected = choicesByOp(*module, first);
    for (int run = 0; run < 10; ++run) {
      shuffle(*module, random);
      rename(*module, random);
      Plan plan = choose(mesh);
      EXPECT_EQ(plan.cost, first.cost);
      ASSERT_EQ(differingChoice(expected, choicesByOp(*module, plan)), "");
    }
  });
}

/// Of the parallel plan, which is Megatron's, the weights are pinned; of the
/// other one every value.
TEST_F(ExportsTest, NoPlanIsFasterThanTheFastest) {
  forEachExport([&](const std::string &, const std::string &mesh) {
    PlanOptions time;
    time.objective = Objective::Time;
    Plan fastest = choose(mesh, time);
    EXPECT_LE(fastest.lowerBound, fastest.cost);
    Plan parallel = choose(mesh);
    auto megatron = load(mesh, savePlan(parallel, "hash"), "hash");
    ASSERT_TRUE(succeeded(megatron)) << messages;
    EXPECT_LE(fastest.cost, megatron->cost);
    EXPECT_LE(fastest.cost, fastest.megatron);
    PlanOptions pinned = time;
    for (const PredictedWeight &weight : parallel.weights)
      pinned.pins.push_back({weight.name, weight.layout});
    EXPECT_LE(fastest.cost, choose(mesh, pinned).cost);
    pinned.pins = {{"*", ""}};
    Plan replicated = choose(mesh, pinned);
    EXPECT_LE(fastest.cost, replicated.cost);
    EXPECT_EQ(replicated.cost, fastest.allReplicated);
    for (uint64_t seed = 0; seed < 20; ++seed)
      EXPECT_LE(fastest.cost, random(mesh, seed).cost) << seed;
  });
}

/// The conversions of the typed module are those that the plan was charged for:
/// op, axes, layouts, bytes and time.
TEST_F(ExportsTest, AppliedConversionsAreThoseThatWereCharged) {
  forEachExport([&](const std::string &name, const std::string &mesh) {
    PlanOptions time;
    time.objective = Objective::Time;
    std::vector<Plan> plans{choose(mesh), choose(mesh, time), random(mesh, 1),
                            random(mesh, 2)};
    for (const Plan &plan : plans) {
      read(name);
      std::multiset<std::string> charged, found;
      auto text = [](auto &&...parts) {
        std::ostringstream line;
        ((line << parts << "; "), ...);
        return line.str();
      };
      for (const PredictedCollective &c : plan.collectives)
        if (c.phase == "forward")
          charged.insert(
              text("mtp." + c.op, c.axis, c.from, c.to, c.bytes, c.time));
      ASSERT_TRUE(succeeded(applyPlan(*module, plan))) << messages;
      ASSERT_TRUE(succeeded(verify(*module))) << messages;
      Machine machine = machineOf(plan.mesh);
      module->walk([&](ConversionOpInterface op) {
        if (collectiveName(op.getTransfer()).empty())
          return;
        Value input = op->getOperand(0);
        auto layoutOf = [&](Value value) {
          return *toLayout(op, cast<RankedTensorType>(value.getType()),
                           plan.mesh);
        };
        Layout from = layoutOf(input), to = layoutOf(op->getResult(0));
        auto axes = spmd::findAxes(op.getAxes(), plan.mesh);
        Traffic traffic = trafficOf(tensorInfo(input), op.getTransfer(), axes,
                                    from, to, plan.mesh, machine);
        found.insert(text(op->getName().getStringRef().str(),
                          llvm::join(plan.mesh.names(axes), ","),
                          from.text(plan.mesh), to.text(plan.mesh),
                          traffic.bytes, traffic.time));
      });
      EXPECT_EQ(found, charged);
      EXPECT_FALSE(found.empty());
    }
  });
}

} // namespace
