// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/GraphReport.h"

#include "compiler/cost/Target.h"
#include "compiler/plan/Plan.h"
#include "compiler/training/OpMaker.h"
#include "dialects/spmd/SpmdDialect.h"

using namespace mlir;
using namespace mtp;
using nlohmann::json;

static double microseconds(plan::Time time) {
  return time < plan::kIllegal ? double(time) / 1e6 : 0;
}

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

namespace {
/// One function.
class GraphWriter {
public:
  GraphWriter(func::FuncOp function, const MeshShape &mesh)
      : function(function), conversions(mesh, machineOf(mesh)) {}

  json run() {
    findPhases();
    for (BlockArgument argument : function.getArguments())
      ops.push_back({{"name", plan::valueName(argument)},
                     {"op", "input"},
                     {"phase", "forward"},
                     {"operands", json::array()},
                     {"results", {add(argument)}}});
    mlir::Block &block = function.getBody().front();
    for (auto [position, op] : llvm::enumerate(block.without_terminator()))
      addOp(op, phaseAt(int(position)));
    json outputs = json::array();
    for (OpOperand &output : block.getTerminator()->getOpOperands()) {
      auto name = function.getResultAttrOfType<StringAttr>(
          output.getOperandNumber(), spmd::names::name);
      outputs.push_back(
          {{"name",
            name ? name.str()
                 : "output " + std::to_string(output.getOperandNumber())},
           {"value", numbers.lookup(output.get())}});
    }
    return {{"function", function.getName().str()},
            {"values", std::move(values)},
            {"ops", std::move(ops)},
            {"outputs", std::move(outputs)}};
  }

private:
  static plan::Machine machineOf(const MeshShape &mesh) {
    plan::MeshAxes axes;
    for (const MeshShape::Axis &axis : mesh.axes)
      axes.push_back({axis.name(), axis.size});
    return plan::targetMachine(axes);
  }

  /// A training step is forward up to its loss, then backward, then update;
  /// any other function beside @main is an update.
  void findPhases() {
    mlir::Block &block = function.getBody().front();
    auto ops = block.without_terminator();
    backward = update = int(std::distance(ops.begin(), ops.end()));
    if (function.getName() != "main")
      backward = update = 0;
    Operation *loss = nullptr;
    for (OpOperand &output : block.getTerminator()->getOpOperands())
      if (function.getResultAttr(output.getOperandNumber(),
                                 spmd::names::name) ==
          StringAttr::get(function.getContext(), training::names::loss))
        loss = output.get().getDefiningOp();
    for (auto [position, op] : llvm::enumerate(ops)) {
      auto phase = op.getAttrOfType<StringAttr>(spmd::names::phase);
      bool isUpdate = phase ? phase == "update"
                            : op.getNumResults() &&
                                  plan::valueName(op.getResult(0)) == "update";
      if (&op == loss)
        backward = std::min(backward, int(position) + 1);
      if (phase && phase == "backward")
        backward = std::min(backward, int(position));
      if (isUpdate)
        update = std::min(update, int(position));
    }
    backward = std::min(backward, update);
  }
  const char *phaseAt(int position) const {
    return position < backward ? "forward"
           : position < update ? "backward"
                               : "update";
  }

  Layout layoutOfValue(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    FailureOr<Layout> layout = toLayout(function, type, conversions.mesh);
    return succeeded(layout)
               ? *layout
               : Layout(conversions.mesh.size(), int(type.getRank()));
  }

  int add(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    Layout layout = layoutOfValue(value);
    SmallVector<int64_t> local =
        layout.localShape(type.getShape(), conversions.mesh);
    json states = json::array();
    for (AxisState state : layout.states)
      states.push_back(stateText(state));
    values.push_back(
        {{"name", plan::valueName(value)},
         {"type", textOf(type.getElementType())},
         {"shape", std::vector<int64_t>(type.getShape())},
         {"layout", layout.text(conversions.mesh)},
         {"states", std::move(states)},
         {"local_shape", std::vector<int64_t>(local.begin(), local.end())},
         {"bytes", plan::localBytes(plan::tensorInfo(value), layout,
                                    conversions.mesh)}});
    return numbers[value] = int(values.size()) - 1;
  }

  static std::string stateText(AxisState state) {
    switch (state.kind) {
    case Kind::I:
      return "I";
    case Kind::R:
      return "R";
    case Kind::S:
      return "S(" + std::to_string(state.dim) + ")";
    case Kind::PSum:
      return "P(sum)";
    case Kind::PMax:
      return "P(max)";
    case Kind::PMin:
      return "P(min)";
    }
    llvm_unreachable("no other kind");
  }

  void addOp(Operation &op, const char *phase) {
    json entry = {{"name", op.getNumResults()
                               ? plan::valueName(op.getResult(0))
                               : op.getName().stripDialect().str()},
                  {"op", op.getName().getStringRef().str()},
                  {"phase", phase},
                  {"operands", json::array()},
                  {"results", json::array()}};
    for (Value operand : op.getOperands())
      entry["operands"].push_back(numbers.lookup(operand));
    if (auto conversion = dyn_cast<ConversionOpInterface>(op))
      entry["conversion"] = describe(conversion);
    else if (auto sharding = dyn_cast<ShardingOpInterface>(op))
      describe(op, sharding, entry);
    for (Value result : op.getResults())
      entry["results"].push_back(add(result));
    ops.push_back(std::move(entry));
  }

  void describe(Operation &op, ShardingOpInterface sharding, json &entry) {
    auto rule = sharding.getShardingRule();
    if (failed(rule))
      return;
    if (auto parameter = dyn_cast<ParameterOp>(op))
      entry["parameter"] = parameter.getSource().str();
    else if (op.getNumResults() == 1 && plan::isFreeSource(&op, *rule))
      entry["constant"] = true;
    Strategy strategy;
    for (Value operand : op.getOperands())
      strategy.operands.push_back(layoutOfValue(operand));
    for (Value result : op.getResults())
      strategy.results.push_back(layoutOfValue(result));
    if (op.getNumResults())
      entry["time_us"] = microseconds(
          plan::computeTime(&op, strategy, /*cotangent=*/false, conversions));
  }

  json describe(ConversionOpInterface op) {
    const MeshShape &mesh = conversions.mesh;
    Layout from = layoutOfValue(op->getOperand(0)),
           to = layoutOfValue(op->getResult(0));
    SmallVector<int> axes;
    for (Attribute name : op.getAxes())
      llvm::append_range(axes, mesh.find(cast<StringAttr>(name).getValue()));
    plan::Traffic traffic =
        plan::trafficOf(plan::tensorInfo(op->getOperand(0)), op.getTransfer(),
                        axes, from, to, mesh, conversions.machine);
    std::string names;
    for (const std::string &name : mesh.names(axes))
      names += (names.empty() ? "" : ",") + name;
    StringRef conjugate = op.getConjugateName();
    conjugate.consume_front("mtp.");
    json entry = {{"op", op->getName().stripDialect().str()},
                  {"kind", plan::collectiveName(op.getTransfer()).str()},
                  {"axis", names},
                  {"conjugate", conjugate.str()},
                  {"bytes", traffic.bytes},
                  {"wire_bytes", traffic.wireBytes},
                  {"time_us", microseconds(traffic.time)}};
    if (auto pair = op->getAttrOfType<IntegerAttr>("pair"))
      entry["pair"] = pair.getInt();
    if (auto reason = op->getAttrOfType<StringAttr>(spmd::names::reason))
      entry["reason"] = reason.str();
    return entry;
  }

  func::FuncOp function;
  plan::Conversions conversions;
  int backward = 0, update = 0; ///< positions of the first op of the phase
  DenseMap<Value, int> numbers;
  json values = json::array(), ops = json::array();
};
} // namespace

json mtp::reportGraph(ModuleOp module) {
  json functions = json::array();
  auto meshes = module.getOps<MeshOp>();
  MeshShape mesh = meshes.empty() ? MeshShape() : (*meshes.begin()).getShape();
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal() || !llvm::hasSingleElement(function.getBody()))
      continue;
    json graph = GraphWriter(function, mesh).run();
    if (function.getName() == "main")
      functions.insert(functions.begin(), std::move(graph));
    else
      functions.push_back(std::move(graph));
  }
  return functions;
}
