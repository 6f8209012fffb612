// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanFixture.h"
#include "ModuleText.h"

#include "compiler/plan/Pins.h"

#include <cstdio>
#include <map>
#include <set>

using namespace mlir;

namespace mtp::plan {
namespace {

class GptWriter : ModuleText {
public:
  explicit GptWriter(const GptOptions &options) : o(options) {}

  std::string run() {
    int keyHeads = o.keyHeads ? o.keyHeads : o.heads, size = o.hidden / o.heads;
    Value ids{"%ids", {o.batch, o.sequence}, "i64"},
        positions{"%positions", {1, o.sequence}, "i64"};
    Value x = op("add",
                 {gather(parameter("wte", {o.vocabulary, o.hidden}), ids),
                  gather(parameter("wpe", {64, o.hidden}), positions)},
                 hidden(o.hidden));
    for (int layer = 0; layer < o.layers; ++layer) {
      std::string name = o.shared ? "s" : "l" + std::to_string(layer);
      Value normed = norm(x, name + "_ln1");
      Value q = heads(linear(normed, name + "_q", o.hidden, o.hidden), o.heads);
      Value k = heads(linear(normed, name + "_k", o.hidden, keyHeads * size),
                      keyHeads);
      Value v = heads(linear(normed, name + "_v", o.hidden, keyHeads * size),
                      keyHeads);
      Value mixed = attention(q, k, v);
      mixed = op("transpose", {mixed}, {o.batch, o.sequence, o.heads, size},
                 " [0, 2, 1, 3]");
      mixed = op("reshape", {mixed}, hidden(o.hidden));
      x = op("add", {x, linear(mixed, name + "_o", o.hidden, o.hidden)},
             hidden(o.hidden));
      normed =
          linear(norm(x, name + "_ln2"), name + "_fc", o.hidden, 4 * o.hidden);
      normed = op("gelu", {normed}, hidden(4 * o.hidden));
      x = op("add", {x, linear(normed, name + "_pr", 4 * o.hidden, o.hidden)},
             hidden(o.hidden));
    }
    x = norm(x, "lnf");
    Value logits = op("matmul", {x, parameter("wte", {o.vocabulary, o.hidden})},
                      hidden(o.vocabulary), " {transpose_rhs}");
    return initializers + "func.func @main(%ids: " + type(ids) +
           " {mtp.name = \"ids\"}, %positions: " + type(positions) +
           " {mtp.name = \"positions\"}) -> " + type(logits) + " {\n" + body +
           "return " + logits.name + " : " + type(logits) + "\n}\n";
  }

private:
  std::vector<int> hidden(int last) { return {o.batch, o.sequence, last}; }

  Value gather(const Value &table, const Value &ids) {
    Value result{"%v" + std::to_string(next++),
                 {ids.shape[0], ids.shape[1], o.hidden}};
    body += result.name + " = mtp.gather " + table.name + "[" + ids.name +
            "] dim 0 : (" + type(table) + ", " + type(ids) + ") -> " +
            type(result) + "\n";
    return result;
  }

  Value linear(const Value &x, const std::string &name, int in, int out) {
    Value product =
        op("matmul", {x, parameter(name + "_w", {in, out})}, hidden(out));
    return op("add", {product, parameter(name + "_b", {out})}, hidden(out));
  }
  Value norm(const Value &x, const std::string &name) {
    return op("layer_norm",
              {x, parameter(name + "_g", {o.hidden}),
               parameter(name + "_b", {o.hidden})},
              hidden(o.hidden), " {epsilon = 1.0e-5 : f64}");
  }
  Value heads(const Value &x, int count) {
    int size = o.hidden / o.heads;
    Value split = op("reshape", {x}, {o.batch, o.sequence, count, size});
    return op("transpose", {split}, {o.batch, count, o.sequence, size},
              " [0, 2, 1, 3]");
  }
  Value attention(const Value &q, const Value &k, const Value &v) {
    Value result{"%v" + std::to_string(next++), q.shape};
    Value rows{"%v" + std::to_string(next++),
               {q.shape[0], q.shape[1], q.shape[2]}};
    body += result.name + ", " + rows.name + " = mtp.attention " + q.name +
            ", " + k.name + ", " + v.name +
            " {scale = 0.25 : f64, causal} : (" + type(q) + ", " + type(k) +
            ", " + type(v) + ") -> (" + type(result) + ", " + type(rows) +
            ")\n";
    return result;
  }

  const GptOptions &o;
};

std::vector<std::pair<std::string, int64_t>> axesOf(const std::string &mesh) {
  std::vector<std::pair<std::string, int64_t>> axes;
  std::string error;
  EXPECT_TRUE(parseMesh(mesh, axes, error)) << error;
  return axes;
}

} // namespace

std::string gpt(const GptOptions &options) { return GptWriter(options).run(); }

PlanTest::PlanTest() {
  context.loadDialect<MtpDialect, func::FuncDialect>();
  handler = std::make_unique<ScopedDiagnosticHandler>(
      &context, [this](Diagnostic &diagnostic) {
        messages += diagnostic.str() + "\n";
        return success();
      });
}

void PlanTest::parse(const std::string &text) {
  module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << messages;
}

Plan PlanTest::choose(const std::string &mesh, const PlanOptions &options) {
  auto plan = choosePlan(*module, axesOf(mesh), options);
  EXPECT_TRUE(succeeded(plan)) << mesh << ": " << messages;
  return succeeded(plan) ? *plan : Plan();
}

Plan PlanTest::random(const std::string &mesh, uint64_t seed) {
  auto plan = randomPlan(*module, axesOf(mesh), seed);
  EXPECT_TRUE(succeeded(plan)) << mesh << ": " << messages;
  return succeeded(plan) ? *plan : Plan();
}

FailureOr<Plan> PlanTest::load(const std::string &mesh,
                               const nlohmann::json &file,
                               const std::string &hash) {
  return loadPlan(*module, axesOf(mesh), file, hash);
}

std::string PlanTest::refusal(const std::string &mesh,
                              const PlanOptions &options) {
  messages.clear();
  EXPECT_TRUE(failed(choosePlan(*module, axesOf(mesh), options)));
  return messages;
}

void PlanTest::withModel(const std::string &mesh, Objective objective,
                         Freedom freedom,
                         function_ref<void(Model &, const MeshShape &)> visit) {
  func::FuncOp function = mainFunction(*module);
  Roles roles(function);
  MeshShape shape = refineMesh(function, roles, axesOf(mesh));
  std::vector<std::pair<std::string, int64_t>> links;
  for (const MeshShape::Axis &axis : shape.axes)
    links.push_back({axis.name(), axis.size});
  Conversions conversions(shape, Machine::cpuThreads(links));
  Space space(function, roles, shape, freedom);
  Model model(function, space, conversions, objective);
  model.build();
  visit(model, shape);
}

Problem PlanTest::problemOf(const std::string &mesh, Objective objective,
                            Freedom freedom) {
  Problem problem;
  withModel(mesh, objective, freedom, [&](Model &model, const MeshShape &) {
    problem = model.problem();
  });
  return problem;
}

void PlanTest::forEachAlternative(
    const std::string &mesh,
    function_ref<void(const std::string &, const Layout &, Time,
                      const MeshShape &)>
        visit) {
  withModel(mesh, Objective::Parallel, Freedom::Roles,
            [&](Model &model, const MeshShape &shape) {
              Solver solver(model.problem());
              ASSERT_TRUE(solver.solve());
              Marginals marginals = exactMarginals(solver.minMarginals());
              func::FuncOp function = mainFunction(*module);
              std::map<std::string, int> names;
              std::vector<mlir::Value> values(function.getArguments().begin(),
                                              function.getArguments().end());
              for (Operation &op :
                   function.getBody().front().without_terminator())
                values.insert(values.end(), op.result_begin(), op.result_end());
              for (mlir::Value value : values)
                ++names[valueName(value)];
              for (mlir::Value value : values)
                if (names[valueName(value)] == 1)
                  for (const Model::Alternative &alternative :
                       model.alternatives(value, marginals))
                    if (alternative.marginal.fits())
                      visit(valueName(value), alternative.layout,
                            alternative.marginal.cost, shape);
            });
}

std::vector<Time> PlanTest::costsInModel(const std::string &mesh,
                                         const std::vector<Plan> &plans) {
  std::vector<Time> costs;
  withModel(mesh, Objective::Parallel, Freedom::Tokens,
            [&](Model &model, const MeshShape &) {
              for (const Plan &plan : plans) {
                auto assignment = model.encode(plan);
                costs.push_back(
                    assignment ? costOf(model.problem(), *assignment) : -1);
              }
            });
  return costs;
}

void PlanTest::comparePlansWithRunnersUp(const std::string &mesh, int atLeast,
                                         PlanOptions options) {
  options.explain = true;
  Plan plan = choose(mesh, options);
  options.explain = false;
  exact = bounds = large = 0;
  std::vector<Plan> plans{plan};
  std::vector<const OpChoices *> runnersUp;
  // As it is printed. (No name of the tests has a '='.)
  auto pinned = [&](const std::string &text) {
    auto [value, layout] = StringRef(text).split('=');
    PlanOptions more = options;
    more.pins = {{value.str(), layout.str()}};
    return choose(mesh, more);
  };
  std::set<std::string> ofCollectives;
  for (const PredictedCollective &c : plan.collectives)
    if (!plan.limit && !c.runnerUpPin.empty() &&
        ofCollectives.insert(c.runnerUpPin).second)
      EXPECT_EQ(pinned(c.runnerUpPin).lowerBound - plan.lowerBound, c.regret)
          << c.runnerUpPin;
  auto function = mainFunction(*module);
  size_t next = function.getNumArguments();
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (isFreeSource(&op, *rule))
      continue;
    const OpChoices &choices = plan.choices.at(next++);
    ASSERT_EQ(choices.name, valueName(op.getResult(0)));
    EXPECT_EQ(choices.all.at(0).regret, 0) << choices.name;
    EXPECT_FALSE(choices.all.at(0).regretIsBound) << choices.name;
    if (choices.all.size() < 2)
      continue;
    const OpChoices::Choice &other = choices.all[1];
    if (!other.why.empty() && !other.neededBytes)
      continue;
    Plan forced =
        pinned(choices.pinName + "=" +
               strategyText(other.operands, other.results, plan.mesh));
    if (other.neededBytes) {
      EXPECT_GT(forced.bytes, plan.limit) << choices.name;
      EXPECT_GE(forced.bytes, other.neededBytes) << choices.name;
      if (!other.regretIsBound)
        EXPECT_EQ(forced.bytes, other.neededBytes) << choices.name;
      ++large;
      continue;
    }
    if (plan.limit)
      EXPECT_LE(forced.bytes, plan.limit) << choices.name;
    plans.push_back(std::move(forced));
    runnersUp.push_back(&choices);
  }
  // Conversions that a plan shares for nothing are not in lowerBound.
  std::vector<Time> costs;
  if (plan.limit)
    costs = costsInModel(mesh, plans);
  else
    for (const Plan &forced : plans)
      costs.push_back(forced.lowerBound);
  for (size_t i = 0; i < runnersUp.size(); ++i) {
    const OpChoices::Choice &other = runnersUp[i]->all[1];
    Time regret = costs[i + 1] - costs[0];
    EXPECT_GE(regret, other.regret) << runnersUp[i]->name;
    if (!other.regretIsBound)
      EXPECT_EQ(regret, other.regret) << runnersUp[i]->name;
    ++(other.regretIsBound ? bounds : exact);
  }
  EXPECT_EQ(next, plan.choices.size());
  EXPECT_GE(exact + bounds, atLeast);
  if (!plan.limit)
    EXPECT_EQ(bounds + large, 0);
}

void PlanTest::compareWithinBudgets(const std::string &mesh, bool training,
                                    int atLeast) {
  PlanBudget budget;
  budget.training = training;
  budget.parameterBytes = [&](Operation *op, const Layout &layout,
                              const MeshShape &shape) {
    return (training ? 4 : 1) *
           arenaBytes(tensorInfo(op->getResult(0)), layout, shape);
  };
  PlanOptions options;
  options.budget = &budget;
  budget.bytes = INT64_MAX;
  Plan cheapest = choose(mesh, options);
  EXPECT_EQ(cheapest.limit, 0);
  budget.bytes = 1;
  Plan smallest = choose(mesh, options);
  ASSERT_LT(smallest.bytes, cheapest.bytes);
  int known = 0;
  for (int part : {1, 3}) {
    budget.bytes =
        smallest.bytes + (cheapest.bytes - smallest.bytes) * part / 4;
    SCOPED_TRACE(budget.bytes);
    comparePlansWithRunnersUp(mesh, 0, options);
    std::printf("%s, limit %lld of %lld to %lld: %d runners-up, %d by a lower "
                "bound, %d too large\n",
                mesh.c_str(), (long long)budget.bytes,
                (long long)smallest.bytes, (long long)cheapest.bytes, exact,
                bounds, large);
    EXPECT_LE(bounds, exact / 4);
    known += exact;
  }
  EXPECT_GE(known, atLeast);
}

} // namespace mtp::plan
