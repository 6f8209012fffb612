// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/Fusion.h"
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/RowOps.h"
#include "compiler/codegen/emit/Scalars.h"

#include "dialects/spmd/SpmdDialect.h"

#include "mlir/IR/IRMapping.h"

#include <queue>

using namespace mlir;
using namespace mtp;

namespace {

/// Limits of a group. Larger ones compile slowly and gain nothing.
constexpr size_t kMaxOps = 96;
constexpr size_t kMaxResults = 4;
/// Elements of constants that are copied into a group.
constexpr int64_t kMaxConstant = 1024;
/// Multiplications of one element from which on computing it twice does not
/// pay.
constexpr unsigned kExpensive = 5;
/// Cheap work that a broadcast over rows may repeat, all ops of a group
/// together.
constexpr unsigned kMaxRepeated = 8;

enum class Access : uint8_t { Unused, Full, Prefix, Other };

int64_t elementsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

/// True if `operand`, broadcast to `result`, has one element for each of the
/// leading positions: (2, 3, 1) to (2, 3, 8).
bool isPrefix(ArrayRef<int64_t> operand, ArrayRef<int64_t> result) {
  if (operand.size() > result.size())
    return false;
  bool rest = false;
  for (size_t d = 0; d < result.size(); ++d) {
    size_t missing = result.size() - operand.size();
    int64_t size = d < missing ? 1 : operand[d - missing];
    if (size != result[d])
      rest = true;
    if (rest && size != 1)
      return false;
  }
  return true;
}

/// How operand `number` of `user` is read if the user's result is read by
/// `access`.
Access operandAccess(Operation *user, unsigned number, Access access) {
  const OpEmitter *emitter = emitterOf(user);
  if (access == Access::Other)
    return Access::Other;
  Value operand = user->getOperand(number), result = user->getResult(0);
  switch (emitter->kind) {
  case FusionKind::Row:
  case FusionKind::Reduce: // a gradient reads its cotangent like its input
    return number == 0 || shapeOf(operand) == shapeOf(user->getOperand(0))
               ? Access::Full
               : Access::Other;
  case FusionKind::Elementwise:
    break;
  case FusionKind::Move:
    if (isa<ReshapeOp>(user))
      return access;
    if (!isa<BroadcastOp>(user))
      return Access::Other;
    break;
  case FusionKind::Look: // an index into the first dimension: once for each
                         // looked-up row
    if (auto gather = dyn_cast<GatherOp>(user);
        gather && gather.getDim() == 0 && number == 1)
      return access == Access::Full ? Access::Prefix : Access::Other;
    return Access::Other;
  default:
    return Access::Other;
  }
  if (elementsOf(operand) == elementsOf(result) &&
      isPrefix(shapeOf(operand), shapeOf(result)))
    return access;
  return access == Access::Full && isPrefix(shapeOf(operand), shapeOf(result))
             ? Access::Prefix
             : Access::Other;
}

class Planner {
public:
  explicit Planner(Block &block) : block(block) {
    for (Operation &op : block)
      order[&op] = order.size();
  }

  std::vector<FusionGroup> run() {
    std::vector<FusionGroup> groups;
    for (Operation &op : llvm::reverse(block)) {
      if (isServed(&op))
        served.insert(&op);
      else if (canBeRoot(&op))
        groups.push_back(grow(&op));
    }
    return groups;
  }

private:
  struct Growing {
    FusionGroup group;
    llvm::DenseMap<Operation *, Access>
        members;           ///< how the op's result is read
    int64_t rows = 0;      ///< 0: no op sweeps yet
    bool sealed = false;   ///< no further op that sweeps
    unsigned repeated = 0; ///< cheap work done more than once an element
  };

  bool canBeRoot(Operation *op) {
    const OpEmitter *emitter = emitterOf(op);
    // A reshape is an alias, a constant is data.
    return emitter && op->getNumResults() == 1 &&
           !isa<ReshapeOp, ConstantOp>(op) && !owner.count(op);
  }
  /// Copies of the op serve all its uses: nothing is left to compute.
  bool isServed(Operation *op) {
    return !op->use_empty() && !owner.count(op) && !needed.count(op) &&
           llvm::all_of(op->getUsers(), [&](Operation *user) {
             return served.count(user) || copiedFor.count({op, groupOf(user)});
           });
  }
  int groupOf(Operation *op) {
    auto it = owner.find(op);
    return it == owner.end() ? -1 : it->second;
  }

  FusionGroup grow(Operation *root);
  bool tryJoin(Growing &growing, Operation *op);
  bool joinSource(Growing &growing, Operation *op);
  bool fitsRows(Growing &growing, Operation *op, Access access);
  bool repeats(Growing &growing, Operation *op, Access access, size_t uses);
  void join(Growing &growing, Operation *op, Access access, bool owned);
  void dropLeadingReshapes(Growing &growing);

  Block &block;
  llvm::DenseMap<Operation *, unsigned> order;
  llvm::DenseMap<Operation *, int> owner;
  llvm::DenseSet<std::pair<Operation *, int>> copiedFor;
  llvm::DenseSet<Operation *> served;
  llvm::DenseSet<Operation *>
      needed; ///< operands of copies: groups read their results
  int nextGroup = 0;
};

void Planner::join(Growing &growing, Operation *op, Access access, bool owned) {
  growing.members[op] = access;
  growing.group.ops.push_back(op);
  if (owned) {
    growing.group.owned.insert(op);
    owner[op] = nextGroup;
  } else {
    copiedFor.insert({op, nextGroup});
  }
}

/// Constants and counters are copied to wherever they are used.
bool Planner::joinSource(Growing &growing, Operation *op) {
  if (auto constant = dyn_cast<ConstantOp>(op))
    if (!constant.getValue().isSplat() && elementsOf(constant) > kMaxConstant)
      return false;
  join(growing, op, Access::Other, /*owned=*/false);
  return true;
}

/// Whether an op that sweeps has the rows of the group, which may get its rows
/// here.
bool Planner::fitsRows(Growing &growing, Operation *op, Access access) {
  if (growing.sealed || access == Access::Other)
    return false;
  bool isReduce = emitterOf(op)->kind == FusionKind::Reduce;
  int64_t swept = 1;
  auto dims = sweptDims(op);
  for (unsigned dim : *dims)
    swept *= shapeOf(op->getOperand(0))[dim];
  if (swept == 0)
    return false;
  int64_t rows = elementsOf(op->getOperand(0)) / swept,
          space = elementsOf(growing.group.root->getResult(0));
  if (!isReduce && access != Access::Full)
    return false;
  if (!sweepsTrailingDims(op)) {
    // Each element of the group sweeps for itself, once.
    if (!isReduce || access != Access::Full || growing.rows != 0 ||
        elementsOf(op->getResult(0)) != space)
      return false;
    growing.sealed = true;
    return true;
  }
  if (growing.rows != 0 && growing.rows != rows)
    return false;
  if (growing.rows == 0 && space % std::max<int64_t>(rows, 1) != 0)
    return false;
  if (!isReduce && growing.rows == 0 && elementsOf(op->getResult(0)) != space)
    return false;
  // The root's leading dimensions must be the rows.
  int64_t product = 1;
  for (int64_t size : shapeOf(growing.group.root->getResult(0)))
    if (product < rows)
      product *= size;
  if (growing.rows == 0 && product != rows)
    return false;
  growing.rows = rows;
  return true;
}

/// Whether joining would compute elements again, more than it costs to store
/// them.
bool Planner::repeats(Growing &growing, Operation *op, Access access,
                      size_t uses) {
  unsigned cost = emitterOf(op)->cost;
  if (access != Access::Other || cost == 0)
    return false;
  int64_t space = elementsOf(growing.group.root->getResult(0));
  bool again = elementsOf(op->getResult(0)) < space || uses > 1;
  if (!again)
    return false;
  if (cost >= kExpensive || growing.repeated + cost > kMaxRepeated)
    return true;
  growing.repeated += cost;
  return false;
}

bool Planner::tryJoin(Growing &growing, Operation *op) {
  const OpEmitter *emitter = emitterOf(op);
  if (!emitter || op->getNumResults() != 1 || owner.count(op) ||
      growing.members.size() >= kMaxOps)
    return false;
  if (emitter->kind == FusionKind::Source)
    return joinSource(growing, op);
  Access access = Access::Unused;
  size_t uses = 0;
  bool outside = needed.count(op), outsideFollows = true;
  for (OpOperand &use : op->getResult(0).getUses()) {
    Operation *user = use.getOwner();
    auto member = growing.members.find(user);
    if (member != growing.members.end()) {
      Access own = operandAccess(user, use.getOperandNumber(), member->second);
      access = access == Access::Unused || access == own ? own : Access::Other;
      ++uses;
      if (growing.group.owned.count(user))
        continue;
    }
    outside = true;
    outsideFollows &= order[user] > order[growing.group.root];
  }
  bool sweeps =
      emitter->kind == FusionKind::Row || emitter->kind == FusionKind::Reduce;
  if (!outside) {
    if (sweeps ? !fitsRows(growing, op, access)
               : repeats(growing, op, access, uses))
      return false;
    join(growing, op, access, /*owned=*/true);
    return true;
  }
  // Cheap enough to be computed in each group that needs it.
  size_t inputs = llvm::count_if(op->getOperands(), [](Value operand) {
    Operation *def = operand.getDefiningOp();
    return !def || !emitterOf(def) ||
           emitterOf(def)->kind != FusionKind::Source;
  });
  bool moves = emitter->kind == FusionKind::Move && emitter->cost == 0;
  if (moves || (emitter->kind == FusionKind::Elementwise &&
                emitter->cost <= 1 && inputs <= 1)) {
    if (repeats(growing, op, access, uses))
      return false;
    join(growing, op, access, /*owned=*/false);
    return true;
  }
  // Stored on the way, if the group runs in the order of its elements.
  int64_t own = elementsOf(op->getResult(0)),
          space = elementsOf(growing.group.root->getResult(0));
  bool sameShape =
      shapeOf(op->getResult(0)) == shapeOf(growing.group.root->getResult(0));
  if (!outsideFollows || access != Access::Full || own != space || !sameShape ||
      growing.sealed || growing.group.results.size() >= kMaxResults ||
      emitter->kind == FusionKind::Look)
    return false;
  if (sweeps && !fitsRows(growing, op, access))
    return false;
  join(growing, op, access, /*owned=*/true);
  growing.group.results.push_back(op->getResult(0));
  return true;
}

/// A reshape of an operand is better left outside: there it is an alias.
void Planner::dropLeadingReshapes(Growing &growing) {
  SmallVector<Operation *> kept;
  for (Operation *op : growing.group.ops) {
    if (isa<ReshapeOp>(op)) {
      Operation *def = op->getOperand(0).getDefiningOp();
      if (!def || !growing.members.count(def)) {
        growing.members.erase(op);
        growing.group.owned.erase(op);
        owner.erase(op);
        copiedFor.erase({op, nextGroup});
        continue;
      }
    }
    kept.push_back(op);
  }
  growing.group.ops = kept;
}

FusionGroup Planner::grow(Operation *root) {
  Growing growing;
  growing.group.root = root;
  growing.group.results.push_back(root->getResult(0));
  join(growing, root, Access::Full, /*owned=*/true);
  if (auto swept = sweptDims(root)) {
    growing.sealed = !sweepsTrailingDims(root);
    int64_t inner = 1;
    for (unsigned dim : *swept)
      inner *= shapeOf(root->getOperand(0))[dim];
    growing.rows = inner ? elementsOf(root->getOperand(0)) / inner : 0;
    growing.sealed |= inner == 0;
  }
  // Later producers first: when one is looked at, its uses in the group are
  // known.
  auto earlier = [&](Operation *a, Operation *b) {
    return order[a] < order[b];
  };
  std::priority_queue<Operation *, std::vector<Operation *>, decltype(earlier)>
      queue(earlier);
  llvm::DenseSet<Operation *> seen;
  auto enqueue = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && def->getBlock() == &block && seen.insert(def).second)
        queue.push(def);
  };
  enqueue(root);
  while (!queue.empty()) {
    Operation *op = queue.top();
    queue.pop();
    if (tryJoin(growing, op))
      enqueue(op);
  }
  llvm::sort(growing.group.ops, earlier);
  dropLeadingReshapes(growing);
  for (Operation *op : growing.group.ops)
    if (!growing.group.owned.count(op))
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp();
            def && !growing.members.count(def))
          needed.insert(def);
  ++nextGroup;
  return std::move(growing.group);
}

} // namespace

std::vector<FusionGroup> mtp::planFusion(Block &block) {
  return Planner(block).run();
}

void mtp::outlineGroup(const FusionGroup &group) {
  llvm::DenseSet<Operation *> members(group.ops.begin(), group.ops.end());
  llvm::SetVector<Value> inputs;
  for (Operation *op : group.ops)
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); !def || !members.count(def))
        inputs.insert(operand);
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (Operation *op : group.ops)
    if (!isa<ConstantOp>(op))
      locations.push_back(op->getLoc());
  for (Value result : group.results)
    types.push_back(result.getType());
  OpBuilder builder(group.root);
  Location loc = builder.getFusedLoc(locations);
  auto fused = spmd::FusedOp::create(builder, loc, types, inputs.getArrayRef());
  Block *body = builder.createBlock(&fused.getBody());
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
  for (Operation *op : group.ops)
    builder.clone(*op, mapping);
  SmallVector<Value> yielded;
  for (Value result : group.results)
    yielded.push_back(mapping.lookup(result));
  spmd::YieldOp::create(builder, loc, yielded);
  for (auto [number, value] : llvm::enumerate(fused.getResults())) {
    Value result = group.results[number];
    result.replaceUsesWithIf(value, [&](OpOperand &use) {
      return !group.owned.count(use.getOwner());
    });
  }
  for (Operation *op : llvm::reverse(group.ops))
    if (group.owned.count(op))
      op->erase();
}
