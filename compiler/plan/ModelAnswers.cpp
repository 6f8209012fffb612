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

std::optional<std::vector<int>> Model::encode(const Plan &plan) const {
  std::vector<int> assignment(tables.variables.size(), -1);
  func::FuncOp main = function;
  auto take = [&](int index, const PlannedOp &planned) {
    const Unit &unit = units[index];
    auto it =
        llvm::find_if(unit.space.strategies, [&](const Strategy &strategy) {
          return strategy.operands == planned.operands &&
                 strategy.results == planned.results;
        });
    if (it != unit.space.strategies.end())
      assignment[unit.variable] = int(it - unit.space.strategies.begin());
  };
  auto takeCopy = [&](Value value, const Layout &layout,
                      const std::optional<Layout> &copy) {
    const ValueModel &model = values[modelOf.lookup(value)];
    auto has = [&](const ValueModel::State &state) {
      return layouts[model.produced[state.produced]] == layout &&
             (state.copy < 0
                  ? !copy
                  : copy && layouts[model.copies[state.copy]] == *copy);
    };
    if (model.variable >= 0)
      if (auto it = llvm::find_if(model.states, has); it != model.states.end())
        assignment[model.variable] = int(it - model.states.begin());
  };
  for (auto [argument, planned] :
       llvm::zip_equal(main.getArguments(), plan.arguments)) {
    take(unitOfInput.lookup(argument), planned);
    takeCopy(argument, planned.results[0], planned.copies[0]);
  }
  for (auto [op, planned] :
       llvm::zip_equal(main.getBody().front().without_terminator(), plan.ops))
    if (auto it = unitOfOp.find(&op); it != unitOfOp.end()) {
      take(it->second, planned);
      for (auto [result, layout, copy] :
           llvm::zip_equal(op.getResults(), planned.results, planned.copies))
        takeCopy(result, layout, copy);
    }
  if (llvm::is_contained(assignment, -1))
    return std::nullopt;
  return assignment;
}

const Model::Unit *Model::unitOf(Operation *op) const {
  auto it = unitOfOp.find(op);
  return it == unitOfOp.end() ? nullptr : &units[it->second];
}

static unsigned resultNumber(Value value) {
  return isa<OpResult>(value) ? cast<OpResult>(value).getResultNumber() : 0;
}

static void addAlternative(std::vector<Model::Alternative> &all,
                           const Layout &layout, const Marginal &marginal) {
  for (Model::Alternative &known : all)
    if (known.layout == layout) {
      if (marginal.isBefore(known.marginal))
        known.marginal = marginal;
      return;
    }
  all.push_back({layout, marginal});
}

std::vector<Model::Alternative>
Model::alternatives(Value value, const Marginals &marginals) const {
  std::vector<Alternative> all;
  int index = unitOf(value);
  if (index < 0)
    return all;
  for (auto [marginal, strategy] : llvm::zip_equal(
           marginals[units[index].variable], units[index].space.strategies))
    addAlternative(all, strategy.results[resultNumber(value)], marginal);
  return all;
}

std::vector<Model::Alternative>
Model::alternatives(OpOperand &operand, const Marginals &marginals) const {
  std::vector<Alternative> all;
  const Unit *unit = unitOf(operand.getOwner());
  if (!unit)
    return all;
  for (auto [marginal, strategy] :
       llvm::zip_equal(marginals[unit->variable], unit->space.strategies))
    addAlternative(all, strategy.operands[operand.getOperandNumber()],
                   marginal);
  return all;
}

std::vector<std::pair<const Strategy *, Marginal>>
Model::strategies(Operation *op, const Marginals &marginals) const {
  std::vector<std::pair<const Strategy *, Marginal>> all;
  if (const Unit *unit = unitOf(op))
    for (auto [marginal, strategy] :
         llvm::zip_equal(marginals[unit->variable], unit->space.strategies))
      all.push_back({&strategy, marginal});
  return all;
}

/// The strategies for which `fits` holds.
static Question questionOf(int variable, ArrayRef<Strategy> strategies,
                           function_ref<bool(const Strategy &)> fits) {
  Question question{variable, {}};
  for (const Strategy &strategy : strategies)
    question.among.push_back(fits(strategy));
  return question;
}

std::optional<Question> Model::question(Value value, Fits fits) const {
  int index = unitOf(value);
  if (index < 0)
    return std::nullopt;
  const Unit &unit = units[index];
  return questionOf(unit.variable, unit.space.strategies,
                    [&](const Strategy &strategy) {
                      return fits(strategy.results[resultNumber(value)]);
                    });
}

std::optional<Question> Model::question(OpOperand &operand, Fits fits) const {
  const Unit *unit = unitOf(operand.getOwner());
  if (!unit)
    return std::nullopt;
  return questionOf(
      unit->variable, unit->space.strategies, [&](const Strategy &strategy) {
        return fits(strategy.operands[operand.getOperandNumber()]);
      });
}

std::optional<Question> Model::question(Operation *op,
                                        const PlannedOp &planned) const {
  const Unit *unit = unitOf(op);
  if (!unit)
    return std::nullopt;
  return questionOf(unit->variable, unit->space.strategies,
                    [&](const Strategy &strategy) {
                      return strategy.operands != planned.operands ||
                             strategy.results != planned.results;
                    });
}

} // namespace mtp::plan
