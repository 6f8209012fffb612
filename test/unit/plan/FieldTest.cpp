// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- FieldTest.cpp - failures that other planners are known for ---------===//
//
// Public threads about planners and cost models, and what tests the right
// behaviour here. Tests without a file are in this one.
//
//   autoparallel#457          CostTest: ReduceScatterBetweenHostsIsHalfAn...
//   autoparallel#425          CostTest: IsMonotoneInBytes
//   autoparallel#464          MovingACutIsPricedAsAllToAll
//   autoparallel#527          CostTest: CountsTheSlowestLink...; ClusterTest
//   autoparallel#22           TheLogitsOfALargeVocabularyStaySplit
//   autoparallel#320          AxesAreSolvedTogether
//   autoparallel#475, #394    AnIndivisibleWeightHasAPlan;
//                             ParetoTest: infeasible with the least budget
//   autoparallel#422, #420    IdenticalLayersHaveTheSamePlan
//   autoparallel#462, pytorch#169439, #157585
//                             ConversionsTest: ObeyTheTriangleInequality...
//   xla#7248                  PlanTest: IsTheSameEveryTime; StabilityTest
//   xla#15094                 APinOutsideTheObjectiveIsKept
//   pytorch/xla#7853          HostsDoNotChangeWhatIsLegal
//   alpa#176                  PlanTest: PinsThatCannotHoldAreRefused;
//                             SolverTest: infeasible, with the names
//   alpa#936                  training: updates of parameters in place
//   alpa#32, ColossalAI#2853  SolverTest, ParetoTest: PrintsItsTime...;
//                             StabilityTest: EqualLayersAreSolvedOnce
//   nnscaler#13               the solver is a library; OracleTest alone runs
//   cbc nnscaler#28               CostsAreNotReadFromThePlanFile nnscaler#29
//   PlanTest: AStaleOrIllTypedFileIsRefusedByName nnscaler#30 ExplainTest:
//   IdleRanksAreTold; SimulatorTest nnscaler#7
//   LargeOpsArePlannedWithoutTheirBytes FlexFlow#406              SolverTest:
//   RefusesWhatIsTooWide...; BoundedTest,
//                             ParetoTest: what is not proven has a bound
//   FlexFlow#690, #197        PlanTest: ComesBackFromAFile
//   ColossalAI#3964           PlanTest: OfOneRankHasNoConversions
//   TRT-LLM#6374              mtp-run/planner-inputs.test: typed modules
//   DeepSpeed#3634, #1192, #4011, #7259, vLLM#414, #5003, #11797, #2652,
//   gpustack#814, #2259       AnyNumberOfHeadsHasAPlan
//   DeepSpeed#3844            test/models: fused projections against one rank
//   vLLM#6327, tokenspeed#80  ABiasIsAddedOnce
//   SimAI#166                 CalibrationTest
//   Megatron#6782, #1225      memory is counted on the buffer plan
//
//===----------------------------------------------------------------------===//
#include "PlanFixture.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::plan;

namespace {

struct FieldTest : PlanTest {
  /// The layout of a parameter.
  static std::string weight(const Plan &plan, StringRef name) {
    for (const PredictedWeight &weight : plan.weights)
      if (weight.name == name)
        return weight.layout;
    return "missing";
  }
};

TEST_F(FieldTest, MovingACutIsPricedAsAllToAll) {
  MeshShape mesh;
  mesh.axes.push_back({"tp", -1, 4});
  Machine machine = Machine::cpuThreads({{"tp", 4}});
  Conversions conversions(mesh, machine);
  TensorInfo tensor{{64, 64}, 4, true};
  Layout rows(1, 2), columns(1, 2), whole(1, 2);
  rows.shard(0, 0);
  columns.shard(0, 1);
  Time moved = allToAll(machine, {0}, 64 * 64 * 4);
  EXPECT_EQ(conversions.cost(tensor, rows, columns), 2 * moved);
  EXPECT_LT(moved, allGather(machine, {0}, 64 * 64 * 4));
}

TEST_F(FieldTest, TheLogitsOfALargeVocabularyStaySplit) {
  parse(gpt({.layers = 1, .vocabulary = 128000}));
  Plan plan = choose("tp=4");
  EXPECT_EQ(plan.ops.back().results[0].text(plan.mesh), "tp = S(2)");
  int64_t activation = 2 * 12 * 64 * 4;
  for (const PredictedCollective &collective : plan.collectives)
    EXPECT_LE(collective.bytes, activation) << collective.value;
}

/// One axis alone would split the batch, and so would the other.
TEST_F(FieldTest, AxesAreSolvedTogether) {
  parse(gpt({.layers = 1, .batch = 8}));
  PlanOptions time;
  time.objective = Objective::Time;
  Plan both = choose("a=2,b=2", time), one = choose("a=4", time);
  EXPECT_EQ(both.cost, both.lowerBound);
  EXPECT_LE(both.cost, one.cost + one.cost / 2);
  EXPECT_LT(both.cost, choose("a=2", time).cost);
}

TEST_F(FieldTest, AnIndivisibleWeightHasAPlan) {
  parse("mtp.initializer @w : tensor<7x5xf32> {file = \"m\", offset = 0 : i64, "
        "bytes = 140 : i64, parameter}\n"
        "func.func @main(%x: tensor<3x7xf32> {mtp.name = \"x\"}) -> "
        "tensor<3x5xf32> {\n"
        "%w = mtp.parameter @w : tensor<7x5xf32>\n"
        "%y = mtp.matmul %x, %w : (tensor<3x7xf32>, tensor<7x5xf32>) -> "
        "tensor<3x5xf32>\nreturn %y : tensor<3x5xf32>\n}\n");
  for (const char *mesh : {"tp=4", "tp=7", "tp=11", "dp=2,tp=3", "tp=64"}) {
    Plan plan = choose(mesh);
    EXPECT_EQ(plan.cost, plan.lowerBound) << mesh;
    EXPECT_NE(weight(plan, "w"), "") << mesh;
  }
}

TEST_F(FieldTest, IdenticalLayersHaveTheSamePlan) {
  parse(gpt({.layers = 4}));
  for (const char *mesh : {"tp=2", "dp=2,tp=4"}) {
    Plan plan = choose(mesh);
    for (const char *part : {"q_w", "k_w", "v_w", "o_w", "fc_w", "pr_w", "q_b",
                             "o_b", "fc_b", "ln1_g", "ln2_b"})
      for (int layer = 1; layer < 4; ++layer)
        EXPECT_EQ(weight(plan, "l" + std::to_string(layer) + "_" + part),
                  weight(plan, std::string("l0_") + part))
            << mesh << " " << part;
  }
}

TEST_F(FieldTest, APinOutsideTheObjectiveIsKept) {
  parse(gpt({.layers = 1}));
  PlanOptions pinned;
  pinned.pins = {{"ids", "tp = S(1)"}}; // tokens, which tp never splits
  Plan plan = choose("tp=2", pinned);
  EXPECT_EQ(plan.arguments[0].results[0].text(plan.mesh), "tp = S(1)");
}

/// Links between hosts change times, not what a plan may be.
TEST_F(FieldTest, HostsDoNotChangeWhatIsLegal) {
  parse(gpt({.layers = 1}));
  Plan plan = choose("dp=2,tp=4");
  Machine hosts = Machine::cpuThreads({{"dp", 2}, {"tp", 4}});
  hosts.axes[0].ranksPerHost = 1;
  hosts.axes[0].outer = {20'000'000, 1'024'000};
  Conversions conversions(plan.mesh, hosts);
  Plan again = plan;
  ASSERT_TRUE(succeeded(describe(mainFunction(*module), again, conversions)));
  EXPECT_EQ(again.collectives.size(), plan.collectives.size());
  EXPECT_GT(again.cost, plan.cost);
}

TEST_F(FieldTest, CostsAreNotReadFromThePlanFile) {
  parse(gpt({.layers = 1, .sequence = 48}));
  Plan large = choose("tp=2");
  nlohmann::json file = savePlan(large, "hash");
  parse(gpt({.layers = 1, .sequence = 12}));
  auto loaded = load("tp=2", file, "hash");
  ASSERT_TRUE(succeeded(loaded)) << messages;
  EXPECT_LT(loaded->cost, large.cost);
  EXPECT_EQ(loaded->cost, choose("tp=2").cost);
}

TEST_F(FieldTest, LargeOpsArePlannedWithoutTheirBytes) {
  parse("func.func @main(%x: tensor<1x131072x28672xf32> {mtp.name = \"x\"}, "
        "%y: tensor<1x131072x28672xf32> {mtp.name = \"y\"}) -> "
        "tensor<1x131072x28672xf32> {\n"
        "%z = mtp.mul %x, %y : (tensor<1x131072x28672xf32>, "
        "tensor<1x131072x28672xf32>) -> tensor<1x131072x28672xf32>\n"
        "return %z : tensor<1x131072x28672xf32>\n}\n");
  Plan plan = choose("tp=8");
  EXPECT_EQ(plan.cost, plan.lowerBound);
}

/// (query heads, key heads, ranks), also where nothing divides.
TEST_F(FieldTest, AnyNumberOfHeadsHasAPlan) {
  struct Case {
    int heads, keyHeads, ranks;
  };
  for (Case c : {Case{28, 4, 8},
                 {25, 25, 2},
                 {16, 16, 3},
                 {52, 52, 8},
                 {64, 64, 3},
                 {16, 2, 8},
                 {64, 64, 4},
                 {5, 5, 7}}) {
    parse(gpt({.layers = 1,
               .hidden = 4 * c.heads,
               .heads = c.heads,
               .keyHeads = c.keyHeads}));
    Plan plan = choose("tp=" + std::to_string(c.ranks));
    EXPECT_EQ(plan.cost, plan.lowerBound);
    EXPECT_NE(weight(plan, "l0_q_w"), "") << c.heads << " on " << c.ranks;
    ASSERT_TRUE(succeeded(applyPlan(*module, plan)));
    EXPECT_TRUE(succeeded(verify(*module)))
        << c.heads << "/" << c.keyHeads << " on " << c.ranks << messages;
  }
}

/// The sum over the ranks comes before the bias.
TEST_F(FieldTest, ABiasIsAddedOnce) {
  parse(gpt({.layers = 1}));
  Plan plan = choose("tp=2");
  for (const char *name : {"l0_o_b", "l0_pr_b"})
    EXPECT_EQ(weight(plan, name), "");
  for (const PlannedOp &op : plan.ops)
    if (op.kind == "mtp.add" && op.operands[1].dims.size() == 1)
      for (const Layout &operand : op.operands)
        for (AxisState state : operand.states)
          EXPECT_NE(state.kind, Kind::PSum) << op.name;
}

} // namespace
