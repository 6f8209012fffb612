// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Lives.cpp - how long values may be needed, whatever their layouts --===//
#include "compiler/plan/Lives.h"

using namespace mlir;

namespace mtp::plan {

Lives::Lives(func::FuncOp function, const GradientFlow &gradients) {
  computing.push_back(0);
  for (Operation &op : function.getBody().front()) {
    positions[&op] = count();
    ops.push_back(&op);
    computing.push_back(computing.back() + (op.getNumOperands() > 0));
  }
  findEnds();
  findKept(gradients);
  findWaits(gradients);
}

int Lives::begin(Value value) const {
  Operation *op = value.getDefiningOp();
  return op ? of(op) : -1;
}

int Lives::end(Value value) const {
  int last = begin(value);
  for (OpOperand &use : value.getUses())
    last = std::max(last, end(use));
  return last;
}

int Lives::waits(Value value) const {
  auto known = awaited.find(value);
  return known == awaited.end() ? begin(value) : known->second;
}

bool Lives::passesOthers(Value value, int from, int to) const {
  from = std::max(from, 0);
  if (from > to)
    return false;
  int others = computing[to + 1] - computing[from];
  llvm::SmallDenseSet<int, 4> own;
  if (Operation *op = value.getDefiningOp(); op && op->getNumOperands() > 0)
    own.insert(of(op));
  for (Operation *user : value.getUsers())
    own.insert(of(user));
  for (int position : own)
    others -= position >= from && position <= to;
  return others > 0;
}

/// A product, which is never part of a kernel, or the end.
static bool standsAlone(Operation *op) {
  return isa<FlopsOpInterface>(op) || op->hasTrait<OpTrait::IsTerminator>();
}

/// Operands that aren't constants or positions.
static int countValues(Operation *op) {
  return int(llvm::count_if(op->getOperands(), [](Value operand) {
    Operation *source = operand.getDefiningOp();
    if (!source || source->getNumOperands() > 0)
      return true;
    auto rule = cast<ShardingOpInterface>(source).getShardingRule();
    return !isFreeSource(source, *rule);
  }));
}

void Lives::findEnds() {
  latest.resize(ops.size());
  latestCopy.resize(ops.size());
  for (int position = count() - 1; position >= 0; --position) {
    Operation *op = ops[position];
    int first = count(), last = position;
    bool mayJoin = false;
    for (Operation *user : op->getUsers()) {
      mayJoin |= !standsAlone(user);
      first = std::min(first, latest[of(user)]);
      last = std::max(last, latestCopy[of(user)]);
    }
    int mine = position;
    if (!standsAlone(op)) {
      if (mayJoin)
        mine = std::max(mine, first);
    } else if (op->getNumResults() == 1 && op->hasOneUse()) {
      // Bias and activation.
      Operation *bias = *op->user_begin();
      if (!standsAlone(bias)) {
        mine = of(bias);
        if (bias->getNumResults() == 1 && bias->hasOneUse() &&
            !standsAlone(*bias->user_begin()))
          mine = of(*bias->user_begin());
      }
    }
    latest[position] = mine;
    latestCopy[position] = mine;
    if (!standsAlone(op) && countValues(op) <= 1)
      latestCopy[position] = std::max(mine, last);
  }
}

/// The operands that the gradient of `op` may read, as a bit mask, and whether
/// it may read the results.
static std::pair<uint32_t, bool> readByGradient(Operation *op,
                                                const GradientFlow &gradients) {
  if (llvm::none_of(op->getResults(),
                    [&](Value v) { return gradients.reaches(v); }))
    return {0, false};
  auto rule = cast<ShardingOpInterface>(op).getShardingRule();
  uint32_t wanted = 0, linear = 0, unread = 0;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (gradients.reaches(operand))
      wanted |= 1u << index;
  for (uint32_t set : rule->linear) {
    linear |= set;
    if ((wanted & ~set) == 0)
      unread |= set;
  }
  return {~unread, (wanted & ~linear) != 0};
}

void Lives::findKept(const GradientFlow &gradients) {
  for (Operation *op : llvm::reverse(ops)) {
    if (op->hasTrait<OpTrait::IsTerminator>() || op->getNumOperands() == 0)
      continue;
    auto [operands, results] = readByGradient(op, gradients);
    if (results)
      kept.insert_range(op->getResults());
    bool isRepeated =
        !standsAlone(op) && countValues(op) <= 1 &&
        llvm::any_of(op->getResults(), [&](Value v) { return isKept(v); });
    for (OpOperand &use : op->getOpOperands())
      if (isRepeated || operands >> use.getOperandNumber() & 1) {
        keptUses.insert(&use);
        kept.insert(use.get());
      }
  }
}

void Lives::findWaits(const GradientFlow &gradients) {
  for (int position = 0; position < count(); ++position) {
    Operation *op = ops[position];
    if (op->getNumOperands() == 0)
      continue;
    int first = -1, last = position;
    Value blocked;
    if (!standsAlone(op))
      for (Value operand : op->getOperands()) {
        if (!gradients.reaches(operand))
          continue;
        // A parameter's gradient is computed at once.
        auto known = summed.find(operand);
        if (known == summed.end()) {
          first = position;
          continue;
        }
        first = std::max(first, known->second);
        // What copies of an op read waits as long as what they give.
        int read = countValues(op) <= 1
                       ? std::min(known->second, awaited.lookup(operand))
                       : known->second;
        if (read < last) {
          last = read;
          blocked = operand;
        }
      }
    for (Value result : op->getResults()) {
      summed[result] = first < 0 ? position : first;
      awaited[result] = last;
      blocking[result] = blocked;
    }
  }
}

} // namespace mtp::plan
