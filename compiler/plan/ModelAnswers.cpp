// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ModelAnswers.cpp - what a solution means for the graph -------------===//
#include "compiler/plan/Model.h"

using namespace mlir;

namespace mtp::plan {

Plan Model::decode(ArrayRef<int> assignment) const {
  Plan plan;
  plan.mesh = space.meshShape();
  auto strategyOf = [&](int unit) -> const Strategy & {
    return units[unit].space.strategies[assignment[units[unit].variable]];
  };
  auto copyOf = [&](Value value) -> std::optional<Layout> {
    const ValueModel &model = values[modelOf.lookup(value)];
    if (model.variable < 0)
      return std::nullopt;
    int copy = model.states[assignment[model.variable]].copy;
    return copy < 0 ? std::nullopt : std::optional(layouts[model.copies[copy]]);
  };
  func::FuncOp main = function;
  for (BlockArgument argument : main.getArguments()) {
    PlannedOp planned;
    planned.name = valueName(argument);
    planned.kind = "input";
    planned.results = strategyOf(unitOfInput.lookup(argument)).results;
    planned.copies.push_back(copyOf(argument));
    plan.arguments.push_back(std::move(planned));
  }
  for (Operation &op : main.getBody().front().without_terminator()) {
    PlannedOp planned;
    planned.name = valueName(op.getResult(0));
    planned.kind = op.getName().getStringRef().str();
    auto it = unitOfOp.find(&op);
    if (it != unitOfOp.end()) {
      planned.operands = strategyOf(it->second).operands;
      planned.results = strategyOf(it->second).results;
      for (Value result : op.getResults())
        planned.copies.push_back(copyOf(result));
    }
    plan.ops.push_back(std::move(planned));
  }
  return plan;
}

static void addAlternative(std::vector<Model::Alternative> &all,
                           const Layout &layout, Time total) {
  for (Model::Alternative &known : all)
    if (known.layout == layout) {
      known.total = std::min(known.total, total);
      return;
    }
  all.push_back({layout, total});
}

std::vector<Model::Alternative>
Model::alternatives(Value value,
                    const std::vector<std::vector<Time>> &marginals) const {
  std::vector<Alternative> all;
  int index = unitOf(value);
  if (index < 0)
    return all;
  unsigned result =
      isa<OpResult>(value) ? cast<OpResult>(value).getResultNumber() : 0;
  for (auto [total, strategy] : llvm::zip_equal(
           marginals[units[index].variable], units[index].space.strategies))
    addAlternative(all, strategy.results[result], total);
  return all;
}

std::vector<std::pair<const Strategy *, Time>>
Model::strategies(Operation *op,
                  const std::vector<std::vector<Time>> &marginals) const {
  std::vector<std::pair<const Strategy *, Time>> all;
  auto it = unitOfOp.find(op);
  if (it == unitOfOp.end())
    return all;
  const Unit &unit = units[it->second];
  for (auto [total, strategy] :
       llvm::zip_equal(marginals[unit.variable], unit.space.strategies))
    all.push_back({&strategy, total});
  return all;
}

std::vector<Model::Alternative>
Model::alternatives(OpOperand &operand,
                    const std::vector<std::vector<Time>> &marginals) const {
  std::vector<Alternative> all;
  auto it = unitOfOp.find(operand.getOwner());
  if (it == unitOfOp.end())
    return all;
  const Unit &unit = units[it->second];
  for (auto [total, strategy] :
       llvm::zip_equal(marginals[unit.variable], unit.space.strategies))
    addAlternative(all, strategy.operands[operand.getOperandNumber()], total);
  return all;
}

} // namespace mtp::plan
