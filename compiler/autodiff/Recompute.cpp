// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Recompute.cpp - forward values computed again for the backward -----===//
//
// Generic over the interfaces of the graph's ops: this file names none of them.
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Recompute.h"

#include "compiler/autodiff/Differentiate.h"
#include "dialects/spmd/SpmdDialect.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

using namespace mlir;
using namespace mtp;
using namespace mtp::autodiff;

namespace {
/// Cuts the forward into segments.
class Segmentation {
public:
  /// `ops` are those of the forward, in order; the first `layers` segments are
  /// computed again, -1: all but the last.
  Segmentation(ArrayRef<Operation *> ops, int64_t layers) : ops(ops) {
    for (auto [index, op] : llvm::enumerate(ops))
      position[op] = index;
    findOrigins();
    findBoundaries();
    repeated =
        layers < 0 ? count() - 1 : std::min<int64_t>(layers, count() - 1);
  }

  int count() const { return static_cast<int>(ends.size()) + 1; }
  bool isForward(Operation *op) const { return position.count(op); }
  int of(Operation *op) const {
    return llvm::lower_bound(ends, position.lookup(op)) - ends.begin();
  }

  /// True if the value is there in the backward without being computed again.
  bool isKept(Value value) const {
    Operation *op = value.getDefiningOp();
    if (!op || !isForward(op) || op->getNumOperands() == 0 ||
        !isMemoryEffectFree(op) || boundaries.contains(value) ||
        of(op) >= repeated)
      return true;
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return user->hasTrait<OpTrait::IsTerminator>() ||
             (isForward(user) && of(user) != of(op));
    });
  }

private:
  /// Which values depend on an argument, which on a parameter.
  void findOrigins() {
    for (Operation *op : ops) {
      bool input = false, parameter = false;
      for (Value operand : op->getOperands()) {
        input |= isa<BlockArgument>(operand) || fromInput.contains(operand);
        parameter |= fromParameter.contains(operand);
      }
      parameter |=
          op->getNumOperands() == 0 && !op->hasTrait<NoCotangentTrait>();
      for (Value result : op->getResults()) {
        if (input)
          fromInput.insert(result);
        if (parameter)
          fromParameter.insert(result);
      }
    }
  }

  bool isActivation(Value value) const {
    return isa<FloatType>(getElementTypeOrSelf(value)) &&
           fromInput.contains(value) && fromParameter.contains(value) &&
           cast<RankedTensorType>(value.getType()).getRank() > 0 &&
           llvm::none_of(value.getUsers(), [](Operation *user) {
             return user->hasTrait<OpTrait::IsTerminator>();
           });
  }

  int lastUse(Value value) const {
    int last = -1;
    for (Operation *user : value.getUsers())
      if (auto found = position.find(user); found != position.end())
        last = std::max(last, found->second);
    return last;
  }

  using Boundary = std::pair<int, Value>; ///< position, what is live behind it

  /// Positions behind which one activation is live, `ignored` apart, with a
  /// product between any two.
  std::vector<Boundary> findPositions(const DenseSet<Value> &ignored) const {
    std::vector<Boundary> found;
    DenseSet<Value> live;
    std::multimap<int, Value> dying;
    bool product = false;
    for (auto [index, op] : llvm::enumerate(ops)) {
      product |= isa<FlopsOpInterface>(op);
      for (Value result : op->getResults())
        if (int last = lastUse(result);
            last >= 0 && isActivation(result) && !ignored.contains(result)) {
          live.insert(result);
          dying.insert({last, result});
        }
      auto [from, to] = dying.equal_range(index);
      for (auto it = from; it != to; ++it)
        live.erase(it->second);
      if (live.size() != 1 || !product)
        continue;
      found.push_back({index, *live.begin()});
      product = false;
    }
    return found;
  }

  /// A boundary that stays in use (an encoder's output) hides those behind it.
  /// It is passed over if that gives four or more new ones: a residual
  /// connection around a block of two products, passed over, would give two.
  void findBoundaries() {
    DenseSet<Value> ignored;
    std::vector<Boundary> found = findPositions(ignored);
    while (!found.empty()) {
      auto length = [&](const Boundary &b) {
        return lastUse(b.second) - b.first;
      };
      Value longest =
          std::max_element(found.begin(), found.end(), [&](auto &a, auto &b) {
            return length(a) < length(b);
          })->second;
      DenseSet<Value> more = ignored;
      more.insert(longest);
      std::vector<Boundary> next = findPositions(more);
      if (next.size() < found.size() + 4)
        break;
      boundaries.insert(longest);
      ignored = std::move(more);
      found = std::move(next);
    }
    for (auto [index, value] : found) {
      boundaries.insert(value);
      ends.push_back(index);
    }
  }

  ArrayRef<Operation *> ops;
  DenseMap<Operation *, int> position;
  DenseSet<Value> fromInput, fromParameter, boundaries;
  SmallVector<int> ends; ///< position of the last op of each segment but one
  int64_t repeated = 0;  ///< segments
};

/// Sorts the ops before `end` so that an op's deepest operand is computed
/// first, and the others behind it: an encoder comes before the decoder that
/// reads it, wherever the exporter has put it, and little is live in between.
/// Sources stay in front.
class ForwardOrder {
public:
  ForwardOrder(Block &block, Operation *end) : end(end) {
    for (Operation &op : block) {
      if (&op == end)
        break;
      int longest = 0;
      for (Value operand : op.getOperands())
        longest = std::max(longest, depth.lookup(operand.getDefiningOp()));
      depth[&op] = op.getNumOperands() ? longest + 1 : 0;
    }
  }

  void apply(Block &block) {
    SmallVector<Operation *> ops;
    for (Operation &op : block) {
      if (&op == end)
        break;
      ops.push_back(&op);
    }
    for (Operation *op : ops)
      if (llvm::none_of(op->getUsers(),
                        [&](Operation *user) { return depth.count(user); }))
        place(op);
    for (Operation *op : order)
      op->moveBefore(end);
  }

private:
  /// Appends `root` behind what it needs.
  void place(Operation *root) {
    SmallVector<std::pair<Operation *, bool>> open{{root, false}};
    while (!open.empty()) {
      auto [op, ready] = open.pop_back_val();
      if (!op || !depth.lookup(op) || placed.contains(op))
        continue;
      if (ready) {
        placed.insert(op);
        order.push_back(op);
        continue;
      }
      open.push_back({op, true});
      SmallVector<Operation *> operands;
      for (Value operand : op->getOperands())
        operands.push_back(operand.getDefiningOp());
      llvm::stable_sort(operands, [&](Operation *a, Operation *b) {
        return depth.lookup(a) > depth.lookup(b);
      });
      for (Operation *operand : llvm::reverse(operands))
        open.push_back({operand, false});
    }
  }

  Operation *end;
  DenseMap<Operation *, int> depth; ///< longest path from a source
  DenseSet<Operation *> placed;
  SmallVector<Operation *> order;
};

/// Computes again what the backward needs.
class Recomputer {
public:
  Recomputer(Block &block, Operation *backward, int64_t layers)
      : backward(backward), forward(collect(block, backward)),
        segments(forward, layers), builder(backward->getContext()) {}

  RecomputeCounts run() {
    RecomputeCounts counts{segments.count(), 0};
    std::map<int, SmallVector<OpOperand *>> uses;
    for (Operation *op = backward; op; op = op->getNextNode())
      for (OpOperand &use : op->getOpOperands())
        if (!segments.isKept(use.get()))
          uses[segments.of(use.get().getDefiningOp())].push_back(&use);
    for (auto &[segment, all] : uses)
      counts.clones += repeat(all);
    return counts;
  }

private:
  static SmallVector<Operation *> collect(Block &block, Operation *end) {
    SmallVector<Operation *> ops;
    for (Operation &op : block) {
      if (&op == end)
        break;
      ops.push_back(&op);
    }
    return ops;
  }

  /// Clones what `uses` need of one segment, in front of the first of them.
  int repeat(ArrayRef<OpOperand *> uses) {
    DenseSet<Operation *> needed;
    SmallVector<Operation *> open;
    auto need = [&](Value value) {
      if (!segments.isKept(value) &&
          needed.insert(value.getDefiningOp()).second)
        open.push_back(value.getDefiningOp());
    };
    Operation *first = uses[0]->getOwner();
    for (OpOperand *use : uses)
      need(use->get());
    while (!open.empty())
      for (Value operand : open.pop_back_val()->getOperands())
        need(operand);
    builder.setInsertionPoint(first);
    IRMapping again;
    for (Operation *op : forward)
      if (needed.contains(op))
        clone(op, again);
    for (OpOperand *use : uses)
      use->set(again.lookup(use->get()));
    return static_cast<int>(needed.size());
  }

  void clone(Operation *op, IRMapping &again) {
    // What is kept comes in through a barrier, so that no clone is equal to the
    // op that it repeats. Constants and parameters need none.
    for (Value operand : op->getOperands()) {
      Operation *source = operand.getDefiningOp();
      bool conversion = isa<ConversionOpInterface>(op);
      if (again.contains(operand) ||
          (source && source->getNumOperands() == 0 && !conversion))
        continue;
      again.map(operand, Value(BarrierOp::create(builder, op->getLoc(),
                                                 operand.getType(), operand)));
    }
    markAgain(builder.clone(*op, again));
  }

  Operation *backward; ///< its first op
  SmallVector<Operation *> forward;
  Segmentation segments;
  OpBuilder builder;
};
} // namespace

static RecomputeCounts sortAndRecompute(Block &block, Operation *backward,
                                        int64_t layers) {
  ForwardOrder(block, backward).apply(block);
  return Recomputer(block, backward, layers).run();
}

void autodiff::markAgain(Operation *copy) {
  copy->removeDiscardableAttr(names::pair);
  if (!isa<ConversionOpInterface>(copy))
    return;
  Builder builder(copy->getContext());
  copy->setDiscardableAttr(spmd::names::phase,
                           builder.getStringAttr("backward"));
  copy->setDiscardableAttr(names::again, builder.getUnitAttr());
}

RecomputeCounts autodiff::recomputeLayers(func::FuncOp function,
                                          int64_t layers) {
  if (!function.getBody().hasOneBlock())
    return {};
  Block &block = function.getBody().front();
  for (Operation &op : block)
    if (op.hasAttr(names::backward))
      return sortAndRecompute(block, &op, layers);
  return {};
}
