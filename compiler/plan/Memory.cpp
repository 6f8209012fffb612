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
    // A shared copy stays.
    if (value.uses.size() != 1 && value.variable >= 0)
      for (auto [state, pair] : llvm::enumerate(value.states))
        if (pair.copy >= 0)
          tables.addUnary(value.variable, int(state),
                          pathBytes(value, value.produced[pair.produced],
                                    value.copies[pair.copy]));
    bool keeps = value.uses.size() == 1 ? kept : budget.training;
    addUses(value, [&](const Use &use, int variable, int x, int y, int from) {
      int64_t bytes = pathBytes(value, from, requiredBy(use, y));
      tables.addPair(variable, model.units[use.unit].variable, x, y,
                     keeps ? bytes : 0, keeps ? 0 : bytes);
    });
  }

  DenseMap<Operation *, int> position;
  std::vector<int> products; ///< positions
};

MemoryModel Model::memory(const PlanBudget &budget) {
  return budget.bounds ? memoryBound(budget)
                       : ByteTables(*this, budget).build();
}

} // namespace mtp::plan
