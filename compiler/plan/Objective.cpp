// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Objective.cpp - what the parallel objective asks besides time -----===//
//
// Weights are stored split; with sequence parallelism activations are, too.
// What goes against that costs a penalty, so that it is done only where there
// is no other way.
//
//===----------------------------------------------------------------------===//
#include "compiler/plan/Model.h"

using namespace mlir;

namespace mtp::plan {

/// Weights: trainable parameters of rank >= 2 of at least a thousandth of the
/// largest.
void Model::findWeights() {
  if (objective == Objective::Time)
    return;
  auto elements = [](const ValueModel &value) {
    return cast<RankedTensorType>(value.value.getType()).getNumElements();
  };
  auto isCandidate = [&](const ValueModel &value) {
    auto parameter = value.value.getDefiningOp<ParameterOp>();
    return value.unit >= 0 && units[value.unit].space.op &&
           units[value.unit].space.rule.anyState &&
           value.info.shape.size() >= 2 && value.info.cotangent && parameter &&
           trained.contains(parameter.getSource());
  };
  int64_t largest = 0;
  for (const ValueModel &value : values)
    if (isCandidate(value))
      largest = std::max(largest, elements(value));
  for (ValueModel &value : values)
    value.isWeight =
        isCandidate(value) && elements(value) >= (largest + 999) / 1000;
}

/// A weight is read as it is stored on every axis but dp. Logits whose classes
/// are cut are neither gathered nor reduced: their loss is computed on the
/// blocks.
Time Model::usePenalty(const ValueModel &value, const Layout &stored,
                       const Layout &read) const {
  if (value.holdsClasses) {
    int classes = int(value.info.shape.size()) - 1;
    for (const AxisGroup &group : space.axisGroups())
      for (int part : group.parts) {
        AxisState have = stored.states[part], want = read.states[part];
        bool moves = have.kind == Kind::PSum ||
                     (have.kind == Kind::S && have.dim == classes);
        if (!group.isData && moves && !(have == want) &&
            !(want.kind == Kind::S && want.dim == classes))
          return kPenalty;
      }
  }
  if (!value.isWeight)
    return 0;
  for (const AxisGroup &group : space.axisGroups())
    for (int part : group.parts)
      if (!group.isData && !(stored.states[part] == read.states[part]) &&
          (stored.states[part].kind == Kind::S ||
           read.states[part].kind == Kind::S))
        return kPenalty;
  return 0;
}

/// A weight is stored split on every axis but dp; a table that is looked up by
/// index along the indexed dimension.
Time Model::storagePenalty(const ValueModel &value,
                           const Layout &stored) const {
  if (!value.isWeight)
    return 0;
  int indexed = -1;
  for (const Use &use : value.uses) {
    if (use.unit < 0)
      continue;
    const ShardingRule &rule = units[use.unit].space.rule;
    for (auto [dim, factors] :
         llvm::enumerate(rule.operands[use.operand->getOperandNumber()]))
      if (factors.size() == 1 && rule.factors[factors[0]].indexed &&
          rule.factors[factors[0]].kind == FactorKind::Parallel)
        indexed = int(dim);
  }
  Time penalty = 0;
  for (const AxisGroup &group : space.axisGroups()) {
    if (group.isData || group.size == 1)
      continue;
    bool split = llvm::any_of(group.parts, [&](int part) {
      return stored.states[part].kind == Kind::S &&
             (indexed < 0 || stored.states[part].dim == indexed);
    });
    penalty = add(penalty, split ? 0 : kPenalty);
  }
  return penalty;
}

/// Activations have features besides tokens.
bool Model::hasFeatures(Value value) const {
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (extent > 1 && !(space.valueRoles().of(value, dim) & (kBatch | kToken)))
      return true;
  return false;
}

/// Where an op could cut the tokens of activations, it does not compute all of
/// them on every rank of an axis. Partial sums are whole, too, but adding two
/// before one reduce_scatter is right: among equals blocks are taken.
void Model::addSequencePenalties(Operation *op, const Unit &unit) {
  if (llvm::none_of(op->getResults(),
                    [&](Value result) { return hasFeatures(result); }))
    return;
  SmallVector<uint8_t, 6> role =
      space.valueRoles().ofFactors(op, unit.space.rule);
  for (const AxisGroup &group : space.axisGroups()) {
    if (group.isData || group.size == 1)
      continue;
    auto cutsTokens = [&](const Strategy &strategy) {
      AxisCase c = strategy.cases[group.parts[0]];
      return c.row == AxisCase::Row::Sharded && (role[c.index] & kToken);
    };
    if (llvm::none_of(unit.space.strategies, cutsTokens))
      continue;
    for (auto [index, strategy] : llvm::enumerate(unit.space.strategies)) {
      auto isOn = [&](AxisCase::Row row) {
        return llvm::all_of(group.parts, [&](int part) {
          return strategy.cases[part].row == row;
        });
      };
      if (isOn(AxisCase::Row::Invariant) || isOn(AxisCase::Row::Replicated))
        addUnary(unit.variable, int(index), kSequencePenalty);
      else if (isOn(AxisCase::Row::Linear))
        addUnary(unit.variable, int(index), kPartialPenalty);
    }
  }
}

} // namespace mtp::plan
