// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Memory.cpp - the bytes of a plan, before there is a program --------===//
#include "compiler/plan/ModelBytes.h"

using namespace mlir;

namespace mtp::plan {

int64_t arenaBytes(const TensorInfo &tensor, const Layout &layout,
                   const MeshShape &mesh) {
  int64_t bytes = localBytes(tensor, layout, mesh);
  return std::min<int64_t>(
      bytes > kMostBytes ? kMostBytes : llvm::alignTo(bytes, kAlignment),
      kMostBytes);
}

/// The tables of a MemoryModel while they grow.
class Model::ByteTables : Bytes {
public:
  ByteTables(Model &model, const PlanBudget &budget) : Bytes(model, budget) {
    for (Operation &op : model.function.getBody().front())
      position[&op] = int(position.size());
  }

  MemoryModel build() {
    findProducts();
    addConstants();
    for (auto [index, unit] : llvm::enumerate(model.units))
      addUnit(unit);
    for (const ValueModel &value : model.values)
      if (value.unit >= 0)
        addValue(value);
    return tables.take();
  }

private:
  /// `bytes` add up if `stays`.
  void addPair(int a, int b, int x, int y, bool stays, int64_t bytes) {
    tables.addPair(a, b, x, y, stays ? bytes : 0, stays ? 0 : bytes);
  }

  void findProducts() {
    for (Operation &op : model.function.getBody().front())
      if (isa<FlopsOpInterface>(op))
        products.push_back(position.lookup(&op));
  }

  /// True if a value is there behind the product that follows it.
  bool stays(const ValueModel &value) const {
    if (budget.training)
      return true;
    Operation *op = value.value.getDefiningOp();
    int last = -1;
    for (const Use &use : value.uses)
      last = std::max(last, position.lookup(use.operand->getOwner()));
    auto next = llvm::upper_bound(products, op ? position.lookup(op) : -1);
    return next != products.end() && *next < last;
  }

  //===--------------------------------------------------------------------===//
  // What there is
  //===--------------------------------------------------------------------===//

  /// Whole: a use may have any layout.
  void addConstants() {
    int64_t bytes = 0;
    for (const ValueModel &value : model.values)
      if (value.unit < 0)
        bytes += wholeBytes(value);
    tables.addFixed(bytes);
  }

  /// Operands, results and their cotangents.
  void addUnit(const Unit &unit) {
    Operation *op = unit.space.op;
    if (!op || unit.space.rule.anyState)
      return;
    for (size_t x = 0; x < unit.space.strategies.size(); ++x) {
      int64_t bytes = 0;
      auto add = [&](Value value, int layout) {
        TensorInfo info = tensorInfo(value, model.gradients);
        int64_t mine = arenaBytes(info, model.layouts[layout], mesh());
        bytes += budget.training && info.gradient ? 2 * mine : mine;
      };
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        add(operand, unit.operandId(int(x), unsigned(i)));
      for (auto [i, result] : llvm::enumerate(op->getResults()))
        add(result, unit.resultId(int(x), unsigned(i)));
      tables.addUnary(unit.variable, int(x), 0, bytes);
    }
  }

  void addValue(const ValueModel &value) {
    const Unit &unit = model.units[value.unit];
    bool isStored = unit.space.op && unit.space.rule.anyState;
    bool kept = !unit.space.op || stays(value);
    for (size_t x = 0; x < value.producedOf.size(); ++x) {
      int layout = value.produced[value.producedOf[x]];
      int64_t bytes = isStored
                          ? budget.parameterBytes(unit.space.op,
                                                  model.layouts[layout], mesh())
                      : kept ? bytesOf(value, layout)
                             : 0;
      tables.addUnary(unit.variable, int(x), bytes);
    }
    if (value.uses.size() == 1)
      addUse(value, value.uses.front(), kept);
    else if (value.variable >= 0)
      addCopies(value);
  }

  void addUse(const ValueModel &value, const Use &use, bool kept) {
    const Unit &unit = model.units[value.unit];
    if (use.unit < 0) {
      for (size_t x = 0; x < value.producedOf.size(); ++x)
        tables.addUnary(
            unit.variable, int(x),
            outputBytes(value, value.produced[value.producedOf[x]]));
      return;
    }
    const Unit &user = model.units[use.unit];
    for (size_t x = 0; x < value.producedOf.size(); ++x)
      for (size_t y = 0; y < user.space.strategies.size(); ++y)
        addPair(unit.variable, user.variable, int(x), int(y), kept,
                pathBytes(value, value.produced[value.producedOf[x]],
                          requiredBy(use, int(y))));
  }

  /// A shared copy stays; each use takes the cheaper of two paths, as the costs
  /// have it.
  void addCopies(const ValueModel &value) {
    for (auto [state, pair] : llvm::enumerate(value.states))
      if (pair.copy >= 0)
        tables.addUnary(value.variable, int(state),
                        pathBytes(value, value.produced[pair.produced],
                                  value.copies[pair.copy]));
    for (const Use &use : value.uses)
      for (auto [state, pair] : llvm::enumerate(value.states)) {
        int from = value.produced[pair.produced];
        int copy = pair.copy < 0 ? from : value.copies[pair.copy];
        if (use.unit < 0) {
          tables.addUnary(
              value.variable, int(state),
              std::max(outputBytes(value, from), outputBytes(value, copy)));
          continue;
        }
        const Unit &user = model.units[use.unit];
        for (size_t y = 0; y < user.space.strategies.size(); ++y) {
          int wanted = requiredBy(use, int(y));
          bool takesCopy = model.pathCost(value, copy, wanted) <
                           model.pathCost(value, from, wanted);
          addPair(value.variable, user.variable, int(state), int(y),
                  budget.training,
                  pathBytes(value, takesCopy ? copy : from, wanted));
        }
      }
  }

  DenseMap<Operation *, int> position;
  std::vector<int> products; ///< positions
};

MemoryModel Model::memory(const PlanBudget &budget) {
  return budget.bounds ? memoryBound(budget)
                       : ByteTables(*this, budget).build();
}

} // namespace mtp::plan
