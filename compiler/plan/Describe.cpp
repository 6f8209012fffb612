// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Describe.cpp - what a plan costs and does --------------------------===//
#include "compiler/autodiff/Differentiate.h"
#include "compiler/plan/Plan.h"
#include "dialects/spmd/SpmdDialect.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mtp::plan {

void forEachConversion(
    func::FuncOp function, const Realization &realization,
    function_ref<void(Value, const ConversionStep &, OpOperand &)> visit) {
  auto visitValue = [&](Value value) {
    const ValueConversions &mine = realization[value];
    // The first use of a node: smallest position of its users.
    std::vector<OpOperand *> first(mine.nodes.size(), nullptr);
    auto before = [](OpOperand *a, OpOperand *b) {
      if (a->getOwner() != b->getOwner())
        return a->getOwner()->isBeforeInBlock(b->getOwner());
      return a->getOperandNumber() < b->getOperandNumber();
    };
    for (auto [use, node] : mine.uses)
      for (int at = node; at >= 0; at = mine.nodes[at].parent)
        if (!first[at] || before(use, first[at]))
          first[at] = use;
    for (auto [node, use] : llvm::zip_equal(mine.nodes, first))
      visit(value, node.step, *use);
  };
  for (BlockArgument argument : function.getArguments())
    visitValue(argument);
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (!isFreeSource(&op, *rule))
      for (Value result : op.getResults())
        visitValue(result);
  }
}

static std::string join(ArrayRef<std::string> words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : ",") + word;
  return text;
}

/// Name of the op that has the operand, or of the output.
static std::string userName(OpOperand &use) {
  if (use.getOwner()->getNumResults() == 0)
    return "output " + std::to_string(use.getOperandNumber());
  return valueName(use.getOwner()->getResult(0));
}

/// What the ranks' parts of a value have to become: "sum".
static StringRef reductionOf(const Layout &layout) {
  for (const AxisState &state : layout.states)
    if (state.kind == Kind::PMax || state.kind == Kind::PMin)
      return state.kind == Kind::PMax ? "maximum" : "minimum";
  return "sum";
}

/// `from`: the layout of the value; `gradient`: its gradient is meant.
static std::string reasonFor(Transfer transfer, bool gradient,
                             const Layout &from, StringRef value,
                             StringRef user, StringRef axis) {
  std::string quoted = ("'" + value + "'").str();
  switch (transfer) {
  case Transfer::AllReduce:
    if (gradient)
      return "the gradient of " + quoted + " is the sum of what the ranks of " +
             axis.str() + " compute";
    return quoted + " is a " + reductionOf(from).str() + " over the ranks of " +
           axis.str();
  case Transfer::AllGather:
    if (gradient)
      return "the gradient of " + quoted + " is needed whole";
    return quoted + " is needed whole by '" + user.str() + "'";
  case Transfer::ReduceScatter:
    return (gradient ? "the gradient of " : "") + quoted +
           " is a sum of which each rank needs a block";
  case Transfer::AllToAll:
    return (gradient ? "the gradient of " : "") + quoted +
           " is split in another dimension by '" + user.str() + "'";
  case Transfer::Permute:
    return quoted + " has its blocks on other ranks for '" + user.str() + "'";
  default:
    return "";
  }
}

static std::string conjugateName(const ConversionStep &step,
                                 const Layout &from) {
  AxisState a = from.states[step.axes[0]], b = step.result.states[step.axes[0]];
  if (step.name == "mtp.permute")
    return "permute";
  StringRef name = conversionName(dual(b.kind), dual(a.kind));
  name.consume_front("mtp.");
  return name.str();
}

/// The layout that `step`, one of the value's conversions, starts from.
static const Layout &layoutBefore(const ValueConversions &value,
                                  const ConversionStep &step) {
  for (const ValueConversions::Node &node : value.nodes)
    if (&node.step == &step)
      return node.parent < 0 ? value.layout
                             : value.nodes[node.parent].step.result;
  llvm_unreachable("the step is one of the value's");
}

static void addCollectives(func::FuncOp function,
                           const Realization &realization,
                           const Conversions &conversions, Plan &plan) {
  DenseMap<Value, Layout> at;
  forEachConversion(
      function, realization,
      [&](Value value, const ConversionStep &step, OpOperand &use) {
        PredictedCollective entry;
        entry.axis = join(conversions.mesh.names(step.axes));
        entry.value = valueName(value);
        entry.node = userName(use);
        llvm::raw_string_ostream(entry.dtype)
            << cast<RankedTensorType>(value.getType()).getElementType();
        const Layout &before = layoutBefore(realization[value], step);
        entry.from = before.text(conversions.mesh);
        entry.to = step.result.text(conversions.mesh);
        auto addDirection = [&](const Traffic &traffic, bool backward) {
          StringRef kind = collectiveName(traffic.transfer);
          if (kind.empty())
            return;
          PredictedCollective mine = entry;
          StringRef name = step.name;
          name.consume_front("mtp.");
          std::string conjugate = conjugateName(step, before);
          mine.op = backward ? conjugate : name.str();
          mine.conjugate = backward ? name.str() : conjugate;
          mine.kind = kind.str();
          mine.phase = backward ? "backward" : "forward";
          mine.bytes = traffic.bytes;
          mine.wireBytes = traffic.wireBytes;
          mine.time = traffic.time;
          mine.reason = reasonFor(traffic.transfer, backward, before,
                                  mine.value, mine.node, mine.axis);
          plan.collectives.push_back(std::move(mine));
        };
        addDirection(step.forward, false);
        addDirection(step.backward, true);
      });
}

/// "column parallel: 2 blocks of [768, 1536]".
static std::string splitText(Value value, const Layout &layout,
                             const MeshShape &mesh) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  int64_t blocks = 1;
  for (auto [axis, state] : llvm::enumerate(layout.states))
    if (state.kind == Kind::S)
      blocks *= mesh.axes[axis].size;
  if (blocks == 1)
    return mesh.ranks() == 1 ? "whole" : "whole on every rank";
  std::string text = "split";
  for (OpOperand &use : value.getUses()) {
    if (shape.size() < 2 || text == "vocabulary parallel")
      break;
    auto sharding = dyn_cast<ShardingOpInterface>(use.getOwner());
    auto rule = sharding ? sharding.getShardingRule()
                         : FailureOr<ShardingRule>(failure());
    for (auto [dim, cut] : llvm::enumerate(layout.dims)) {
      if (cut.axes.empty() || failed(rule) ||
          rule->operands[use.getOperandNumber()][dim].empty())
        continue;
      int factor = rule->operands[use.getOperandNumber()][dim].front();
      bool kept = llvm::any_of(rule->results, [&](const TensorFactors &tensor) {
        return llvm::any_of(tensor, [&](auto &factors) {
          return llvm::is_contained(factors, factor);
        });
      });
      text = rule->factors[factor].indexed ? "vocabulary parallel"
             : kept                        ? "column parallel"
                                           : "row parallel";
    }
  }
  text += ": " + std::to_string(blocks) + " blocks of [";
  for (auto [dim, extent] : llvm::enumerate(layout.localShape(shape, mesh)))
    text += (dim ? ", " : "") + std::to_string(extent);
  return text + "]";
}

/// Says which axes have ranks without work of their own: nothing is split over
/// the axis, or no dimension has as many blocks as it has ranks.
static void noteIdleRanks(func::FuncOp function, Plan &plan) {
  std::vector<AxisGroup> groups = groupsOf(plan.mesh);
  std::vector<int64_t> busy(groups.size(), 1);
  auto look = [&](ValueRange values, ArrayRef<Layout> layouts) {
    for (auto [value, layout] : llvm::zip(values, layouts)) {
      auto shape = cast<RankedTensorType>(value.getType()).getShape();
      auto local = layout.localShape(shape, plan.mesh);
      for (auto [group, most] : llvm::zip_equal(groups, busy))
        for (auto [dim, cut] : llvm::enumerate(layout.dims))
          if (local[dim] > 0 && llvm::any_of(group.parts, [&](int part) {
                return llvm::is_contained(cut.axes, part);
              }))
            most = std::max(most, (shape[dim] + local[dim] - 1) / local[dim]);
    }
  };
  for (auto [argument, planned] :
       llvm::zip_equal(function.getArguments(), plan.arguments))
    look(argument, planned.results);
  for (auto [op, planned] : llvm::zip_equal(
           function.getBody().front().without_terminator(), plan.ops)) {
    look(op.getOperands(), planned.operands);
    look(op.getResults(), planned.results);
  }
  for (auto [group, most] : llvm::zip_equal(groups, busy)) {
    std::string axis =
        "axis " + group.name + " of " + std::to_string(group.size) + ": ";
    if (group.size > 1 && most == 1)
      plan.notes.push_back(axis + "nothing is split over it, its ranks all do "
                                  "the same");
    else if (most < group.size)
      plan.notes.push_back(axis + "no dimension has more than " +
                           std::to_string(most) + " blocks to split over it, " +
                           std::to_string(group.size - most) +
                           " ranks are idle");
  }
}

LogicalResult describe(func::FuncOp function, Plan &plan,
                       Conversions &conversions) {
  auto realization = Realization::of(function, plan, conversions);
  if (failed(realization))
    return failure();
  plan.collectives.clear();
  plan.weights.clear();
  plan.cost = realization->cost();
  plan.allReplicated = 0;
  GradientFlow gradients(function);
  for (auto [op, planned] : llvm::zip_equal(
           function.getBody().front().without_terminator(), plan.ops)) {
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (rule->anyState) {
      if (!isParameter(&op, *rule))
        continue;
      PredictedWeight weight;
      Value value = op.getResult(0);
      auto type = cast<RankedTensorType>(value.getType());
      weight.name = planned.name;
      weight.layout = planned.results[0].text(plan.mesh);
      weight.how = splitText(value, planned.results[0], plan.mesh);
      weight.shape.assign(type.getShape().begin(), type.getShape().end());
      TensorInfo info = tensorInfo(value);
      weight.bytes = type.getNumElements() * info.elementBytes;
      weight.bytesPerRank = info.elementBytes;
      for (int64_t extent :
           planned.results[0].localShape(type.getShape(), plan.mesh))
        weight.bytesPerRank *= extent;
      plan.weights.push_back(std::move(weight));
      continue;
    }
    bool cotangent = llvm::any_of(
        op.getResults(), [&](Value v) { return gradients.reaches(v); });
    Strategy strategy;
    strategy.operands = planned.operands;
    strategy.results = planned.results;
    planned.time = computeTime(&op, strategy, cotangent, conversions);
    plan.cost = add(plan.cost, planned.time);
    auto whole = [&](ValueRange values) {
      SmallVector<Layout, 3> layouts;
      for (Value value : values)
        layouts.push_back(
            Layout(plan.mesh.size(),
                   int(cast<RankedTensorType>(value.getType()).getRank())));
      return layouts;
    };
    strategy.operands = whole(op.getOperands());
    strategy.results = whole(op.getResults());
    plan.allReplicated = add(
        plan.allReplicated, computeTime(&op, strategy, cotangent, conversions));
  }
  addCollectives(function, *realization, conversions, plan);
  noteIdleRanks(function, plan);
  return success();
}

//===----------------------------------------------------------------------===//
// What the typed module is going to move
//===----------------------------------------------------------------------===//

/// The first use of `value` that is no conversion itself; null if there is
/// none.
static OpOperand *firstUse(Value value) {
  OpOperand *first = nullptr;
  for (OpOperand &use : value.getUses()) {
    OpOperand *mine = isa<ConversionOpInterface>(use.getOwner())
                          ? firstUse(use.getOwner()->getResult(0))
                          : &use;
    if (mine &&
        (!first ||
         mine->getOwner()->getBlock() != first->getOwner()->getBlock() ||
         mine->getOwner()->isBeforeInBlock(first->getOwner())))
      first = mine;
  }
  return first;
}

void predictCollectives(ModuleOp module, int64_t micro) {
  Builder builder(module.getContext());
  module.walk([&](ConversionOpInterface op) {
    StringRef kind = collectiveName(op.getTransfer());
    Value input = op->getOperand(0);
    auto type = cast<RankedTensorType>(input.getType());
    MeshOp meshOp = lookupMesh(op, layoutOf(type).getMesh());
    if (kind.empty() || op->hasAttr(spmd::names::predictedBytes) || !meshOp)
      return;
    MeshShape mesh = meshOp.getShape();
    auto layout = toLayout(op, type, mesh);
    if (failed(layout))
      return;
    std::string axes;
    for (Attribute axis : op.getAxes())
      axes += (axes.empty() ? "" : ",") + cast<StringAttr>(axis).str();
    while (auto before = input.getDefiningOp<ConversionOpInterface>())
      input = before->getOperand(0);
    OpOperand *use = firstUse(op->getResult(0));
    auto phase = op->getAttrOfType<StringAttr>(spmd::names::phase);
    bool again = op->hasAttr(autodiff::names::again);
    bool gradient = phase && phase.getValue() == "backward" && !again;
    std::string value = valueName(input),
                user = use ? userName(*use) : std::string();
    auto set = [&](StringRef name, Attribute attr) {
      if (!op->hasAttr(name))
        op->setAttr(name, attr);
    };
    set(spmd::names::node, builder.getStringAttr(value));
    std::string reason =
        reasonFor(op.getTransfer(), gradient, *layout, value, user, axes);
    set(spmd::names::reason,
        builder.getStringAttr(reason + (again ? ", once more" : "")));
    auto function = op->getParentOfType<func::FuncOp>();
    int64_t count = function && function.getName() == "main" ? micro : 1;
    set(spmd::names::predictedCount, builder.getI64IntegerAttr(count));
    set(spmd::names::predictedBytes,
        builder.getI64IntegerAttr(llvm::SaturatingMultiply<uint64_t>(
            count, localBytes(tensorInfo(input), *layout, mesh))));
  });
}

} // namespace mtp::plan
