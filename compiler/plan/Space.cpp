// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Space.h"

using namespace mlir;

namespace mtp::plan {

using Row = AxisCase::Row;

std::vector<AxisGroup> groupsOf(const MeshShape &mesh) {
  std::vector<AxisGroup> groups;
  for (auto [index, axis] : llvm::enumerate(mesh.axes)) {
    if (groups.empty() || groups.back().name != axis.parent)
      groups.push_back({axis.parent, 1, {}, axis.parent == "dp", false});
    groups.back().size *= axis.size;
    groups.back().parts.push_back(int(index));
  }
  return groups;
}

bool isParameter(Operation *op, const ShardingRule &rule) {
  return rule.anyState && !op->hasTrait<NoCotangentTrait>();
}

bool isFreeSource(Operation *op, const ShardingRule &rule) {
  return rule.anyState && op->hasTrait<NoCotangentTrait>();
}

static int64_t innerOf(const ShardingRule &rule, ArrayRef<int> dimFactors,
                       int factor) {
  int64_t inner = 1;
  for (int other : llvm::reverse(dimFactors)) {
    if (other == factor)
      break;
    inner *= rule.factors[other].size;
  }
  return inner;
}

/// Visits (tensor index, is result, dimension, factors).
template <typename Visit>
static void forEachDim(const ShardingRule &rule, Visit visit) {
  for (auto [index, tensor] : llvm::enumerate(rule.operands))
    for (auto [dim, factors] : llvm::enumerate(tensor))
      visit(index, false, dim, factors);
  for (auto [index, tensor] : llvm::enumerate(rule.results))
    for (auto [dim, factors] : llvm::enumerate(tensor))
      visit(index, true, dim, factors);
}

//===----------------------------------------------------------------------===//
// Key heads
//===----------------------------------------------------------------------===//

/// Factors of key heads: one stands alone in a dimension of one operand and
/// before the query heads of a key head in another operand's; or copies of each
/// head were made by a broadcast and are merged behind it.
static SmallVector<int, 2>
keyHeadFactors(Operation *op, const ShardingRule &rule, const Roles &roles) {
  SmallVector<int, 2> found;
  SmallVector<uint8_t, 6> role = roles.ofFactors(op, rule);
  auto splittable = [&](int factor) {
    return rule.factors[factor].kind == FactorKind::Parallel &&
           rule.factors[factor].size > 1 && !(role[factor] & (kBatch | kToken));
  };
  forEachDim(
      rule, [&](size_t tensor, bool isResult, size_t, const auto &factors) {
        if (factors.size() != 2 || !splittable(factors[0]) ||
            !splittable(factors[1]))
          return;
        bool copies = isResult && (role[factors[1]] & kRepeat);
        bool alone = false;
        forEachDim(rule, [&](size_t other, bool otherIsResult, size_t,
                             const auto &otherFactors) {
          alone |= !isResult && !otherIsResult && other != tensor &&
                   otherFactors.size() == 1 && otherFactors[0] == factors[0];
        });
        if ((copies || alone) && !llvm::is_contained(found, factors[0]))
          found.push_back(factors[0]);
      });
  return found;
}

MeshShape refineMesh(func::FuncOp function, const Roles &roles,
                     ArrayRef<std::pair<std::string, int64_t>> axes) {
  std::map<int64_t, int> heads; // number of key heads -> ops
  for (Operation &op : function.getBody().front()) {
    auto sharding = dyn_cast<ShardingOpInterface>(op);
    if (!sharding)
      continue;
    auto rule = sharding.getShardingRule();
    if (failed(rule))
      continue;
    for (int factor : keyHeadFactors(&op, *rule, roles))
      ++heads[rule->factors[factor].size];
  }
  MeshShape mesh;
  for (const auto &[name, size] : axes) {
    int64_t major = 0;
    int most = 0;
    for (auto [count, ops] : heads)
      if (name != "dp" && count < size && size % count == 0 && ops > most) {
        major = count;
        most = ops;
      }
    if (major) {
      mesh.axes.push_back({name, 0, major});
      mesh.axes.push_back({name, 1, size / major});
    } else {
      mesh.axes.push_back({name, -1, size});
    }
  }
  return mesh;
}

//===----------------------------------------------------------------------===//
// Units and key heads, spread over the graph
//===----------------------------------------------------------------------===//

Space::Space(func::FuncOp function, const Roles &roles, MeshShape mesh,
             Freedom freedom, AxisSet joint)
    : function(function), roles(roles), mesh(std::move(mesh)), freedom(freedom),
      groups(groupsOf(this->mesh)) {
  if (!joint.empty()) {
    groups.assign(1, {"", 1, {joint.begin(), joint.end()}, false, false});
    for (int axis : joint)
      groups[0].size *= this->mesh.axes[axis].size;
  }
  bool hasBatch =
      llvm::any_of(this->function.getArgumentTypes(), [](Type type) {
        auto shape = cast<RankedTensorType>(type).getShape();
        return !shape.empty() && shape[0] > 1;
      });
  for (AxisGroup &group : groups)
    group.isIdle = group.isData && freedom != Freedom::All && !hasBatch;
  spreadTraits();
}

const DimTraits &Space::traitsOf(Value value, int64_t dim) const {
  static const DimTraits none;
  auto it = traits.find(value);
  return it == traits.end() ? none : it->second[dim];
}

SmallVector<int64_t, 2> Space::unitsOfFactor(Operation *op,
                                             const ShardingRule &rule,
                                             int factor) const {
  SmallVector<int64_t, 2> units;
  forEachDim(
      rule, [&](size_t tensor, bool isResult, size_t dim, const auto &factors) {
        if (!llvm::is_contained(factors, factor))
          return;
        Value value =
            isResult ? Value(op->getResult(tensor)) : op->getOperand(tensor);
        int64_t inner = innerOf(rule, factors, factor);
        for (int64_t unit : traitsOf(value, dim).units)
          if (inner > 0 && unit % inner == 0 && unit / inner > 1 &&
              unit / inner <= rule.factors[factor].size &&
              !llvm::is_contained(units, unit / inner))
            units.push_back(unit / inner);
      });
  llvm::sort(units);
  return units;
}

bool Space::carriesKeyHeads(Operation *op, const ShardingRule &rule,
                            int factor) const {
  bool carries = false;
  forEachDim(
      rule, [&](size_t tensor, bool isResult, size_t dim, const auto &factors) {
        Value value =
            isResult ? Value(op->getResult(tensor)) : op->getOperand(tensor);
        carries |= !factors.empty() && factors[0] == factor &&
                   traitsOf(value, dim).keyHeads;
      });
  return carries;
}

/// Spreads the traits of one op's dimensions over its factors; true on a
/// change.
bool Space::spreadOp(Operation *op, const ShardingRule &rule) {
  constexpr size_t mostUnits = 4;
  bool changed = false;
  SmallVector<int, 2> heads = keyHeadFactors(op, rule, roles);
  for (int factor = 0; factor < int(rule.factors.size()); ++factor) {
    if (rule.factors[factor].kind != FactorKind::Parallel)
      continue;
    SmallVector<int64_t, 2> units = unitsOfFactor(op, rule, factor);
    bool isHeads = llvm::is_contained(heads, factor);
    bool limited = isHeads || carriesKeyHeads(op, rule, factor);
    forEachDim(rule, [&](size_t tensor, bool isResult, size_t dim,
                         const auto &factors) {
      if (!llvm::is_contained(factors, factor))
        return;
      Value value =
          isResult ? Value(op->getResult(tensor)) : op->getOperand(tensor);
      DimTraits &mine = traits[value][dim];
      int64_t inner = innerOf(rule, factors, factor);
      auto addUnit = [&](int64_t unit) {
        if (unit <= 1 || mine.units.size() >= mostUnits ||
            llvm::is_contained(mine.units, unit))
          return;
        mine.units.push_back(unit);
        changed = true;
      };
      if (factors.size() > 1)
        addUnit(inner);
      for (int64_t unit : units)
        addUnit(unit * inner);
      // Query heads stand behind key heads in one dimension: that one may be
      // cut further.
      bool further = isHeads && factors.size() > 1;
      if (limited && !further && factors[0] == factor && !mine.keyHeads) {
        mine.keyHeads = true;
        changed = true;
      }
    });
  }
  return changed;
}

void Space::spreadTraits() {
  struct Known {
    Operation *op;
    ShardingRule rule;
  };
  std::vector<Known> ops;
  auto prepare = [&](Value value) {
    traits[value].resize(cast<RankedTensorType>(value.getType()).getRank());
  };
  for (BlockArgument argument : function.getArguments())
    prepare(argument);
  for (Operation &op : function.getBody().front()) {
    auto sharding = dyn_cast<ShardingOpInterface>(op);
    if (!sharding)
      continue;
    for (Value result : op.getResults())
      prepare(result);
    auto rule = sharding.getShardingRule();
    if (succeeded(rule))
      ops.push_back({&op, std::move(*rule)});
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (Known &known : ops)
      changed |= spreadOp(known.op, known.rule);
    for (Known &known : llvm::reverse(ops))
      changed |= spreadOp(known.op, known.rule);
  }
}

//===----------------------------------------------------------------------===//
// Strategies of an op
//===----------------------------------------------------------------------===//

/// Whether the objective lets `group` cut a dimension of these roles.
bool Space::mayCut(uint8_t role, const AxisGroup &group) const {
  if (freedom == Freedom::All)
    return true;
  if (group.isData)
    return (role & kBatch) != 0;
  return (role & kBatch) == 0 &&
         ((role & kToken) == 0 || freedom != Freedom::Roles);
}

std::vector<Space::Cases> Space::casesOf(Operation *op,
                                         const ShardingRule &rule,
                                         const AxisGroup &group) const {
  size_t parts = group.parts.size();
  std::vector<Cases> result;
  auto addJoint = [&](AxisCase c) { result.push_back(Cases(parts, c)); };
  SmallVector<uint8_t, 6> role = roles.ofFactors(op, rule);
  bool free = freedom == Freedom::All ||
              llvm::any_of(op->getOperands(),
                           [&](Value v) { return relaxed.contains(v); }) ||
              llvm::any_of(op->getResults(),
                           [&](Value v) { return relaxed.contains(v); });
  if (group.size == 1 || (group.isIdle && !free)) {
    addJoint({Row::Invariant, 0});
    return result;
  }
  auto maySplit = [&](int factor) {
    if (rule.factors[factor].kind != FactorKind::Parallel ||
        rule.factors[factor].size <= 1)
      return false;
    return free || mayCut(role[factor], group);
  };
  SmallVector<AxisCase, 8> sharded;
  for (AxisCase c : enumerateCases(rule)) {
    if (c.row != Row::Sharded || !maySplit(c.index))
      continue;
    sharded.push_back(c);
    for (int64_t unit : unitsOfFactor(op, rule, c.index)) {
      c.unit = unit;
      sharded.push_back(c);
    }
  }
  bool batchOnly = group.isData && !free && !sharded.empty();
  if (!batchOnly)
    for (AxisCase c : enumerateCases(rule))
      if (c.row != Row::Sharded)
        addJoint(c);
  // Key heads are as many as the major part: both parts would leave ranks
  // without.
  for (AxisCase c : sharded)
    if (parts == 1 || free || !carriesKeyHeads(op, rule, c.index))
      addJoint(c);
  bool refined = parts == 2 && mesh.axes[group.parts[0]].parent ==
                                   mesh.axes[group.parts[1]].parent;
  if (!refined)
    return result;
  // Where query heads stand behind key heads, the minor part splits them.
  SmallVector<int, 2> heads = keyHeadFactors(op, rule, roles);
  for (AxisCase c : sharded)
    if (carriesKeyHeads(op, rule, c.index) &&
        (free || !llvm::is_contained(heads, c.index))) {
      result.push_back({c, {Row::Replicated, 0}});
      result.push_back({c, {Row::Invariant, 0}});
    }
  auto addNested = [&](int major, int minor) {
    Cases nested{{Row::Sharded, major}, {Row::Sharded, minor}};
    if (major != minor && !llvm::is_contained(result, nested))
      result.push_back(nested);
  };
  forEachDim(rule, [&](size_t, bool, size_t, const auto &factors) {
    for (size_t i = 1; i < factors.size(); ++i) {
      if (!maySplit(factors[i - 1]) || !maySplit(factors[i]))
        continue;
      addNested(factors[i - 1], factors[i]);
    }
  });
  for (AxisCase c : sharded)
    for (AxisCase copies : sharded)
      if ((role[copies.index] & kRepeat) && carriesKeyHeads(op, rule, c.index))
        addNested(c.index, copies.index);
  return result;
}

OpSpace Space::of(Operation *op) const {
  OpSpace space;
  space.op = op;
  space.rule = *cast<ShardingOpInterface>(op).getShardingRule();
  if (auto fixed = fixedOps.find(op); fixed != fixedOps.end()) {
    space.strategies.push_back(fixed->second);
    return space;
  }
  std::vector<std::vector<Cases>> perGroup;
  for (const AxisGroup &group : groups)
    perGroup.push_back(casesOf(op, space.rule, group));

  llvm::DenseSet<llvm::hash_code> hashes;
  auto isNew = [&](const Strategy &strategy) {
    llvm::hash_code code = llvm::hash_value(0);
    for (const Layout &layout : strategy.operands)
      code = llvm::hash_combine(code, layout);
    for (const Layout &layout : strategy.results)
      code = llvm::hash_combine(code, layout);
    if (hashes.insert(code).second)
      return true;
    return llvm::none_of(space.strategies, [&](const Strategy &other) {
      return other.operands == strategy.operands &&
             other.results == strategy.results;
    });
  };
  SmallVector<AxisCase, 4> cases(mesh.size(), {Row::Invariant, 0});
  auto combineAll = [&](auto &&self, size_t group) -> void {
    if (group < groups.size()) {
      for (const Cases &choice : perGroup[group]) {
        for (auto [part, c] : llvm::zip_equal(groups[group].parts, choice))
          cases[part] = c;
        self(self, group + 1);
      }
      return;
    }
    if (auto strategy = combine(op, space.rule, cases, mesh))
      if (isNew(*strategy))
        space.strategies.push_back(std::move(*strategy));
  };
  combineAll(combineAll, 0);
  if (space.strategies.empty()) { // a batch that cannot be split here
    cases.assign(mesh.size(), {Row::Invariant, 0});
    space.strategies.push_back(*combine(op, space.rule, cases, mesh));
  }
  return space;
}

//===----------------------------------------------------------------------===//
// Storage
//===----------------------------------------------------------------------===//

std::vector<Layout> Space::storage(Value value) const {
  if (auto fixed = fixedStorage.find(value); fixed != fixedStorage.end())
    return {fixed->second};
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  bool isInput = isa<BlockArgument>(value);
  bool free = freedom == Freedom::All || relaxed.contains(value);
  std::vector<Layout> layouts{Layout(mesh.size(), int(shape.size()))};
  auto cut = [&](Layout layout, ArrayRef<int> parts, int64_t dim,
                 int64_t unit) {
    if (layout.dims[dim].axes.size() && layout.dims[dim].unit != unit)
      return;
    for (int part : parts)
      layout.shard(part, int(dim));
    layout.dims[dim].unit = unit;
    layout.canonicalize(shape, mesh);
    if (!llvm::is_contained(layouts, layout))
      layouts.push_back(std::move(layout));
  };
  for (const AxisGroup &group : groups) {
    if (group.size == 1 || (group.isIdle && !free))
      continue;
    std::vector<Layout> before = std::move(layouts);
    layouts.clear();
    bool batch = group.isData && !free;
    // An input of rank 2 or more is always cut on dp; one of rank 1 may be.
    if (!batch || !isInput || shape.size() < 2 || shape[0] <= 1)
      layouts = before;
    for (const Layout &layout : before)
      for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim) {
        if (shape[dim] <= 1)
          continue;
        bool inputBatch = isInput && dim == 0; // a parameter's has no role
        if (!free &&
            !(batch ? inputBatch : mayCut(roles.of(value, dim), group)))
          continue;
        const DimTraits &known = traitsOf(value, dim);
        if (group.parts.size() == 1 || free || !known.keyHeads)
          cut(layout, group.parts, dim, 1);
        if (known.keyHeads && group.parts.size() > 1)
          cut(layout, group.parts[0], dim, 1);
        for (int64_t unit : known.units)
          if (group.parts.size() == 1 || free || !known.keyHeads)
            cut(layout, group.parts, dim, unit);
      }
  }
  return layouts;
}

} // namespace mtp::plan
