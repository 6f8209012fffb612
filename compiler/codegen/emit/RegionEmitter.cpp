// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/RegionEmitter.h"
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/Scalars.h"
#include "runtime/abi/Abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstddef>

using namespace mlir;
using namespace mtp;

RegionEmitter::RegionEmitter(func::FuncOp region, mlir::Block &target,
                             FaultNumber faultNumber)
    : builder(region.getContext()), loc(UnknownLoc::get(region.getContext())),
      region(region), target(target), faultNumber(faultNumber) {}

RegionEmitter::~RegionEmitter() = default;

//===----------------------------------------------------------------------===//
// Runtime
//===----------------------------------------------------------------------===//

static Value fieldOf(RegionEmitter &emit, Value base, int64_t offset,
                     Type type) {
  auto pointer = LLVM::LLVMPointerType::get(emit.builder.getContext());
  Value at = LLVM::GEPOp::create(
      emit.builder, emit.loc, pointer, emit.builder.getI8Type(), base,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  return LLVM::LoadOp::create(emit.builder, emit.loc, type, at);
}

Value RegionEmitter::callMath(unsigned index, Type type, ValueRange operands) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Value callee;
  auto &known = root->memo[{&mathTable, index}];
  if (known.empty()) {
    OpBuilder::InsertionGuard guard(builder);
    moveTo(*root);
    if (!mathTable)
      mathTable = fieldOf(*this, rank, offsetof(MtpRank, math), pointer);
    known.push_back({Indices(), fieldOf(*this, mathTable,
                                        index * sizeof(void *), pointer)});
  }
  callee = known.front().second;
  auto signature =
      LLVM::LLVMFunctionType::get(type, SmallVector<Type>(operands.getTypes()));
  SmallVector<Value> all{callee};
  llvm::append_range(all, operands);
  return LLVM::CallOp::create(builder, loc, signature, all).getResult();
}

int64_t RegionEmitter::faultOffset() const { return offsetof(MtpRank, fault); }

void RegionEmitter::faultIf(Value condition, const std::string &message) {
  int64_t number = faultNumber(message);
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  scf::IfOp::create(builder, loc, condition, [&](OpBuilder &nested, Location) {
    OpBuilder::InsertionGuard guard(builder);
    builder.restoreInsertionPoint(nested.saveInsertionPoint());
    Value fault = fieldOf(*this, rank, faultOffset(), pointer);
    LLVM::StoreOp::create(
        builder, loc, constant(number), fault, /*alignment=*/8,
        /*isVolatile=*/false, /*isNonTemporal=*/false,
        /*isInvariantGroup=*/false, LLVM::AtomicOrdering::monotonic);
    scf::YieldOp::create(builder, loc);
  });
}

Value RegionEmitter::refuse(Operation *op, const Twine &message) {
  if (!failedOnce)
    op->emitOpError() << message.str();
  failedOnce = true;
  Type type = op->getNumResults()
                  ? getElementTypeOrSelf(op->getResult(0).getType())
                  : builder.getF32Type();
  return arith::ConstantOp::create(builder, loc,
                                   builder.getZeroAttr(registerType(type)));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Level &RegionEmitter::naturalLevel(const IndexExpr &expr) {
  Level *level = root;
  for (const IndexExpr::Term &term : expr.terms)
    if (variables[term.variable].level->depth > level->depth)
      level = variables[term.variable].level;
  return *level;
}

Level &RegionEmitter::levelOf(ArrayRef<IndexExpr> indices) {
  Level *level = floor;
  for (const IndexExpr &expr : indices)
    if (Level &natural = naturalLevel(expr); natural.depth > level->depth)
      level = &natural;
  return *level;
}

void RegionEmitter::moveTo(Level &level) {
  if (level.anchor)
    builder.setInsertionPoint(level.anchor);
  else if (!level.block->empty() &&
           level.block->back().hasTrait<OpTrait::IsTerminator>())
    builder.setInsertionPoint(&level.block->back());
  else
    builder.setInsertionPointToEnd(level.block);
}

namespace {
Value *lookup(Level &level, std::pair<void *, unsigned> key,
              ArrayRef<IndexExpr> indices) {
  auto it = level.memo.find(key);
  if (it == level.memo.end())
    return nullptr;
  for (auto &[at, value] : it->second)
    if (ArrayRef<IndexExpr>(at) == indices)
      return &value;
  return nullptr;
}
void remember(Level &level, std::pair<void *, unsigned> key,
              ArrayRef<IndexExpr> indices, Value value) {
  level.memo[key].push_back({Indices(indices.begin(), indices.end()), value});
}
} // namespace

Value RegionEmitter::element(Value tensor, ArrayRef<IndexExpr> indices) {
  Level &level = levelOf(indices);
  std::pair<void *, unsigned> key{tensor.getAsOpaquePointer(), 0};
  if (Value *known = lookup(level, key, indices))
    return *known;
  At at(builder, current, level);
  moveTo(level);
  auto type = cast<RankedTensorType>(tensor.getType());
  Value result;
  if (const Level::RowCache *cache = findCache(level, tensor, indices)) {
    if (cache->resultNumber >= 0) {
      result = loadAt(cache->buffer, type.getElementType(),
                      linearize(indices, type.getShape()));
    } else {
      SmallVector<int64_t> extents;
      Indices inner;
      for (unsigned dim : cache->swept) {
        extents.push_back(type.getDimSize(dim));
        inner.push_back(indices[dim]);
      }
      Type kept = registerType(type.getElementType());
      result = loadAt(cache->buffer, kept,
                      linearize(inner, extents) + cache->first * -1);
    }
  } else if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    result = loadAt(buffers[argument.getArgNumber()], type.getElementType(),
                    linearize(indices, type.getShape()));
  } else {
    auto produced = cast<OpResult>(tensor);
    const OpEmitter *emitter = emitterOf(produced.getOwner());
    result = emitter ? emitter->emit(*this, produced.getOwner(),
                                     produced.getResultNumber(), indices)
                     : refuse(produced.getOwner(), "has no kernel");
  }
  remember(level, key, indices, result);
  return result;
}

Value RegionEmitter::broadcastElement(Value tensor,
                                      ArrayRef<IndexExpr> indices) {
  return element(
      tensor,
      broadcastIndices(indices,
                       cast<RankedTensorType>(tensor.getType()).getShape()));
}

SmallVector<Value>
RegionEmitter::once(Operation *op, unsigned number, ArrayRef<IndexExpr> indices,
                    llvm::function_ref<SmallVector<Value>()> compute) {
  Level &level = levelOf(indices);
  SmallVector<Value> result;
  // Keys from 1000 on, so that they don't meet those of results.
  for (unsigned i = 0;; ++i) {
    Value *known = lookup(level, {op, 1000 + number * 16 + i}, indices);
    if (!known)
      break;
    result.push_back(*known);
  }
  if (!result.empty())
    return result;
  At at(builder, current, level);
  moveTo(level);
  result = compute();
  for (auto [i, value] : llvm::enumerate(result))
    remember(level, {op, 1000 + number * 16 + i}, indices, value);
  return result;
}

VariableId RegionEmitter::newVariable(Variable variable) {
  variables.push_back(std::move(variable));
  return variables.size() - 1;
}

IndexExpr RegionEmitter::variableAt(Value value, ArrayRef<IndexExpr> at,
                                    int64_t low, int64_t high) {
  return variableOf(value, levelOf(at), low, high);
}

IndexExpr RegionEmitter::variableOf(Value value, Level &level, int64_t low,
                                    int64_t high) {
  // The same value is the same variable, so that positions compare equal.
  for (size_t id = variables.size(); id-- > 0;)
    if (variables[id].value == value)
      return IndexExpr::variable(id);
  Variable variable;
  variable.level = &level;
  variable.low = low;
  variable.high = high;
  variable.value = value;
  return IndexExpr::variable(newVariable(variable));
}

Value RegionEmitter::variableValue(VariableId id) {
  Variable &variable = variables[id];
  if (variable.value)
    return variable.value;
  LoopGroup &group = *variable.group;
  if (group.variables.size() == 1)
    return group.counter;
  if (Value *known = lookup(*variable.level, {&group, id}, {}))
    return *known;
  At at(builder, current, *variable.level);
  moveTo(*variable.level);
  int64_t minor = 1;
  for (VariableId other : llvm::reverse(group.variables)) {
    if (other == id)
      break;
    minor *= variables[other].high + 1;
  }
  Value value = group.counter;
  if (minor != 1)
    value = arith::DivUIOp::create(builder, loc, value, constant(minor));
  if (id != group.variables.front())
    value = arith::RemUIOp::create(builder, loc, value,
                                   constant(variable.high + 1));
  remember(*variable.level, {&group, id}, {}, value);
  return value;
}

Value RegionEmitter::materialize(const IndexExpr &expr) {
  recordAccess(expr);
  std::function<Value(const IndexExpr &)> emit =
      [&](const IndexExpr &part) -> Value {
    Level &level = naturalLevel(part);
    std::pair<void *, unsigned> key{this, 0};
    if (Value *known = lookup(level, key, part))
      return *known;
    IndexExpr outer(part.constant), here;
    for (const IndexExpr::Term &term : part.terms)
      (variables[term.variable].level == &level && &level != root ? here
                                                                  : outer)
          .terms.push_back(term);
    At at(builder, current, level);
    Value sum;
    auto add = [&](Value value, int64_t coefficient) {
      if (coefficient != 1)
        value =
            arith::MulIOp::create(builder, loc, value, constant(coefficient));
      sum =
          sum ? Value(arith::AddIOp::create(builder, loc, sum, value)) : value;
    };
    if (here.terms.empty()) { // at the root: constants and values of the rank
      moveTo(level);
      for (const IndexExpr::Term &term : outer.terms)
        add(variableValue(term.variable), term.coefficient);
      if (!sum || outer.constant)
        add(constant(outer.constant), 1);
    } else {
      if (outer.constant || !outer.terms.empty())
        sum = emit(outer);
      SmallVector<IndexExpr::Term> left(here.terms.begin(), here.terms.end());
      while (!left.empty()) {
        IndexExpr::Term term = left.front();
        LoopGroup *group = variables[term.variable].group;
        // All variables of a merged loop with continuing strides: its counter.
        bool whole = group && group->variables.size() > 1;
        int64_t minor = 1, unit = 0;
        if (whole)
          for (VariableId id : llvm::reverse(group->variables)) {
            auto it =
                llvm::find_if(left, [&](auto &t) { return t.variable == id; });
            int64_t coefficient = it == left.end() ? 0 : it->coefficient;
            if (minor == 1)
              unit = coefficient;
            whole &= unit != 0 && coefficient == unit * minor;
            minor *= variables[id].high + 1;
          }
        if (whole) {
          moveTo(level);
          add(group->counter, unit);
          llvm::erase_if(left, [&](auto &t) {
            return variables[t.variable].group == group;
          });
        } else {
          Value value = variableValue(term.variable);
          moveTo(level);
          add(value, term.coefficient);
          left.erase(left.begin());
        }
      }
    }
    remember(level, key, part, sum);
    return sum;
  };
  return emit(expr);
}

std::pair<int64_t, int64_t> RegionEmitter::range(const IndexExpr &expr) const {
  int64_t low = expr.constant, high = expr.constant;
  for (const IndexExpr::Term &term : expr.terms) {
    const Variable &variable = variables[term.variable];
    int64_t a = term.coefficient * variable.low,
            b = term.coefficient * variable.high;
    low += std::min(a, b);
    high += std::max(a, b);
  }
  return {low, high};
}

std::pair<IndexExpr, IndexExpr> RegionEmitter::divMod(const IndexExpr &expr,
                                                      int64_t divisor) {
  if (divisor == 1)
    return {expr, IndexExpr()};
  if (auto [low, high] = range(expr); low >= 0 && high < divisor)
    return {IndexExpr(), expr};
  int64_t down = expr.constant >= 0
                     ? expr.constant / divisor
                     : -((-expr.constant + divisor - 1) / divisor);
  IndexExpr quotient(down), remainder(expr.constant - down * divisor);
  for (const IndexExpr::Term &term : expr.terms) {
    if (term.coefficient % divisor == 0)
      quotient.terms.push_back({term.variable, term.coefficient / divisor});
    else
      remainder.terms.push_back(term);
  }
  if (auto [low, high] = range(remainder); low >= 0 && high < divisor)
    return {quotient, remainder};
  // Cut the counters whose part above the divisor belongs to the quotient.
  for (const IndexExpr::Term &term : remainder.terms) {
    const Variable &variable = variables[term.variable];
    if (!variable.nest || term.coefficient <= 0 ||
        divisor % term.coefficient != 0)
      continue;
    const LoopPart &part = variable.nest->parts[variable.part];
    int64_t at = divisor / term.coefficient;
    if (at < part.extent && part.extent % at == 0)
      replan |= plans[variable.nest->key].cut(part.dim, part.stride * at);
  }
  Level &level = naturalLevel(remainder);
  At at(builder, current, level);
  Value value = materialize(remainder);
  moveTo(level);
  auto [low, high] = range(remainder);
  auto divide = [&](bool wantQuotient) {
    Indices key{remainder, IndexExpr(divisor)};
    std::pair<void *, unsigned> kind{&plans, wantQuotient};
    if (Value *known = lookup(level, kind, key))
      return *known;
    Value by = constant(divisor), result;
    if (low >= 0)
      result = wantQuotient
                   ? Value(arith::DivUIOp::create(builder, loc, value, by))
                   : Value(arith::RemUIOp::create(builder, loc, value, by));
    else if (wantQuotient)
      result = arith::FloorDivSIOp::create(builder, loc, value, by);
    else {
      Value floor = arith::FloorDivSIOp::create(builder, loc, value, by);
      result = arith::SubIOp::create(
          builder, loc, value, arith::MulIOp::create(builder, loc, floor, by));
    }
    remember(level, kind, key, result);
    return result;
  };
  auto floorDiv = [&](int64_t x) {
    return x >= 0 ? x / divisor : -((-x + divisor - 1) / divisor);
  };
  IndexExpr more =
      variableOf(divide(true), level, floorDiv(low), floorDiv(high));
  IndexExpr rest = variableOf(divide(false), level, 0, divisor - 1);
  return {quotient + more, rest};
}

Indices RegionEmitter::delinearize(IndexExpr linear, ArrayRef<int64_t> shape) {
  Indices result(shape.size());
  size_t first = 0; // the first dimension of size > 1 takes what is left
  while (first < shape.size() && shape[first] == 1)
    ++first;
  for (size_t d = shape.size(); d-- > first;) {
    if (d == first) {
      result[d] = linear;
      break;
    }
    auto [quotient, remainder] = divMod(linear, shape[d]);
    result[d] = remainder;
    linear = quotient;
  }
  return result;
}

int RegionEmitter::segment(const IndexExpr &expr, ArrayRef<int64_t> bounds) {
  auto [low, high] = range(expr);
  auto below = [&](int64_t x) {
    return llvm::count_if(bounds, [&](int64_t b) { return b <= x; });
  };
  if (below(low) == below(high))
    return below(low);
  if (!shapesLoops())
    return -1;
  // Only one counter with a coefficient c > 0 can be broken: at (bound - rest)
  // / c.
  if (expr.terms.size() == 1 && expr.terms[0].coefficient > 0 &&
      variables[expr.terms[0].variable].nest) {
    const Variable &variable = variables[expr.terms[0].variable];
    int64_t c = expr.terms[0].coefficient;
    NestPlan &plan = plans[variable.nest->key];
    for (int64_t bound : bounds) {
      int64_t position = bound - expr.constant;
      position = position >= 0 ? (position + c - 1) / c : 0;
      if (position > variable.low && position <= variable.high)
        replan |= plan.breakAt(variable.nest->parts[variable.part], position);
    }
    return -1;
  }
  // Parts of one dimension: cut where the bound falls between major positions.
  for (const IndexExpr::Term &term : expr.terms) {
    const Variable &variable = variables[term.variable];
    if (!variable.nest || term.coefficient <= 0)
      return -1;
  }
  const IndexExpr::Term &major =
      *llvm::max_element(expr.terms, [](auto &a, auto &b) {
        return a.coefficient < b.coefficient;
      });
  const Variable &variable = variables[major.variable];
  IndexExpr rest = expr;
  llvm::erase_if(rest.terms,
                 [&](auto &t) { return t.variable == major.variable; });
  auto [restLow, restHigh] = range(rest);
  for (int64_t bound : bounds) {
    int64_t position = bound - restLow;
    if (restHigh - restLow >= major.coefficient ||
        position % major.coefficient != 0)
      continue;
    position /= major.coefficient;
    if (position > variable.low && position <= variable.high)
      replan |= plans[variable.nest->key].breakAt(
          variable.nest->parts[variable.part], position);
  }
  return -1;
}

Value RegionEmitter::conditional(Value condition, Type type,
                                 llvm::function_ref<Value()> whenTrue,
                                 llvm::function_ref<Value()> whenFalse) {
  Level &outer = *current, *savedFloor = floor;
  moveTo(outer);
  auto branch =
      scf::IfOp::create(builder, loc, type, condition, /*withElseRegion=*/true);
  Operation *savedAnchor = outer.anchor;
  outer.anchor = branch;
  auto fill = [&](Block *block, llvm::function_ref<Value()> code) {
    Level &level = newLevel(outer, block);
    At at(builder, current, level);
    floor = &level;
    moveTo(level);
    Value value = code();
    moveTo(level);
    scf::YieldOp::create(builder, loc, value);
    floor = savedFloor;
    closeLevel(level);
  };
  fill(branch.thenBlock(), whenTrue);
  fill(branch.elseBlock(), whenFalse);
  outer.anchor = savedAnchor;
  moveTo(outer);
  return branch.getResult(0);
}
