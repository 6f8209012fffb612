// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Realize.cpp - from layouts to conversions --------------------------===//
#include "compiler/plan/Plan.h"
#include "compiler/plan/Trainable.h"

using namespace mlir;

namespace mtp::plan {

func::FuncOp mainFunction(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || function.isExternal()) {
    module.emitError("the module has no function @main");
    return {};
  }
  if (!llvm::hasSingleElement(function.getBody())) {
    function.emitError("@main is not a straight line of ops");
    return {};
  }
  for (Operation &op : function.getBody().front().without_terminator())
    if (!isa<ShardingOpInterface>(op)) {
      op.emitError() << "has no sharding rule; a plan is made for whole-model "
                        "ops without layouts";
      return {};
    }
  return function;
}

static std::string nameIn(Location loc) {
  std::string name;
  loc->walk([&](Location at) {
    auto named = dyn_cast<NameLoc>(at);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  return name;
}

std::string valueName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    if (auto name = function.getArgAttrOfType<StringAttr>(
            argument.getArgNumber(), kValueName))
      return name.str();
    std::string name = nameIn(argument.getLoc());
    return name.empty() ? "input " + std::to_string(argument.getArgNumber())
                        : name;
  }
  Operation *op = value.getDefiningOp();
  if (op->getNumOperands() == 0)
    if (auto source = op->getAttrOfType<FlatSymbolRefAttr>("source"))
      return source.getValue().str();
  std::string name = nameIn(op->getLoc());
  if (name.empty())
    name = op->getName().stripDialect().str();
  unsigned index = cast<OpResult>(value).getResultNumber();
  return index ? name + ":" + std::to_string(index) : name;
}

TensorInfo tensorInfo(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  TensorInfo info;
  info.shape.assign(type.getShape().begin(), type.getShape().end());
  info.elementBytes = std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
  info.cotangent = info.gradient = false;
  return info;
}

TensorInfo tensorInfo(Value value, const GradientFlow &gradients) {
  TensorInfo info = tensorInfo(value);
  info.cotangent = !gradients.untyped.contains(value);
  info.gradient = gradients.reaches(value);
  return info;
}

/// What training decided, or what it would decide.
static bool isTrained(Operation *op, const SymbolTable &symbols,
                      const llvm::StringMap<Trainability> &trainable) {
  auto parameter = dyn_cast<ParameterOp>(op);
  if (!parameter)
    return false;
  auto initializer = symbols.lookup<InitializerOp>(parameter.getSource());
  if (initializer && initializer->hasAttr(kTrainableReason))
    return initializer.getTrainable();
  return trainable.lookup(parameter.getSource()).trainable;
}

GradientFlow::GradientFlow(func::FuncOp function) {
  auto isFloat = [](Value value) {
    return isa<FloatType>(
        cast<RankedTensorType>(value.getType()).getElementType());
  };
  for (BlockArgument argument : function.getArguments())
    if (!isFloat(argument))
      untyped.insert(argument);
    else if (!function.getArgAttr(argument.getArgNumber(), kWantsGradient))
      unused.insert(argument);
  llvm::StringMap<Trainability> trainable = findTrainable(function);
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  for (Operation &op : function.getBody().front().without_terminator()) {
    bool hasOperands = op.getNumOperands() > 0;
    bool none = op.hasTrait<NoCotangentTrait>() ||
                (hasOperands && llvm::all_of(op.getOperands(), [&](Value v) {
                   return untyped.contains(v);
                 }));
    bool constant = hasOperands
                        ? llvm::none_of(op.getOperands(),
                                        [&](Value v) { return reaches(v); })
                        : !isTrained(&op, symbols, trainable);
    for (Value result : op.getResults())
      if (none || !isFloat(result))
        untyped.insert(result);
      else if (constant)
        unused.insert(result);
  }
}

Layout outputOf(const Layout &layout) {
  Layout result = layout;
  for (auto [axis, state] : llvm::enumerate(layout.states))
    if (state.kind != Kind::S)
      result.setKind(int(axis), Kind::I);
  return result;
}

Layout constantLayout(const ShardingRule &rule, const Layout &required) {
  Layout result = required;
  for (auto [axis, state] : llvm::enumerate(required.states)) {
    if (state.kind == Kind::S &&
        llvm::all_of(rule.results[0][state.dim], [&](int factor) {
          return rule.factors[factor].kind == FactorKind::Parallel;
        }))
      continue;
    if (state.kind == Kind::S) {
      // Whole in this dimension: all axes that cut it come off.
      SmallVector<int> axes(result.dims[state.dim].axes.begin(),
                            result.dims[state.dim].axes.end());
      for (int other : axes)
        result.unshard(other, Kind::I);
    } else {
      result.setKind(int(axis), Kind::I);
    }
  }
  return result;
}

Time computeTime(Operation *op, const Strategy &strategy, bool cotangent,
                 const Conversions &conversions) {
  auto flops = dyn_cast<FlopsOpInterface>(op);
  if (!flops)
    return 0;
  SmallVector<SmallVector<int64_t>> operands, results;
  for (auto [value, layout] :
       llvm::zip_equal(op->getOperands(), strategy.operands))
    operands.push_back(layout.localShape(
        cast<RankedTensorType>(value.getType()).getShape(), conversions.mesh));
  for (auto [value, layout] :
       llvm::zip_equal(op->getResults(), strategy.results))
    results.push_back(layout.localShape(
        cast<RankedTensorType>(value.getType()).getShape(), conversions.mesh));
  Type type =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  FlopKind kind = type.isF64()           ? FlopKind::F64
                  : isa<FloatType>(type) ? FlopKind::F32
                                         : FlopKind::Other;
  Time forward =
      compute(conversions.machine,
              std::max<int64_t>(0, flops.getFlops(operands, results)), kind);
  // The backward has two products of the same size.
  return cotangent ? add(forward, add(forward, forward)) : forward;
}

/// Appends `path` below node `at`, sharing steps that are there already.
static int append(ValueConversions &value, int at, const ConversionPath &path,
                  Time &total) {
  for (const ConversionStep &step : path.steps) {
    int found = -1;
    for (auto [index, node] : llvm::enumerate(value.nodes))
      if (node.parent == at && node.step.name == step.name &&
          node.step.result == step.result)
        found = int(index);
    if (found < 0) {
      found = int(value.nodes.size());
      value.nodes.push_back({at, step});
      total = add(total, add(step.forward.time, step.backward.time));
    }
    at = found;
  }
  return at;
}

bool Realization::convert(ValueConversions &value, const TensorInfo &info,
                          Conversions &conversions, OpOperand *use,
                          const Layout &required,
                          const std::optional<Layout> &copy) {
  auto path = [&](const Layout &from, const Layout &to) {
    return from == to ? ConversionPath()
                      : conversions.pathBetween(info, from, to);
  };
  ConversionPath own = path(value.layout, required);
  if (copy) {
    ConversionPath toCopy = path(value.layout, *copy),
                   fromCopy = path(*copy, required);
    if (toCopy.cost < kIllegal && fromCopy.cost < own.cost) {
      int node = append(value, -1, toCopy, total);
      value.uses[use] = append(value, node, fromCopy, total);
      return true;
    }
  }
  if (own.cost >= kIllegal)
    return false;
  value.uses[use] = append(value, -1, own, total);
  return true;
}

FailureOr<Realization> Realization::of(func::FuncOp function, const Plan &plan,
                                       Conversions &conversions) {
  Realization result;
  GradientFlow gradients(function);
  Block &block = function.getBody().front();
  DenseMap<Operation *, int> position;
  for (Operation &op : block.without_terminator())
    position[&op] = int(position.size());

  auto requiredBy = [&](OpOperand &use, const Layout &have) {
    if (use.getOwner() == block.getTerminator())
      return outputOf(have);
    return plan.ops[position.at(use.getOwner())]
        .operands[use.getOperandNumber()];
  };
  auto fail = [&](Value value, OpOperand &use, const Layout &have,
                  const Layout &want) {
    return use.getOwner()->emitError()
           << "'" << valueName(value) << "' of layout <"
           << have.text(conversions.mesh) << "> cannot become <"
           << want.text(conversions.mesh) << ">";
  };
  auto addValue = [&](Value value, const PlannedOp &planned,
                      unsigned index) -> LogicalResult {
    ValueConversions &mine = result.values[value];
    mine.layout = planned.results[index];
    TensorInfo info = tensorInfo(value, gradients);
    // Uses in program order, so that the tree does not depend on use lists.
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : value.getUses())
      uses.push_back(&use);
    llvm::sort(uses, [&](OpOperand *a, OpOperand *b) {
      auto key = [&](OpOperand *use) {
        auto it = position.find(use->getOwner());
        return std::pair(it == position.end() ? INT_MAX : it->second,
                         use->getOperandNumber());
      };
      return key(a) < key(b);
    });
    for (OpOperand *use : uses) {
      Layout required = requiredBy(*use, mine.layout);
      if (use->getOwner() == block.getTerminator()) {
        if (planned.copies[index] &&
            conversions.cost(info, *planned.copies[index],
                             outputOf(*planned.copies[index])) <
                conversions.cost(info, mine.layout, required))
          required = outputOf(*planned.copies[index]);
        result.outputs[use] = required;
      }
      if (!result.convert(mine, info, conversions, use, required,
                          planned.copies[index]))
        return fail(value, *use, mine.layout, required);
    }
    return success();
  };
  for (auto [argument, planned] :
       llvm::zip_equal(function.getArguments(), plan.arguments))
    if (failed(addValue(argument, planned, 0)))
      return failure();
  for (auto [op, planned] :
       llvm::zip_equal(block.without_terminator(), plan.ops)) {
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (failed(rule))
      return failure();
    if (!isFreeSource(&op, *rule)) {
      for (Value value : op.getResults())
        if (failed(addValue(value, planned,
                            cast<OpResult>(value).getResultNumber())))
          return failure();
      continue;
    }
    Value value = op.getResult(0);
    for (OpOperand &use : value.getUses()) {
      int rank = int(cast<RankedTensorType>(value.getType()).getRank());
      Layout required = requiredBy(use, Layout(conversions.mesh.size(), rank));
      ValueConversions &mine = result.constants[&use];
      mine.layout = constantLayout(*rule, required);
      if (use.getOwner() == block.getTerminator())
        result.outputs[&use] = required;
      if (!result.convert(mine, tensorInfo(value), conversions, &use, required,
                          {}))
        return fail(value, use, mine.layout, required);
    }
  }
  return result;
}

} // namespace mtp::plan
