// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanFixture.h"

#include <map>

using namespace mlir;

namespace mtp::plan {
namespace {

/// Writes a module as text.
class GptWriter {
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
  struct Value {
    std::string name;
    std::vector<int> shape;
    std::string element = "f32";
  };

  static std::string type(const Value &value) {
    std::string text = "tensor<";
    for (int extent : value.shape)
      text += std::to_string(extent) + "x";
    return text + value.element + ">";
  }
  std::vector<int> hidden(int last) { return {o.batch, o.sequence, last}; }

  Value parameter(const std::string &name, std::vector<int> shape) {
    Value value{"%" + name, std::move(shape)};
    if (known.insert(name).second) {
      int64_t bytes = 4;
      for (int extent : value.shape)
        bytes *= extent;
      initializers +=
          "mtp.initializer @" + name + " : " + type(value) +
          " {file = \"m\", offset = 0 : i64, bytes = " + std::to_string(bytes) +
          " : i64, parameter}\n";
      body +=
          value.name + " = mtp.parameter @" + name + " : " + type(value) + "\n";
    }
    return value;
  }

  Value op(const std::string &kind, const std::vector<Value> &operands,
           std::vector<int> shape, const std::string &attributes = "") {
    Value result{"%v" + std::to_string(next++), std::move(shape)};
    std::string names, types;
    for (const Value &operand : operands) {
      names += (names.empty() ? " " : ", ") + operand.name;
      types += (types.empty() ? "" : ", ") + type(operand);
    }
    body += result.name + " = mtp." + kind + names + attributes + " : (" +
            types + ") -> " + type(result) + " loc(\"" + kind +
            std::to_string(next) + "\")\n";
    return result;
  }

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
  std::string initializers, body;
  std::set<std::string> known;
  int next = 0;
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

Problem PlanTest::problemOf(const std::string &mesh, Objective objective,
                            Freedom freedom) {
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
  return model.problem();
}

void PlanTest::forEachAlternative(
    const std::string &mesh,
    function_ref<void(const std::string &, const Layout &, Time,
                      const MeshShape &)>
        visit) {
  func::FuncOp function = mainFunction(*module);
  Roles roles(function);
  MeshShape shape = refineMesh(function, roles, axesOf(mesh));
  std::vector<std::pair<std::string, int64_t>> links;
  for (const MeshShape::Axis &axis : shape.axes)
    links.push_back({axis.name(), axis.size});
  Conversions conversions(shape, Machine::cpuThreads(links));
  Space space(function, roles, shape, Freedom::Roles);
  Model model(function, space, conversions, Objective::Parallel);
  model.build();
  Solver solver(model.problem());
  ASSERT_TRUE(solver.solve());
  auto marginals = solver.minMarginals();
  std::map<std::string, int> names;
  std::vector<mlir::Value> values(function.getArguments().begin(),
                                  function.getArguments().end());
  for (Operation &op : function.getBody().front().without_terminator())
    values.insert(values.end(), op.result_begin(), op.result_end());
  for (mlir::Value value : values)
    ++names[valueName(value)];
  for (mlir::Value value : values)
    if (names[valueName(value)] == 1)
      for (const Model::Alternative &alternative :
           model.alternatives(value, marginals))
        if (alternative.total < kIllegal)
          visit(valueName(value), alternative.layout, alternative.total, shape);
}

/// What fixes an op or a parameter to the choice, as attribute `mtp.plan`.
static DictionaryAttr annotation(Builder builder,
                                 const OpChoices::Choice &choice,
                                 const MeshShape &mesh) {
  auto texts = [&](ArrayRef<Layout> layouts) {
    SmallVector<Attribute> list;
    for (const Layout &layout : layouts)
      list.push_back(builder.getStringAttr(layout.text(mesh)));
    return builder.getArrayAttr(list);
  };
  SmallVector<NamedAttribute> entries;
  if (!choice.operands.empty())
    entries.push_back(builder.getNamedAttr("operands", texts(choice.operands)));
  entries.push_back(builder.getNamedAttr("results", texts(choice.results)));
  return builder.getDictionaryAttr(entries);
}

void PlanTest::comparePlansWithRunnersUp(const std::string &mesh, int atLeast) {
  PlanOptions options;
  options.explain = true;
  Plan plan = choose(mesh, options);
  auto function = mainFunction(*module);
  size_t next = function.getNumArguments();
  int compared = 0;
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (isFreeSource(&op, *rule))
      continue;
    const OpChoices &choices = plan.choices.at(next++);
    ASSERT_EQ(choices.name, valueName(op.getResult(0)));
    EXPECT_EQ(choices.all.at(0).regret, 0) << choices.name;
    if (choices.all.size() < 2 || !choices.all[1].why.empty())
      continue;
    op.setAttr("mtp.plan",
               annotation(Builder(&context), choices.all[1], plan.mesh));
    Plan forced = choose(mesh);
    op.removeAttr("mtp.plan");
    EXPECT_EQ(forced.lowerBound - plan.lowerBound, choices.all[1].regret)
        << choices.name;
    ++compared;
  }
  EXPECT_EQ(next, plan.choices.size());
  EXPECT_GE(compared, atLeast);
}

} // namespace mtp::plan
