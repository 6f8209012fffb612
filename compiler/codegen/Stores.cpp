// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Stores.cpp - values that must lie somewhere, and their copies ------===//
#include "compiler/codegen/ArtifactTypes.h"
#include "compiler/codegen/BufferPlan.h"
#include "compiler/codegen/InPlace.h"

using namespace mlir;
using namespace mtp;

Value mtp::copyBefore(Operation *at, Value value) {
  OpBuilder builder(at);
  auto copy =
      spmd::FusedOp::create(builder, at->getLoc(), value.getType(), value);
  mlir::Block &body = copy.getBody().emplaceBlock();
  body.addArgument(value.getType(), value.getLoc());
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  Value same = StopGradientOp::create(inner, at->getLoc(), value.getType(),
                                      body.getArgument(0));
  spmd::YieldOp::create(inner, at->getLoc(), same);
  return copy.getResult(0);
}

void mtp::moveStoresToEnd(mlir::Block &block) {
  for (auto store : llvm::to_vector(block.getOps<spmd::StoreOp>()))
    store->moveBefore(block.getTerminator());
}

/// Equal parameters become one op, so that what reads a stored block reads one
/// value.
static void mergeParameters(mlir::Block &block) {
  llvm::DenseMap<std::pair<Attribute, Type>, spmd::ParameterOp> first;
  for (auto op :
       llvm::make_early_inc_range(block.getOps<spmd::ParameterOp>())) {
    auto [it, isNew] = first.try_emplace(
        std::pair(Attribute(op->getAttrDictionary()), Type(op.getType())), op);
    if (isNew)
      continue;
    op.replaceAllUsesWith(it->second.getResult());
    op.erase();
  }
}

/// Every returned value gets an owned home of its own, so that each output is
/// written by an op of the program.
static void copyOutputs(Operation *terminator) {
  llvm::DenseSet<Value> taken;
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value root = operand.get();
    while (Operation *op = root.getDefiningOp()) {
      Value aliased = aliasedOperand(op);
      if (!aliased)
        break;
      root = aliased;
    }
    Operation *op = root.getDefiningOp();
    if (!isWritten(root) || slicedOperand(op).first || joinsInPlace(op) ||
        !taken.insert(root).second)
      operand.set(copyBefore(terminator, operand.get()));
  }
}

/// Operands of joined values are copied where they can't be written in place.
static void copyConcatOperands(mlir::Block &block) {
  for (auto concat : block.getOps<ConcatOp>()) {
    if (!joinsInPlace(concat))
      continue;
    for (OpOperand &operand : concat->getOpOperands())
      if (!canLieInConcat(operand))
        operand.set(copyBefore(concat, operand.get()));
  }
}

namespace mtp {
/// Decides which stored values can be written where they are kept.
class StorePlacer {
public:
  explicit StorePlacer(func::FuncOp func)
      : block(func.getBody().front()), plan(func, BufferPlan::Unplaced()) {
    int64_t step = 0;
    for (Operation &op : block) {
      steps[&op] = step++;
      if (plan.isFolded(&op) || isa<spmd::StoreOp>(op))
        continue;
      for (OpOperand &operand : op.getOpOperands())
        reads[plan.home(operand.get())].push_back(&operand);
    }
    for (Value output : block.getTerminator()->getOperands())
      taken.insert(plan.home(output));
  }

  /// True if the store needs no copy. Kernels in place are noted.
  bool place(spmd::StoreOp store) {
    Value value = store.getValue(), from = plan.home(value),
          to = plan.home(store.getStored());
    if (from == to)
      return true;
    if (!isWritten(from) || !plan.strides(value).empty() ||
        bytesOf(from.getType()) != bytesOf(to.getType()) ||
        taken.contains(from))
      return false;
    int64_t written = plan.lives.lookup(from).first;
    std::optional<unsigned> inPlace;
    for (OpOperand *operand : reads[to]) {
      Operation *reader = operand->getOwner();
      if (lastStep(reader) < written)
        continue;
      if (reader != from.getDefiningOp() || inPlace ||
          !overwrites(*operand, cast<OpResult>(from)))
        return false;
      inPlace = operand->getOperandNumber();
    }
    taken.insert(from);
    if (inPlace)
      setInPlace(cast<spmd::FusedOp>(from.getDefiningOp()), *inPlace,
                 cast<OpResult>(from).getResultNumber());
    return true;
  }

private:
  /// The last step at which `op` reads its operands.
  int64_t lastStep(Operation *op) const {
    int64_t step = steps.lookup(op);
    return isa<spmd::CollectiveOpInterface>(op) ? plan.doneStep(op) - 1 : step;
  }
  bool overwrites(OpOperand &operand, OpResult result) const {
    auto fused = dyn_cast<spmd::FusedOp>(operand.getOwner());
    return fused && plan.strides(operand.get()).empty() &&
           mayOverwrite(fused, operand.getOperandNumber(),
                        result.getResultNumber());
  }

  mlir::Block &block;
  BufferPlan plan;
  llvm::DenseMap<Operation *, int64_t> steps;
  llvm::DenseMap<Value, SmallVector<OpOperand *, 2>> reads; ///< by home
  llvm::DenseSet<Value> taken; ///< homes that have their place
};
} // namespace mtp

void BufferPlan::prepare(func::FuncOp func) {
  mlir::Block &block = func.getBody().front();
  mergeParameters(block);
  copyOutputs(block.getTerminator());
  moveStoresToEnd(block);
  copyConcatOperands(block);
  auto stores = llvm::to_vector(block.getOps<spmd::StoreOp>());
  if (stores.empty())
    return;
  // A copy may read a parameter that another store writes: then it is copied
  // again, after all that read parameters. Second copies read none, so this
  // ends.
  while (true) {
    for (auto fused : block.getOps<spmd::FusedOp>())
      fused->removeAttr(kInPlace);
    StorePlacer placer(func);
    SmallVector<spmd::StoreOp> left;
    for (spmd::StoreOp store : stores)
      if (!placer.place(store))
        left.push_back(store);
    if (left.empty())
      return;
    for (spmd::StoreOp store : left)
      store.getValueMutable().set(copyBefore(stores.front(), store.getValue()));
  }
}
