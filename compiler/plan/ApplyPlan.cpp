// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ApplyPlan.cpp - from a plan to a typed module ----------------------===//
#include "compiler/cost/Target.h"
#include "compiler/plan/Pins.h"

using namespace mlir;

namespace mtp::plan {
namespace {

/// Types @main as the plan says. A conversion stands right before the first op
/// that needs it; later ops read the same one.
class Applier {
public:
  Applier(func::FuncOp function, const Plan &plan,
          const Realization &realization)
      : function(function), plan(plan), realization(realization),
        builder(function.getContext()) {}

  void run() {
    Block &block = function.getBody().front();
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    SmallVector<Operation *> constants;
    for (BlockArgument argument : block.getArguments())
      setLayout(argument, realization[argument].layout);
    for (Operation *op : ops) {
      for (OpOperand &use : op->getOpOperands())
        rewire(use);
      if (op == block.getTerminator())
        continue;
      auto rule = cast<ShardingOpInterface>(op).getShardingRule();
      if (isFreeSource(op, *rule)) {
        constants.push_back(op);
        continue;
      }
      for (Value result : op->getResults())
        setLayout(result, realization[result].layout);
    }
    for (Operation *op : constants)
      op->erase(); // every use has its own by now
    function.setFunctionType(
        FunctionType::get(function.getContext(), block.getArgumentTypes(),
                          block.getTerminator()->getOperandTypes()));
  }

private:
  void setLayout(Value value, const Layout &layout) {
    value.setType(withLayout(cast<RankedTensorType>(value.getType()),
                             toAttr(function.getContext(), layout, plan.mesh)));
  }

  void rewire(OpOperand &use) {
    Value value = use.get();
    Operation *source = value.getDefiningOp();
    builder.setInsertionPoint(use.getOwner());
    if (source && source->getNumOperands() == 0) {
      auto rule = cast<ShardingOpInterface>(source).getShardingRule();
      if (isFreeSource(source, *rule)) {
        const ValueConversions &mine = realization.constantUse(use);
        Value produced = constantOf(source, mine.layout);
        use.set(convert(mine, produced, mine.uses.at(&use)));
        return;
      }
    }
    const ValueConversions &mine = realization[value];
    use.set(convert(mine, value, mine.uses.at(&use)));
  }

  /// The constant in `layout`; the same layout is produced once.
  Value constantOf(Operation *source, const Layout &layout) {
    auto type =
        withLayout(cast<RankedTensorType>(source->getResult(0).getType()),
                   toAttr(function.getContext(), layout, plan.mesh));
    Value &known = produced[{source, type}];
    if (!known) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(source);
      Operation *copy = builder.clone(*source);
      copy->getResult(0).setType(type);
      known = copy->getResult(0);
    }
    return known;
  }

  /// The value after the conversions down to `node`.
  Value convert(const ValueConversions &mine, Value value, int node) {
    if (node < 0)
      return value;
    std::pair<const void *, Value> key(&mine.nodes[node], value);
    if (Value known = converted.lookup(key))
      return known;
    Value before = convert(mine, value, mine.nodes[node].parent);
    const ConversionStep &step = mine.nodes[node].step;
    return converted[key] =
               createConversion(builder, value.getLoc(), step.name, before,
                                step.axes, step.result, plan.mesh);
  }

  func::FuncOp function;
  const Plan &plan;
  const Realization &realization;
  OpBuilder builder;
  DenseMap<std::pair<Operation *, Type>, Value> produced;
  DenseMap<std::pair<const void *, Value>, Value> converted;
};

} // namespace

/// Replaces the module's mesh by the plan's.
static void setMesh(ModuleOp module, const Plan &plan) {
  if (Operation *old = module.lookupSymbol(plan.mesh.symbol))
    old->erase();
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  SmallVector<Attribute> names, factors;
  for (const AxisGroup &group : groupsOf(plan.mesh)) {
    names.push_back(builder.getStringAttr(group.name));
    SmallVector<int64_t> sizes;
    for (int part : group.parts)
      sizes.push_back(plan.mesh.axes[part].size);
    factors.push_back(builder.getDenseI64ArrayAttr(sizes));
  }
  MeshOp::create(builder, module.getLoc(), plan.mesh.symbol,
                 builder.getArrayAttr(names), builder.getArrayAttr(factors));
}

LogicalResult applyPlan(ModuleOp module, const Plan &plan) {
  func::FuncOp function = mainFunction(module);
  if (!function)
    return failure();
  std::vector<std::pair<std::string, int64_t>> links;
  for (const MeshShape::Axis &axis : plan.mesh.axes)
    links.push_back({axis.name(), axis.size});
  Conversions conversions(plan.mesh, targetMachine(links));
  auto realization = Realization::of(function, plan, conversions);
  if (failed(realization))
    return failure();
  removeAnnotations(module);
  setMesh(module, plan);
  Applier(function, plan, *realization).run();
  return success();
}

} // namespace mtp::plan
