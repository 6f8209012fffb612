// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/BufferPlan.h"
#include "compiler/codegen/Arena.h"
#include "compiler/codegen/ArtifactTypes.h"
#include "compiler/codegen/Epilogues.h"
#include "compiler/codegen/LibraryCalls.h"
#include "compiler/codegen/Overlap.h"

using namespace mlir;
using namespace mtp;

Value mtp::aliasedOperand(Operation *op) {
  return isa<ReshapeOp, StopGradientOp, BarrierOp>(op) ? op->getOperand(0)
                                                       : Value();
}

/// True if `dim` has nothing but single positions around it.
static bool isOutermost(RankedTensorType type, int64_t dim) {
  return llvm::all_of(type.getShape().take_front(dim),
                      [](int64_t size) { return size == 1; });
}

std::pair<Value, int64_t> mtp::slicedOperand(Operation *op) {
  auto slice = dyn_cast<StridedSliceOp>(op);
  if (!slice || slice.getStep() != 1 ||
      !isOutermost(slice.getInput().getType(), slice.getDim()))
    return {};
  auto type = cast<RankedTensorType>(slice.getInput().getType());
  int64_t extent = type.getDimSize(slice.getDim());
  int64_t row = extent ? bytesOf(type) / extent : 0;
  return {slice.getInput(), slice.getStart() * row};
}

bool mtp::joinsInPlace(Operation *op) {
  auto concat = dyn_cast<ConcatOp>(op);
  if (!concat || !isOutermost(concat.getType(), concat.getDim()))
    return false;
  bool isSummed =
      concat->hasOneUse() && isa<spmd::AllReduceOp>(*concat->user_begin());
  return isSummed || llvm::all_of(concat->getOperands(), [](Value operand) {
           Operation *part = operand.getDefiningOp();
           return part && part->hasAttr(kCollectivePart);
         });
}

/// The value that an op writes and `value` is, under another shape perhaps.
static Value writtenRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    Value aliased = aliasedOperand(op);
    if (!aliased)
      return isWritten(value) && !slicedOperand(op).first && !joinsInPlace(op)
                 ? value
                 : Value();
    value = aliased;
  }
  return {};
}

bool mtp::canLieInConcat(OpOperand &operand) {
  Value root = writtenRoot(operand.get());
  if (!root)
    return false;
  // All that reads the value under any shape: no output or store of its own,
  // no other concat, no transpose that could be the writer's.
  SmallVector<Value> aliases{root};
  while (!aliases.empty()) {
    for (OpOperand &use : aliases.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (&use != &operand &&
          (isa<func::ReturnOp, spmd::StoreOp, TransposeOp>(user) ||
           joinsInPlace(user)))
        return false;
      if (aliasedOperand(user))
        aliases.push_back(user->getResult(0));
    }
  }
  return true;
}

bool mtp::isWritten(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !isa<spmd::ParameterOp, spmd::RankValueOp, ConstantOp>(op);
}

//===----------------------------------------------------------------------===//
// Homes
//===----------------------------------------------------------------------===//

BufferPlan::BufferPlan(func::FuncOp func, Unplaced) {
  mlir::Block &block = func.getBody().front();
  foldAliases(block);
  foldConcats(block);
  foldTransposes(block);
  findLives(block);
  reduceInPlace(block);
  findDone(block);
}

BufferPlan::BufferPlan(func::FuncOp func) : BufferPlan(func, Unplaced()) {
  mlir::Block &block = func.getBody().front();
  for (auto store : block.getOps<spmd::StoreOp>())
    if (Value from = home(store.getValue()); from != home(store.getStored()))
      stored[from] = home(store.getStored());
  placeHomes(block);
}

Value BufferPlan::home(Value value) const {
  for (auto it = views.find(value); it != views.end(); it = views.find(value))
    value = it->second.of;
  return value;
}

int64_t BufferPlan::offset(Value value) const {
  int64_t sum = 0;
  for (auto it = views.find(value); it != views.end(); it = views.find(value)) {
    sum += it->second.offset;
    value = it->second.of;
  }
  return sum;
}

ArrayRef<int64_t> BufferPlan::strides(Value value) const {
  auto it = views.find(value);
  return it == views.end() ? ArrayRef<int64_t>()
                           : ArrayRef<int64_t>(it->second.strides);
}

void BufferPlan::foldAliases(mlir::Block &block) {
  for (Operation &op : block) {
    auto [operand, offset] = slicedOperand(&op);
    if (Value same = aliasedOperand(&op))
      operand = same;
    if (!operand)
      continue;
    views[op.getResult(0)] = {operand, {}, offset};
    folded.insert(&op);
  }
}

/// Values that a collective takes together are written one after the other.
void BufferPlan::foldConcats(mlir::Block &block) {
  for (Operation &op : block) {
    if (!joinsInPlace(&op))
      continue;
    int64_t offset = 0;
    for (Value operand : op.getOperands()) {
      views[home(operand)] = {op.getResult(0), {}, offset};
      offset += bytesOf(operand.getType());
    }
    folded.insert(&op);
  }
}

namespace {
/// An op that only reshapes and transposes its one operand, once.
struct Transposition {
  SmallVector<int64_t> from; ///< shape that is transposed
  SmallVector<int64_t> perm;
  bool reshapesBefore = false, reshapesAfter = false;
};
} // namespace

static std::optional<Transposition> transpositionOf(Operation *op) {
  auto describe = [](TransposeOp transpose) {
    return Transposition{
        llvm::to_vector(transpose.getInput().getType().getShape()),
        llvm::to_vector(transpose.getPerm())};
  };
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return describe(transpose);
  auto fused = dyn_cast<spmd::FusedOp>(op);
  if (!fused || fused.getInputs().size() != 1 || fused.getOutputs().size() != 1)
    return std::nullopt;
  mlir::Block &body = fused.getBody().front();
  std::optional<Transposition> found;
  bool before = false, after = false;
  Value last = body.getArgument(0);
  for (Operation &inner : body.without_terminator()) {
    if (inner.getNumOperands() != 1 || inner.getOperand(0) != last)
      return std::nullopt;
    if (aliasedOperand(&inner))
      (found ? after : before) = true;
    else if (auto transpose = dyn_cast<TransposeOp>(inner); transpose && !found)
      found = describe(transpose);
    else
      return std::nullopt;
    last = inner.getResult(0);
  }
  if (!found || body.getTerminator()->getOperand(0) != last)
    return std::nullopt;
  found->reshapesBefore = before;
  found->reshapesAfter = after;
  return found;
}

static SmallVector<int64_t> rowMajor(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Transposes that kernels with strides make needless. The last dimension must
/// stay last: reading it with a stride would cost more than the transpose.
void BufferPlan::foldTransposes(mlir::Block &block) {
  for (Operation &op : block) {
    auto transposition = transpositionOf(&op);
    if (!transposition || transposition->perm.empty() ||
        transposition->perm.back() !=
            static_cast<int64_t>(transposition->perm.size()) - 1)
      continue;
    ArrayRef<int64_t> perm = transposition->perm;
    Value input = op.getOperand(0), result = op.getResult(0);
    bool readersTakeStrides =
        llvm::all_of(result.getUses(), [](OpOperand &use) {
          return takesStrides(use.getOwner(), use.getOperandNumber());
        });
    if (readersTakeStrides && !transposition->reshapesAfter &&
        !result.use_empty()) {
      SmallVector<int64_t> source = rowMajor(transposition->from), strides;
      for (int64_t dim : perm)
        strides.push_back(source[dim]);
      views[result] = {input, strides, 0};
      folded.insert(&op);
      continue;
    }
    // The writer may write as this op would, if all others read with strides.
    auto writer = dyn_cast<OpResult>(input);
    bool othersTakeStrides = llvm::all_of(input.getUses(), [&](OpOperand &use) {
      return use.getOwner() == &op ||
             takesStrides(use.getOwner(), use.getOperandNumber());
    });
    if (!writer || !othersTakeStrides || views.contains(input) ||
        !givesStrides(writer.getOwner(), writer.getResultNumber()) ||
        transposition->reshapesBefore)
      continue;
    SmallVector<int64_t> shape, strides(perm.size());
    for (int64_t dim : perm)
      shape.push_back(transposition->from[dim]);
    for (auto [dim, stride] : llvm::enumerate(rowMajor(shape)))
      strides[perm[dim]] = stride;
    views[input] = {result, strides, 0};
    folded.insert(&op);
  }
}

//===----------------------------------------------------------------------===//
// Lives
//===----------------------------------------------------------------------===//

/// First and last step at which a home is written or read; steps are positions
/// of ops. Folded ops neither read nor write. A product and its epilogue take
/// all of their steps together, as the call that may stand for them.
void BufferPlan::findLives(mlir::Block &block) {
  int64_t step = 0, first = 0, last = -1;
  for (Operation &op : block) {
    if (step > last) {
      first = step;
      last = step + epilogueSize(&op);
    }
    auto touch = [&](Value value) {
      auto [it, isNew] = lives.try_emplace(home(value), std::pair(first, last));
      it->second.second = std::max(it->second.second, last);
    };
    if (!folded.contains(&op)) {
      for (OpResult result : op.getResults())
        if (!isOmitted(result))
          touch(result);
      llvm::for_each(op.getOperands(), touch);
    }
    ++step;
  }
}

/// A sum over ranks may replace its operand if nothing reads that any more.
void BufferPlan::reduceInPlace(mlir::Block &block) {
  int64_t step = 0;
  Operation *terminator = block.getTerminator();
  for (Operation &op : block) {
    int64_t now = step++;
    if (!isa<spmd::AllReduceOp>(op))
      continue;
    Value input = op.getOperand(0), result = op.getResult(0),
          from = home(input);
    if (!isWritten(from) || !strides(input).empty() ||
        bytesOf(from.getType()) != bytesOf(result.getType()) ||
        lives[from].second != now)
      continue;
    // The operand's home may not be an output of its own.
    if (llvm::any_of(terminator->getOperands(),
                     [&](Value output) { return home(output) == from; }))
      continue;
    if (views.contains(result)) {
      // A part of a joined value: its operand is written there, too.
      auto &whole = lives[home(result)];
      whole.first = std::min(whole.first, lives[from].first);
      views[from] = {result, {}, 0};
      continue;
    }
    lives[from].second = lives[result].second;
    views[result] = {input, {}, 0};
  }
}

/// The step of the first op that reads the result of `op`, or a value that
/// lies in it, or part of which it is.
int64_t BufferPlan::firstReader(
    Operation *op, const llvm::DenseMap<Operation *, int64_t> &steps) const {
  int64_t first = std::numeric_limits<int64_t>::max();
  SmallVector<Value> values(op->getResults());
  while (!values.empty())
    for (Operation *user : values.pop_back_val().getUsers())
      if (folded.contains(user))
        llvm::append_range(values, user->getResults());
      else
        first = std::min(first, steps.lookup(user));
  return first;
}

/// When collectives are done, and what is needed until then.
void BufferPlan::findDone(mlir::Block &block) {
  llvm::DenseMap<Operation *, int64_t> steps;
  SmallVector<Operation *> collectives;
  int64_t step = 0, first = 0, last = -1;
  for (Operation &op : block) {
    // Nothing is done in the midst of an epilogue.
    if (step > last) {
      first = step;
      last = step + epilogueSize(&op);
    }
    steps[&op] = first;
    ++step;
    if (isa<spmd::CollectiveOpInterface>(op))
      collectives.push_back(&op);
  }
  for (auto [number, op] : llvm::enumerate(collectives)) {
    int64_t start = steps.lookup(op), end = start + 1;
    if (overlaps(op)) {
      end = firstReader(op, steps);
      if (number + kMostUnderWay < collectives.size())
        end = std::min(end, steps.lookup(collectives[number + kMostUnderWay]));
      end = std::max(std::min(end, steps.lookup(block.getTerminator())),
                     start + 1);
    }
    done[op] = end;
    for (Value value : {op->getOperand(0), Value(op->getResult(0))})
      if (auto life = lives.find(home(value)); life != lives.end())
        life->second.second = std::max(life->second.second, end - 1);
  }
}

void BufferPlan::placeHomes(mlir::Block &block) {
  Operation *terminator = block.getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value output = home(operand.get());
    places[output] = {BufferRef::Space::Output, operand.getOperandNumber(), 0,
                      bytesOf(output.getType())};
  }
  SmallVector<Value> values;
  SmallVector<ArenaSpan> spans;
  for (Operation &op : block)
    for (Value result : op.getResults()) {
      Value owner = home(result);
      auto life = lives.find(owner);
      if (owner != result || !isWritten(owner) || places.contains(owner) ||
          stored.contains(owner) || life == lives.end())
        continue;
      values.push_back(owner);
      spans.push_back(
          {bytesOf(owner.getType()), life->second.first, life->second.second});
    }
  bytes = planArena(spans);
  for (auto [value, span] : llvm::zip_equal(values, spans))
    places[value] = {BufferRef::Space::Arena, 0, span.offset, span.bytes};
}

std::optional<BufferRef> BufferPlan::place(Value value) const {
  auto it = places.find(value);
  return it == places.end() ? std::nullopt : std::optional(it->second);
}
