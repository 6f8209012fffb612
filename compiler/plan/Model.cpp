// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Model.h"
#include "compiler/plan/Trainable.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace mtp::plan {
namespace {

/// FNV-1a: the same on every machine, unlike llvm::hash_code.
struct StableHash {
  uint64_t state = 0xcbf29ce484222325;
  void add(uint64_t word) {
    for (int byte = 0; byte < 8; ++byte, word >>= 8)
      state = (state ^ (word & 255)) * 0x100000001b3;
  }
  void add(StringRef text) {
    for (unsigned char c : text)
      state = (state ^ c) * 0x100000001b3;
    add(uint64_t(text.size()));
  }
};

void addType(StableHash &hash, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  for (int64_t extent : tensor.getShape())
    hash.add(uint64_t(extent));
  hash.add(uint64_t(tensor.getElementTypeBitWidth()));
}

bool sameStrategies(const OpSpace &a, const OpSpace &b) {
  return llvm::equal(
      a.strategies, b.strategies, [](const Strategy &x, const Strategy &y) {
        return x.operands == y.operands && x.results == y.results;
      });
}

/// Position of `id`, appended if it is new.
int indexOf(std::vector<int> &ids, int id) {
  auto it = std::find(ids.begin(), ids.end(), id);
  if (it == ids.end())
    it = ids.insert(ids.end(), id);
  return int(it - ids.begin());
}

} // namespace

/// True if the last dimension of `value` are the classes of a loss
/// (compiler/training/Loss.cpp says so at its ops).
static bool holdsClasses(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  auto says = [&](Operation *op) {
    auto classes =
        op ? op->getAttrOfType<IntegerAttr>("mtp.classes") : IntegerAttr();
    return classes && !shape.empty() && shape.back() == classes.getInt();
  };
  return says(value.getDefiningOp()) || llvm::any_of(value.getUsers(), says);
}

Model::Model(func::FuncOp function, const Space &space,
             Conversions &conversions, Objective objective)
    : function(function), space(space), conversions(conversions),
      objective(objective), gradients(function) {
  for (const auto &[name, found] : findTrainable(function))
    if (found.trainable)
      trained.insert(name);
  addUnits();
  addValues();
  findWeights();
}

int Model::intern(const Layout &layout) {
  size_t hash = hash_value(layout);
  auto [first, last] = idsByHash.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (layouts[it->second] == layout)
      return it->second;
  idsByHash.emplace(hash, int(layouts.size()));
  layouts.push_back(layout);
  return int(layouts.size()) - 1;
}

Time Model::pathCost(const ValueModel &value, int from, int to) {
  if (from == to)
    return 0;
  PathCosts &known = costs[value.infoId];
  size_t row = known.place(from), column = known.place(to);
  if (known.rows.size() <= row)
    known.rows.resize(row + 1);
  std::vector<Time> &cells = known.rows[row];
  if (cells.size() <= column)
    cells.resize(column + column / 2 + 1, -1);
  if (cells[column] < 0)
    cells[column] = conversions.cost(value.info, layouts[from], layouts[to]);
  return cells[column];
}

Time Model::outputCost(const ValueModel &value, int from) {
  Layout output = outputOf(layouts[from]);
  Time cost = pathCost(value, from, intern(output));
  if (!space.isSequenceParallel() || !value.info.gradient ||
      !hasFeatures(value.value))
    return cost;
  bool hasTokens = false;
  for (auto [dim, extent] : llvm::enumerate(value.info.shape))
    hasTokens |=
        extent > 1 && (space.valueRoles().of(value.value, dim) & kToken);
  for (const AxisGroup &group : space.axisGroups())
    if (hasTokens && !group.isData && group.size > 1 &&
        llvm::none_of(group.parts, [&](int part) {
          return output.states[part].kind == Kind::S;
        }))
      cost = add(cost, kSequencePenalty);
  return cost;
}

/// Hash of an op and everything it depends on, without names.
uint64_t Model::structureOf(Operation *op) {
  auto [it, isNew] = structures.try_emplace(op, 0);
  if (!isNew)
    return it->second;
  StableHash hash;
  hash.add(op->getName().getStringRef());
  for (Type type : op->getResultTypes())
    addType(hash, type);
  for (Value operand : op->getOperands()) {
    addType(hash, operand.getType());
    if (Operation *before = operand.getDefiningOp())
      hash.add(structures.lookup(before)); // defined earlier: known
    else
      hash.add(uint64_t(cast<BlockArgument>(operand).getArgNumber()));
  }
  return structures[op] = hash.state;
}

int Model::unitOf(Value value) const {
  if (Operation *op = value.getDefiningOp()) {
    auto it = unitOfOp.find(op);
    return it == unitOfOp.end() ? -1 : it->second;
  }
  return unitOfInput.lookup(value);
}

/// Hash of what makes ops equal users of shared weights: the op, those weights
/// (no tables, as of rotary embeddings: a few of them do no harm), and how the
/// other operands come from the nearest such users, a few ops deep. 0 if the op
/// does not depend on shared weights.
///
///   layer 3: matmul(x3, Wq)        color(matmul, Wq)   whatever x3 is
///            add(.., reshape(..))  from the colors of its operands
///   layer 4: matmul(x4, Wq)        the same
uint64_t Model::colorOf(Operation *op) {
  constexpr int manyUses = 3;
  StableHash self;
  self.add(op->getName().getStringRef());
  self.add(uint64_t(hash_value(op->getAttrDictionary())));
  for (Type type : op->getResultTypes())
    addType(self, type);
  for (Type type : op->getOperandTypes())
    addType(self, type);
  auto isShared = [&](Value value) {
    auto parameter = value.getDefiningOp<ParameterOp>();
    return parameter && trained.contains(parameter.getSource()) &&
           std::distance(value.use_begin(), value.use_end()) >= manyUses;
  };
  Colors mine;
  if (llvm::any_of(op->getOperands(), isShared)) {
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      if (isShared(operand)) {
        self.add(uint64_t(index));
        self.add(uint64_t(unitOf(operand)));
      }
    mine.fill(self.state | 1);
    colors[op] = mine;
    return mine.back();
  }
  bool depends = false;
  mine.fill(self.state | 1);
  for (size_t depth = 1; depth < mine.size(); ++depth) {
    StableHash hash = self;
    for (Value operand : op->getOperands()) {
      Operation *before = operand.getDefiningOp();
      auto it = colors.find(before);
      depends |= it != colors.end();
      hash.add(it != colors.end() ? it->second[depth - 1]
               : before ? structures.lookup(before)
                        : cast<BlockArgument>(operand).getArgNumber());
    }
    mine[depth] = hash.state | 1;
  }
  if (!depends)
    return 0;
  colors[op] = mine;
  return mine.back();
}

void Model::addUnits() {
  std::map<uint64_t, int> unitOfColor;
  auto addVariable = [&](OpSpace ops, uint64_t hash, std::string name) {
    Variable variable;
    variable.unary.assign(ops.strategies.size(), 0);
    variable.hash = hash;
    variable.name = std::move(name);
    Unit unit{int(tables.variables.size()), std::move(ops), {}, {}};
    for (const Strategy &strategy : unit.space.strategies) {
      for (const Layout &layout : strategy.operands)
        unit.operands.push_back(intern(layout));
      for (const Layout &layout : strategy.results)
        unit.results.push_back(intern(layout));
    }
    units.push_back(std::move(unit));
    tables.variables.push_back(std::move(variable));
    return int(units.size()) - 1;
  };
  auto stored = [&](Value value, OpSpace &ops) {
    for (Layout &layout : space.storage(value)) {
      Strategy strategy;
      strategy.results.push_back(std::move(layout));
      ops.strategies.push_back(std::move(strategy));
    }
  };
  for (BlockArgument argument : function.getArguments()) {
    OpSpace ops;
    stored(argument, ops);
    StableHash hash;
    hash.add(uint64_t(argument.getArgNumber()));
    unitOfInput[argument] =
        addVariable(std::move(ops), hash.state, valueName(argument));
  }
  for (Operation &op : function.getBody().front().without_terminator()) {
    uint64_t hash = structureOf(&op);
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (isFreeSource(&op, *rule))
      continue;
    OpSpace ops;
    if (isParameter(&op, *rule)) {
      ops.op = &op;
      ops.rule = std::move(*rule);
      stored(op.getResult(0), ops);
    } else {
      ops = space.of(&op);
    }
    int index = -1;
    if (uint64_t color = op.getNumOperands() ? colorOf(&op) : 0) {
      auto [it, isNew] = unitOfColor.try_emplace(color, int(units.size()));
      if (!isNew && sameStrategies(units[it->second].space, ops))
        index = it->second;
    }
    if (index < 0)
      index = addVariable(std::move(ops), hash, valueName(op.getResult(0)));
    unitOfOp[&op] = index;
    const Unit &unit = units[index];
    Variable &variable = tables.variables[unit.variable];
    bool cotangent = llvm::any_of(
        op.getResults(), [&](Value v) { return gradients.reaches(v); });
    if (!unit.space.rule.anyState)
      for (auto [cost, strategy] :
           llvm::zip_equal(variable.unary, unit.space.strategies))
        cost = add(cost, computeTime(&op, strategy, cotangent, conversions));
    if (space.isSequenceParallel() && !unit.space.rule.anyState && cotangent)
      addSequencePenalties(&op, unit);
  }
}

void Model::findProduced(ValueModel &value) {
  const Unit &unit = units[value.unit];
  value.produced.clear();
  value.producedOf.clear();
  llvm::DenseMap<int, int> known;
  for (size_t x = 0; x < unit.space.strategies.size(); ++x) {
    int id = unit.resultId(int(x), value.result);
    auto [it, isNew] = known.try_emplace(id, int(value.produced.size()));
    if (isNew)
      value.produced.push_back(id);
    value.producedOf.push_back(it->second);
  }
}

void Model::addValues() {
  Block &block = function.getBody().front();
  DenseMap<Operation *, int> position;
  for (Operation &op : block)
    position[&op] = int(position.size());
  auto addValue = [&](Value value, unsigned result) {
    ValueModel model;
    model.value = value;
    model.unit = unitOf(value);
    model.result = result;
    model.info = tensorInfo(value, gradients);
    model.holdsClasses =
        objective != Objective::Time && plan::holdsClasses(value);
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      model.uses.push_back(
          {&use, user == block.getTerminator() ? -1 : unitOfOp.lookup(user)});
    }
    llvm::sort(model.uses, [&](const Use &a, const Use &b) {
      auto key = [&](const Use &use) {
        return std::pair(position.at(use.operand->getOwner()),
                         use.operand->getOperandNumber());
      };
      return key(a) < key(b);
    });
    auto info = llvm::find(infos, model.info);
    model.infoId = int(info - infos.begin());
    if (info == infos.end()) {
      infos.push_back(model.info);
      costs.emplace_back();
    }
    if (model.unit >= 0)
      findProduced(model);
    modelOf[value] = int(values.size());
    values.push_back(std::move(model));
  };
  for (BlockArgument argument : function.getArguments())
    addValue(argument, 0);
  for (Operation &op : block.without_terminator())
    for (OpResult result : op.getResults())
      addValue(result, result.getResultNumber());
}

//===----------------------------------------------------------------------===//
// Restrictions
//===----------------------------------------------------------------------===//

bool Model::restrict(Value value, function_ref<bool(const Layout &)> fits) {
  int index = unitOf(value);
  if (index < 0)
    return true;
  const Unit &unit = units[index];
  unsigned result =
      isa<OpResult>(value) ? cast<OpResult>(value).getResultNumber() : 0;
  bool any = false;
  for (auto [cost, strategy] : llvm::zip_equal(
           tables.variables[unit.variable].unary, unit.space.strategies)) {
    if (!fits(strategy.results[result]))
      cost = kIllegal;
    any |= cost < kIllegal;
  }
  return any;
}

bool Model::restrict(OpOperand &operand,
                     function_ref<bool(const Layout &)> fits) {
  const Unit &unit = units[unitOfOp.lookup(operand.getOwner())];
  bool any = false;
  for (auto [cost, strategy] : llvm::zip_equal(
           tables.variables[unit.variable].unary, unit.space.strategies)) {
    if (!fits(strategy.operands[operand.getOperandNumber()]))
      cost = kIllegal;
    any |= cost < kIllegal;
  }
  return any;
}

int Model::mostStrategies() const {
  size_t most = 0;
  for (const Unit &unit : units)
    most = std::max(most, unit.space.strategies.size());
  return int(most);
}

std::vector<Layout> Model::choices(Value value) const {
  std::vector<Layout> all;
  for (int id : values[modelOf.lookup(value)].produced)
    all.push_back(layouts[id]);
  return all;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

void Model::addUnary(int variable, int strategy, Time cost) {
  Time &total = tables.variables[variable].unary[strategy];
  total = add(total, cost);
}

void Model::addPair(int a, int b, function_ref<Time(int, int)> cost) {
  int rows = int(tables.variables[a].unary.size());
  int columns = int(tables.variables[b].unary.size());
  if (a == b) { // ops of one structure that follow each other
    for (int x = 0; x < rows; ++x)
      addUnary(a, x, cost(x, x));
    return;
  }
  bool swap = a > b;
  auto &table = pairs[swap ? std::pair(b, a) : std::pair(a, b)];
  table.resize(size_t(rows) * columns, 0);
  for (int x = 0; x < rows; ++x)
    for (int y = 0; y < columns; ++y) {
      Time &entry =
          table[swap ? size_t(y) * rows + x : size_t(x) * columns + y];
      entry = add(entry, cost(x, y));
    }
}

void Model::addSingleUse(ValueModel &value) {
  const Use &use = value.uses.front();
  const Unit &unit = units[value.unit];
  if (use.unit < 0) {
    for (size_t x = 0; x < value.producedOf.size(); ++x)
      addUnary(unit.variable, int(x),
               outputCost(value, value.produced[value.producedOf[x]]));
    return;
  }
  std::vector<int> required, requiredOf;
  const Unit &user = units[use.unit];
  for (size_t y = 0; y < user.space.strategies.size(); ++y)
    requiredOf.push_back(indexOf(
        required, user.operandId(int(y), use.operand->getOperandNumber())));
  std::vector<Time> table;
  for (int from : value.produced)
    for (int to : required)
      table.push_back(add(pathCost(value, from, to),
                          usePenalty(value, layouts[from], layouts[to])));
  addPair(unit.variable, user.variable, [&](int x, int y) {
    return table[value.producedOf[x] * required.size() + requiredOf[y]];
  });
}

/// Values with the same key have one copy variable together.
std::vector<int> Model::copyKey(const ValueModel &value) const {
  std::vector<int> key{value.unit, int(value.result)};
  for (const Use &use : value.uses) {
    key.push_back(use.unit);
    key.push_back(int(use.operand->getOperandNumber()));
  }
  return key;
}

void Model::addCopy(ValueModel &value) {
  const Unit &unit = units[value.unit];
  // What the uses ask for, and which use asks for it.
  std::vector<int> &copies = value.copies;
  std::vector<std::vector<int>> requiredOf(value.uses.size());
  for (auto [index, use] : llvm::enumerate(value.uses)) {
    if (use.unit < 0)
      continue;
    const Unit &user = units[use.unit];
    for (size_t y = 0; y < user.space.strategies.size(); ++y)
      requiredOf[index].push_back(
          allowed[user.variable][y]
              ? indexOf(copies,
                        user.operandId(int(y), use.operand->getOperandNumber()))
              : -1);
  }
  std::vector<bool> produces(value.produced.size(), false);
  for (size_t x = 0; x < value.producedOf.size(); ++x)
    if (allowed[unit.variable][x])
      produces[value.producedOf[x]] = true;
  Variable variable;
  variable.hash = tables.variables[unit.variable].hash + 1 + value.result;
  variable.name = tables.variables[unit.variable].name + " (copy)";
  for (int produced = 0; produced < int(value.produced.size()); ++produced) {
    if (!produces[produced])
      continue;
    value.states.push_back({produced, -1});
    variable.unary.push_back(0);
    for (int copy = 0; copy < int(copies.size()); ++copy) {
      Time cost = pathCost(value, value.produced[produced], copies[copy]);
      if (cost == 0 || cost >= kIllegal)
        continue; // a free conversion need not be shared
      value.states.push_back({produced, copy});
      variable.unary.push_back(cost);
    }
  }
  auto [known, isNew] =
      copyVariables.try_emplace(copyKey(value), int(tables.variables.size()));
  value.variable = known->second;
  if (isNew)
    tables.variables.push_back(std::move(variable));
  else
    for (size_t state = 0; state < variable.unary.size(); ++state)
      addUnary(value.variable, int(state), variable.unary[state]);
  addPair(unit.variable, value.variable, [&](int x, int state) {
    return value.producedOf[x] == value.states[state].produced ? 0 : kIllegal;
  });
  for (auto [index, use] : llvm::enumerate(value.uses)) {
    if (use.unit < 0) {
      for (auto [state, pair] : llvm::enumerate(value.states)) {
        Time cost = outputCost(value, value.produced[pair.produced]);
        if (pair.copy >= 0)
          cost = std::min(cost, outputCost(value, copies[pair.copy]));
        addUnary(value.variable, int(state), cost);
      }
      continue;
    }
    // table[state][required]
    std::vector<Time> table(value.states.size() * copies.size(), kIllegal);
    std::vector<bool> asked(copies.size(), false);
    for (int required : requiredOf[index])
      if (required >= 0)
        asked[required] = true;
    for (size_t state = 0; state < value.states.size(); ++state)
      for (size_t required = 0; required < copies.size(); ++required) {
        if (!asked[required])
          continue;
        auto [produced, copy] = value.states[state];
        Time cost = pathCost(value, value.produced[produced], copies[required]);
        if (copy >= 0)
          cost =
              std::min(cost, pathCost(value, copies[copy], copies[required]));
        table[state * copies.size() + required] =
            add(cost, usePenalty(value, layouts[value.produced[produced]],
                                 layouts[copies[required]]));
      }
    addPair(value.variable, units[use.unit].variable,
            [&, i = index](int state, int y) {
              int required = requiredOf[i][y];
              return required < 0
                         ? kIllegal
                         : table[size_t(state) * copies.size() + required];
            });
  }
}

/// What a value costs beside its conversions; false if that is all: constants
/// are free in every layout but partial maxima and minima.
bool Model::addSource(const ValueModel &value) {
  if (value.unit >= 0) {
    if (value.isWeight)
      for (size_t x = 0; x < value.producedOf.size(); ++x)
        addUnary(units[value.unit].variable, int(x),
                 storagePenalty(value,
                                layouts[value.produced[value.producedOf[x]]]));
    return true;
  }
  for (const Use &use : value.uses) {
    if (use.unit < 0)
      continue;
    const auto &strategies = units[use.unit].space.strategies;
    for (size_t x = 0; x < strategies.size(); ++x)
      for (AxisState state :
           strategies[x].operands[use.operand->getOperandNumber()].states)
        if (state.kind == Kind::PMax || state.kind == Kind::PMin)
          addUnary(units[use.unit].variable, int(x), kIllegal);
  }
  return false;
}

void Model::collectPairs() {
  for (auto &[key, table] : pairs)
    tables.pairs.push_back({key.first, key.second, std::move(table)});
  pairs.clear();
}

void Model::build() {
  for (const Variable &variable : tables.variables) {
    std::vector<bool> &legal = allowed.emplace_back();
    for (Time cost : variable.unary)
      legal.push_back(cost < kIllegal);
  }
  for (ValueModel &value : values) {
    if (!addSource(value))
      continue;
    if (value.uses.size() == 1)
      addSingleUse(value);
    else if (value.uses.size() > 1)
      addCopy(value);
  }
  collectPairs();
}

} // namespace mtp::plan
