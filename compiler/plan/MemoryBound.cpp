// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MemoryBound.cpp - a bound of the bytes of a plan -------------------===//
//
// Each buffer that a program can have is counted by a term that is at least as
// large; docs/memory.md has the table of both.
//
//===----------------------------------------------------------------------===//
#include "compiler/plan/Lives.h"
#include "compiler/plan/ModelBytes.h"

using namespace mlir;

namespace mtp::plan {

/// Of parts of a step that are there whatever the layouts, when training: the
/// learning rate and the like, and of each parameter its part of the norm.
static constexpr int64_t kStepBytes = 1024, kNormBytes = 128;

/// Ops whose gradient, or whose own, has a constant of the size of an operand.
static bool hasWholeZeros(Operation *op) {
  return isa<GatherElementsOp, GatherNdOp, ScatterElementsOp, ScatterNdOp,
             TopKOp>(op);
}

class Model::BoundTables : Bytes {
public:
  BoundTables(Model &model, const PlanBudget &budget)
      : Bytes(model, budget), lives(model.function, model.gradients),
        forward(lives.count() + 1), backward(lives.count() + 1),
        isLong(model.values.size()) {
    dataAxes = mesh().find(kDataAxis);
    for (auto [index, value] : llvm::enumerate(model.values))
      valueIndex[value.value] = index;
  }

  MemoryModel build() {
    findLong();
    for (const Unit &unit : model.units)
      addUnit(unit);
    for (const ValueModel &value : model.values)
      if (value.unit >= 0)
        addValue(value);
      else
        addConstant(value);
    addFixed();
    return tables.take();
  }

private:
  //===--------------------------------------------------------------------===//
  // Bytes
  //===--------------------------------------------------------------------===//

  /// Less than a value takes in most layouts: its part if all ranks share it.
  /// What waits counts so once for all that wait at a time; what it has beyond
  /// that counts for each (`excess`), so that every byte that a layout saves is
  /// seen. Any other number would give a bound as well, but it must not depend
  /// on which strategies are open: a pin must not change the sum.
  int64_t base(const ValueModel &value) const {
    return llvm::alignTo(llvm::divideCeil(wholeBytes(value), mesh().ranks()),
                         kAlignment);
  }

  static int64_t excess(int64_t bytes, int64_t base) {
    return std::max<int64_t>(bytes - base, 0);
  }

  /// Whether an op that does not read the value runs while it is there, in the
  /// forward. Of several operands of an op one counts with the op.
  void findLong() {
    DenseMap<Value, size_t> shortOnes;
    for (auto [index, value] : llvm::enumerate(model.values)) {
      if (value.unit < 0 || isStored(value) || isKept(value))
        continue;
      isLong[index] = lives.passesOthers(value.value, firstWrite(value),
                                         lives.end(value.value));
      if (!isLong[index])
        shortOnes[value.value] = index;
    }
    for (int position = 0; position < lives.count(); ++position) {
      Value last;
      for (Value operand : lives.at(position)->getOperands()) {
        if (!shortOnes.contains(operand) || operand == last)
          continue;
        Value other = last;
        last = operand;
        if (other && lives.begin(other) > lives.begin(last))
          std::swap(other, last);
        if (other) {
          isLong[shortOnes.lookup(other)] = true;
          shortOnes.erase(other);
        }
      }
    }
  }

  /// Operands of a concat may be written where its result is.
  int firstWrite(const ValueModel &value) const {
    int first = lives.begin(value.value);
    if (auto concat = value.value.getDefiningOp<ConcatOp>())
      for (Value operand : concat->getOperands())
        first = std::min(first, lives.begin(operand));
    return first;
  }

  /// For the backward.
  bool isKept(const ValueModel &value) const {
    return budget.training && lives.isKept(value.value);
  }
  bool isKept(const Use &use) const {
    return budget.training && use.unit >= 0 && lives.isKept(*use.operand);
  }

  bool isStored(const ValueModel &value) const {
    const Unit &unit = model.units[value.unit];
    return !unit.space.op || unit.space.rule.anyState;
  }

  //===--------------------------------------------------------------------===//
  // What there is
  //===--------------------------------------------------------------------===//

  /// What does not depend on layouts.
  void addFixed() {
    fixed += forward.most() + backward.most();
    if (budget.training)
      fixed += kStepBytes;
    tables.addFixed(std::min(fixed, kMostBytes));
  }

  /// Whole once for all uses. A use that needs a part has its own, and what is
  /// converted of it.
  void addConstant(const ValueModel &value) {
    auto rule = cast<ShardingOpInterface>(value.value.getDefiningOp())
                    .getShardingRule();
    Layout whole = wholeLayout(value);
    fixed += wholeBytes(value);
    for (const Use &use : value.uses) {
      if (use.unit < 0)
        continue;
      const Unit &user = model.units[use.unit];
      for (size_t y = 0; y < user.space.strategies.size(); ++y) {
        int wanted = requiredBy(use, int(y));
        Layout made = constantLayout(*rule, model.layouts[wanted]);
        int64_t part = isSameBuffer(made, whole)
                           ? 0
                           : arenaBytes(value.info, made, mesh());
        tables.addUnary(user.variable, int(y),
                        part + pathBytes(value, model.intern(made), wanted));
      }
    }
  }

  /// Operands of an op in a strategy, and results. Those that count as waiting
  /// do so there, unless `converted`: then each operand may be one that was.
  int64_t ownBytes(const Unit &unit, int x, bool converted) {
    Operation *op = unit.space.op;
    int64_t bytes = 0;
    auto add = [&](Value value, int layout, int times) {
      TensorInfo info = tensorInfo(value, model.gradients);
      int64_t mine = arenaBytes(info, model.layouts[layout], mesh());
      // With its cotangent, and something like it on the way there.
      bytes += budget.training && info.gradient ? 2 * mine : times * mine;
    };
    llvm::SmallDenseSet<std::pair<Value, int>, 4> known;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Operation *source = operand.getDefiningOp();
      bool isInArena = source && source->getNumOperands() > 0;
      int layout = unit.operandId(x, unsigned(i));
      bool counts =
          budget.training || converted || (isInArena && !waits(operand));
      if (counts && known.insert({operand, layout}).second)
        add(operand, layout, 1);
    }
    for (auto [i, result] : llvm::enumerate(op->getResults()))
      add(result, unit.resultId(x, unsigned(i)),
          budget.training || converted || !waits(result));
    return bytes;
  }

  /// Of an op that looks up by position, where a rank holds a part of the
  /// table: its own positions, and what it found before that is masked.
  int64_t lookedUpBytes(const Unit &unit, int x) {
    const ShardingRule &rule = unit.space.rule;
    bool looksUp =
        llvm::any_of(rule.factors, [](const Factor &f) { return f.indexed; });
    if (!looksUp)
      return 0;
    int64_t bytes = 0;
    auto add = [&](Value value, int layout) {
      bytes += arenaBytes(tensorInfo(value, model.gradients),
                          model.layouts[layout], mesh());
    };
    for (auto [i, operand] : llvm::enumerate(unit.space.op->getOperands()))
      if (i > 0)
        add(operand, unit.operandId(x, unsigned(i)));
    bytes *= 2;
    for (auto [i, result] : llvm::enumerate(unit.space.op->getResults()))
      add(result, unit.resultId(x, unsigned(i)));
    return bytes;
  }

  /// All of that, of an op that reads what was converted.
  int64_t largestBytes(const Unit &unit, int x) {
    auto [known, isNew] = largest.try_emplace({unit.variable, x}, 0);
    // Ops of one variable are alike.
    if (isNew)
      known->second = ownBytes(unit, x, true) + lookedUpBytes(unit, x);
    return known->second;
  }
  bool waits(Value value) const {
    auto known = valueIndex.find(value);
    return known != valueIndex.end() && isLong[known->second];
  }

  /// Copies whose padding is neutral, of what the op contracts, here or in the
  /// backward.
  int64_t maskedBytes(const Unit &unit, int x) {
    Operation *op = unit.space.op;
    const ShardingRule &rule = unit.space.rule;
    int64_t bytes = 0;
    auto add = [&](Value value, const TensorFactors &factors, int id,
                   bool isPosition) {
      const Layout &layout = model.layouts[id];
      TensorInfo info = tensorInfo(value, model.gradients);
      for (auto [dim, mine] : llvm::enumerate(factors)) {
        bool isContracted = llvm::any_of(mine, [&](int factor) {
          return llvm::any_of(rule.results, [&](const TensorFactors &result) {
            return llvm::none_of(result, [&](const auto &other) {
              return llvm::is_contained(other, factor);
            });
          });
        });
        if ((budget.training || isPosition || isContracted) &&
            layout.isPadded(int(dim), info.shape[dim], mesh()))
          bytes += arenaBytes(info, layout, mesh());
      }
    };
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (budget.training || !operand.getDefiningOp<ParameterOp>())
        add(operand, rule.operands[i], unit.operandId(x, unsigned(i)),
            rule.positions >> i & 1);
    if (budget.training)
      for (auto [i, result] : llvm::enumerate(op->getResults()))
        add(result, rule.results[i], unit.resultId(x, unsigned(i)), false);
    return bytes;
  }

  void addUnit(const Unit &unit) {
    Operation *op = unit.space.op;
    if (!op || unit.space.rule.anyState)
      return;
    for (size_t x = 0; x < unit.space.strategies.size(); ++x) {
      int64_t masked = maskedBytes(unit, int(x));
      int64_t zeros = budget.training && hasWholeZeros(op)
                          ? ownBytes(unit, int(x), true)
                          : 0;
      tables.addUnary(unit.variable, int(x), masked + zeros,
                      ownBytes(unit, int(x), false) + masked +
                          lookedUpBytes(unit, int(x)));
    }
  }

  void addValue(const ValueModel &value) {
    const Unit &unit = model.units[value.unit];
    int64_t waiting = base(value);
    int times = isStored(value) ? 0 : addCotangents(value, waiting);
    if (waits(value.value)) {
      forward.add(firstWrite(value), lives.end(value.value), waiting);
      ++times;
    }
    for (size_t x = 0; x < value.producedOf.size(); ++x) {
      int64_t bytes = bytesOf(value, value.produced[value.producedOf[x]]);
      if (isStored(value))
        addStored(value, int(x), bytes);
      else
        tables.addUnary(unit.variable, int(x),
                        (isKept(value) ? bytes : 0) +
                            times * excess(bytes, waiting));
    }
    if (value.uses.size() != 1 && value.variable >= 0)
      for (size_t state = 0; state < value.states.size(); ++state)
        addCopy(value, int(state), times);
    addUses(value, [&](const Use &use, int variable, int x, int y, int from) {
      addConversion(value, use, variable, x, y, from);
    });
  }

  /// What is added to the cotangent of the value and waits for others. Returns
  /// how much of that there may be at a time.
  int addCotangents(const ValueModel &value, int64_t bytes) {
    if (!budget.training || !value.info.gradient)
      return 0;
    int first = lives.waits(value.value), times = 0;
    for (const Use &use : value.uses) {
      int last = use.unit < 0 ? -1 : lives.of(use.operand->getOwner()) - 1;
      if (last < 0 || (value.uses.size() == 1 &&
                       !lives.passesOthers(value.value, first, last)))
        continue;
      backward.add(first, last, bytes);
      ++times;
    }
    // Behind its op it is there, or what it waits for.
    Value other = lives.waitsFor(value.value);
    if (auto known = valueIndex.find(other);
        times && other && known != valueIndex.end()) {
      const ValueModel &operand = model.values[known->second];
      int end = lives.begin(value.value) - 1;
      if (lives.passesOthers(other, lives.waits(other), end))
        backward.add(first, end, -std::min(times * bytes, base(operand)));
    }
    return times;
  }

  /// A parameter or an input.
  void addStored(const ValueModel &value, int x, int64_t bytes) {
    const Unit &unit = model.units[value.unit];
    if (!unit.space.op) {
      // Its gradient may be a result.
      tables.addUnary(unit.variable, x,
                      budget.training && value.info.gradient ? 2 * bytes
                                                             : bytes);
      return;
    }
    int layout = value.produced[value.producedOf[x]];
    bool isTrained = budget.training && value.info.gradient;
    tables.addUnary(
        unit.variable, x,
        budget.parameterBytes(unit.space.op, model.layouts[layout], mesh()) +
            (isTrained ? kNormBytes : 0),
        isTrained ? 2 * bytes : 0);
  }

  /// ZeRO: what a use of a parameter needs that is not cut over the data axis,
  /// because the use is the same on all of its ranks.
  int64_t uncutBytes(const ValueModel &value, int wanted, int64_t bytes) {
    if (!isStored(value) || !model.units[value.unit].space.op ||
        !value.info.gradient || !budget.training || budget.zero < 2)
      return 0;
    bool isCut = llvm::any_of(dataAxes, [&](int axis) {
      return model.layouts[wanted].states[axis].kind != Kind::I;
    });
    return isCut ? 0 : budget.zero > 2 ? 2 * bytes : bytes;
  }

  /// The conversions in front of a use.
  void addConversion(const ValueModel &value, const Use &use, int variable,
                     int x, int y, int from) {
    const Unit &user = model.units[use.unit];
    int wanted = requiredBy(use, y);
    int64_t bytes = bytesOf(value, from), path = pathBytes(value, from, wanted),
            uncut = uncutBytes(value, wanted, bytes);
    int64_t transient =
        budget.training || !isStored(value)
            ? largestBytes(user, y) + path + (waits(value.value) ? 0 : bytes)
            : 0;
    if (isStored(value) || isKept(use))
      tables.addPair(variable, user.variable, x, y, path + uncut,
                     path ? transient : 0);
    else if (path)
      tables.addPair(variable, user.variable, x, y,
                     staysConverted(value, use) ? path : 0, transient);
  }

  /// True if what is converted for a use is there while other ops run: it is
  /// made for the first use, and may serve the others.
  bool staysConverted(const ValueModel &value, const Use &use) {
    return firstUse(value) < lives.of(use.operand->getOwner()) ||
           lives.of(use.operand->getOwner()) < lives.end(*use.operand);
  }
  int firstUse(const ValueModel &value) const {
    int first = lives.count();
    for (const Use &use : value.uses)
      first = std::min(first, lives.of(use.operand->getOwner()));
    return first;
  }

  /// A shared copy, and what is added to its cotangent `times` at a time.
  void addCopy(const ValueModel &value, int state, int times) {
    const ValueModel::State &pair = value.states[state];
    int64_t bytes = bytesOf(value, value.produced[pair.produced]), most = bytes,
            path = 0;
    if (pair.copy >= 0) {
      path = pathBytes(value, value.produced[pair.produced],
                       value.copies[pair.copy]);
      most = std::max(most, bytesOf(value, value.copies[pair.copy]));
    }
    int64_t sum = path + times * excess(most, bytes);
    if (budget.training && isStored(value) && value.info.gradient) {
      // Of a parameter one is in its own bytes, or a part of one.
      int64_t uses = int64_t(value.uses.size());
      sum += std::max<int64_t>(uses - 1, 0) * most;
      if (budget.zero > 2)
        sum += 2 * most; // gathered, for uses of both kinds
    }
    tables.addUnary(value.variable, state, sum);
  }

  Lives lives;
  SmallVector<int, 2> dataAxes;
  DenseMap<Value, size_t> valueIndex;
  /// By position: how the bytes change that wait there, values and what is
  /// added to cotangents.
  Load forward, backward;
  std::vector<bool> isLong; ///< by value
  int64_t fixed = 0;        ///< bytes that depend on no layout
  llvm::DenseMap<std::pair<int, int>, int64_t> largest;
};

MemoryModel Model::memoryBound(const PlanBudget &budget) {
  return BoundTables(*this, budget).build();
}

} // namespace mtp::plan
