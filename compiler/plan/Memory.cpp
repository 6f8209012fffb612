// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Memory.cpp - the bytes of a plan, before there is a program --------===//
#include "compiler/plan/Memory.h"
#include "compiler/plan/Model.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mtp::plan {

/// As Arena.h has it.
static constexpr int64_t kAlignment = 64;
/// Sums over a model stay below what the solver takes.
static constexpr int64_t kMostBytes = int64_t(1) << 44;

int64_t arenaBytes(const TensorInfo &tensor, const Layout &layout,
                   const MeshShape &mesh) {
  int64_t bytes = localBytes(tensor, layout, mesh);
  return std::min<int64_t>(
      bytes > kMostBytes ? kMostBytes : llvm::alignTo(bytes, kAlignment),
      kMostBytes);
}

/// A conversion between invariant and replicated is a name for the same bytes.
static bool isSameBuffer(const Layout &a, const Layout &b) {
  auto isWhole = [](AxisState state) {
    return state.kind == Kind::I || state.kind == Kind::R;
  };
  return llvm::all_of(llvm::zip_equal(a.states, b.states), [&](auto pair) {
    auto [from, to] = pair;
    return from == to || (isWhole(from) && isWhole(to));
  });
}

/// The tables of a MemoryModel while they grow.
class Model::ByteTables {
public:
  ByteTables(Model &model, const PlanBudget &budget)
      : model(model), budget(budget) {
    memory.variables.resize(model.tables.variables.size());
    memory.pairs.resize(model.tables.pairs.size());
    for (auto [index, pair] : llvm::enumerate(model.tables.pairs))
      pairIndex[{pair.a, pair.b}] = int(index);
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
    return std::move(memory);
  }

private:
  //===--------------------------------------------------------------------===//
  // Tables
  //===--------------------------------------------------------------------===//

  void addTo(Footprint &footprint, size_t size, size_t at, int64_t bytes,
             int64_t transient) {
    if (bytes) {
      footprint.bytes.resize(size);
      footprint.bytes[at] += bytes;
    }
    if (transient) {
      footprint.transient.resize(size);
      footprint.transient[at] = std::max(footprint.transient[at], transient);
    }
  }

  void addUnary(int variable, int strategy, int64_t bytes,
                int64_t transient = 0) {
    addTo(memory.variables[variable],
          model.tables.variables[variable].unary.size(), size_t(strategy),
          bytes, transient);
  }

  /// `bytes` add up if `stays`.
  void addPair(int a, int b, int x, int y, bool stays, int64_t bytes) {
    if (!bytes)
      return;
    if (a == b) {
      if (x == y)
        addUnary(a, x, stays ? bytes : 0, stays ? 0 : bytes);
      return;
    }
    if (a > b) {
      std::swap(a, b);
      std::swap(x, y);
    }
    size_t columns = model.tables.variables[b].unary.size();
    size_t size = columns * model.tables.variables[a].unary.size();
    addTo(memory.pairs[pairIndex.at({a, b})], size,
          size_t(x) * columns + size_t(y), stays ? bytes : 0,
          stays ? 0 : bytes);
  }

  //===--------------------------------------------------------------------===//
  // Bytes
  //===--------------------------------------------------------------------===//

  int64_t bytesOf(const ValueModel &value, int layout) {
    return arenaBytes(value.info, model.layouts[layout],
                      model.space.meshShape());
  }

  /// What the conversions of a path write.
  int64_t pathBytes(const ValueModel &value, int from, int to) {
    if (from == to)
      return 0;
    auto [known, isNew] = paths.try_emplace({value.infoId, from, to}, 0);
    if (!isNew)
      return known->second;
    int64_t bytes = 0;
    Layout before = model.layouts[from];
    for (const ConversionStep &step :
         model.conversions
             .pathBetween(value.info, model.layouts[from], model.layouts[to])
             .steps) {
      if (!isSameBuffer(before, step.result))
        bytes += arenaBytes(value.info, step.result, model.space.meshShape());
      before = step.result;
    }
    return paths[{value.infoId, from, to}] = std::min(bytes, kMostBytes);
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
        bytes += arenaBytes(value.info,
                            Layout(model.space.meshShape().size(),
                                   int(value.info.shape.size())),
                            model.space.meshShape());
    if (!model.tables.variables.empty())
      for (size_t x = 0; x < model.tables.variables[0].unary.size(); ++x)
        addUnary(0, int(x), bytes);
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
        int64_t mine =
            arenaBytes(info, model.layouts[layout], model.space.meshShape());
        bytes += budget.training && info.gradient ? 2 * mine : mine;
      };
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        add(operand, unit.operandId(int(x), unsigned(i)));
      for (auto [i, result] : llvm::enumerate(op->getResults()))
        add(result, unit.resultId(int(x), unsigned(i)));
      addUnary(unit.variable, int(x), 0, bytes);
    }
  }

  void addValue(const ValueModel &value) {
    const Unit &unit = model.units[value.unit];
    bool isStored = unit.space.op && unit.space.rule.anyState;
    bool kept = !unit.space.op || stays(value);
    for (size_t x = 0; x < value.producedOf.size(); ++x) {
      int layout = value.produced[value.producedOf[x]];
      int64_t bytes =
          isStored ? budget.parameterBytes(unit.space.op, model.layouts[layout],
                                           model.space.meshShape())
          : kept   ? bytesOf(value, layout)
                   : 0;
      addUnary(unit.variable, int(x), bytes);
    }
    if (value.uses.size() == 1)
      addUse(value, value.uses.front(), kept);
    else if (value.variable >= 0)
      addCopies(value);
  }

  int requiredBy(const Use &use, int strategy) const {
    return model.units[use.unit].operandId(strategy,
                                           use.operand->getOperandNumber());
  }

  int64_t outputBytes(const ValueModel &value, int layout) {
    int output = model.intern(outputOf(model.layouts[layout]));
    return bytesOf(value, output) + pathBytes(value, layout, output);
  }

  void addUse(const ValueModel &value, const Use &use, bool kept) {
    const Unit &unit = model.units[value.unit];
    if (use.unit < 0) {
      for (size_t x = 0; x < value.producedOf.size(); ++x)
        addUnary(unit.variable, int(x),
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
        addUnary(value.variable, int(state),
                 pathBytes(value, value.produced[pair.produced],
                           value.copies[pair.copy]));
    for (const Use &use : value.uses)
      for (auto [state, pair] : llvm::enumerate(value.states)) {
        int from = value.produced[pair.produced];
        int copy = pair.copy < 0 ? from : value.copies[pair.copy];
        if (use.unit < 0) {
          addUnary(
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

  Model &model;
  const PlanBudget &budget;
  MemoryModel memory;
  std::map<std::pair<int, int>, int> pairIndex;
  DenseMap<Operation *, int> position;
  std::vector<int> products; ///< positions
  llvm::DenseMap<std::tuple<int, int, int>, int64_t> paths;
};

MemoryModel Model::memory(const PlanBudget &budget) {
  return ByteTables(*this, budget).build();
}

} // namespace mtp::plan
