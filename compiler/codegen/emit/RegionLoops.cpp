// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/InPlace.h"
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/Nest.h"
#include "compiler/codegen/emit/RegionEmitter.h"
#include "compiler/codegen/emit/RowOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mtp;

/// Passes until no cut or break is missing.
static constexpr int kMaxPasses = 24;
/// The outermost loops run in parallel until there are so many iterations.
static constexpr int64_t kEnoughIterations = 64;
/// Elements from which on neighbours don't share a line of the cache.
static constexpr int64_t kFarApart = 16;
/// Multiplications that are worth waking a thread.
static constexpr int64_t kGrainWork = 1 << 16;

//===----------------------------------------------------------------------===//
// Nests
//===----------------------------------------------------------------------===//

Level &RegionEmitter::newLevel(Level &parent, Block *block) {
  levels.emplace_back();
  Level &level = levels.back();
  level.parent = &parent;
  level.depth = parent.depth + 1;
  level.block = block;
  return level;
}

void RegionEmitter::closeLevel(Level &level) {
  level.memo.clear();
  level.rowCaches.clear();
}

void RegionEmitter::recordAccess(const IndexExpr &expr) {
  if (merging)
    return;
  for (const IndexExpr::Term &term : expr.terms) {
    const NestInstance *nest = variables[term.variable].nest;
    if (!nest)
      continue;
    // Parts p and p + 1 continue each other if c[p] = c[p+1] * extent[p+1].
    SmallVector<int64_t> coefficients(nest->parts.size(), 0);
    for (const IndexExpr::Term &other : expr.terms)
      if (variables[other.variable].nest == nest)
        coefficients[variables[other.variable].part] = other.coefficient;
    NestPlan &plan = plans[nest->key];
    // Steps of one element in another loop than the innermost, which jumps.
    if (shapesLoops() && nest->key == NestKey{nullptr, 0} &&
        coefficients.back() >= kFarApart)
      for (unsigned part = 0; part + 1 < coefficients.size(); ++part)
        if (coefficients[part] == 1)
          replan |= plan.tile(nest->parts[part], nest->parts.back());
    for (unsigned part = 0; part + 1 < coefficients.size(); ++part)
      if (coefficients[part] !=
          coefficients[part + 1] * nest->parts[part + 1].extent)
        plan.apart.insert(part);
  }
}

SmallVector<Value> RegionEmitter::emitNest(Level &parent, NestKey key,
                                           ArrayRef<int64_t> extents,
                                           ValueRange initial, NestBody body,
                                           bool parallel, bool allParallel) {
  NestPlan &plan = plans[key];
  nests.push_back({key, plan.parts(extents)});
  Nest nest{&nests.back(), &plan, {}, SmallVector<int64_t>(extents), {}, body};
  const auto &parts = nest.instance->parts;
  nest.variables.resize(parts.size());
  for (unsigned part = 0; part < parts.size(); ++part) {
    bool isVector = vectorWidth > 1 && parallel && part + 1 == parts.size();
    bool joins = merging && part > 0 && !isVector &&
                 !plan.apart.count(part - 1) && !plan.hasBreaks(parts[part]) &&
                 !plan.hasBreaks(parts[part - 1]);
    if (!joins)
      nest.groups.emplace_back();
    nest.groups.back().push_back(part);
  }
  if (!parallel && isShared(parent))
    return emitShared(nest, parent, initial);
  if (!parallel)
    return emitGroups(nest, parent, 0, initial);
  // As many leading loops as may be flattened: a broken one only alone.
  size_t taken = 0;
  count = 1;
  size_t most = nest.groups.size() - (vectorWidth > 1 ? 1 : 0);
  while (taken < most) {
    bool last = taken + 1 == most;
    if (taken > 0 && (nest.broken(taken) || nest.broken(0) ||
                      (!allParallel && (last || count >= kEnoughIterations))))
      break;
    count *= nest.trips(taken++);
  }
  emitParallel(nest, parent, taken);
  return {};
}

SmallVector<Value> RegionEmitter::emitShared(Nest &nest, Level &parent,
                                             ValueRange initial) {
  return emitGroups(nest, parent, 0, initial);
}

SmallVector<Value> RegionEmitter::emitGroups(Nest &nest, Level &parent,
                                             size_t first, ValueRange carried) {
  At here(builder, current, parent);
  if (first == nest.groups.size()) {
    Indices dims(nest.extents.size());
    for (auto [part, variable] :
         llvm::zip(nest.instance->parts, nest.variables))
      dims[part.dim] =
          dims[part.dim] + IndexExpr::variable(variable) * part.stride;
    moveTo(parent);
    return nest.body(dims, carried);
  }
  ArrayRef<unsigned> members = nest.groups[first];
  SmallVector<std::pair<int64_t, int64_t>> ranges{{0, nest.trips(first) - 1}};
  if (members.size() == 1)
    ranges = nest.plan->ranges(nest.instance->parts[members[0]]);
  SmallVector<Value> values(carried);
  Operation *savedAnchor = parent.anchor;
  for (auto [low, high] : ranges) {
    moveTo(parent);
    Value from = constant(low), to = constant(high + 1), step = constant(1);
    auto loop = scf::ForOp::create(builder, loc, from, to, step, values);
    parent.anchor = loop;
    Level &level = newLevel(parent, loop.getBody());
    addGroup(nest, first, level, loop.getInductionVar(), low, high);
    auto inner = emitGroups(nest, level, first + 1, loop.getRegionIterArgs());
    if (!values.empty()) {
      builder.setInsertionPointToEnd(loop.getBody());
      scf::YieldOp::create(builder, loc, inner);
      values.assign(loop.getResults().begin(), loop.getResults().end());
    }
    closeLevel(level);
    parent.anchor = savedAnchor;
  }
  return values;
}

void RegionEmitter::addGroup(Nest &nest, size_t number, Level &level,
                             Value counter, int64_t low, int64_t high) {
  groups.emplace_back();
  LoopGroup &group = groups.back();
  group.counter = counter;
  group.level = &level;
  bool single = nest.groups[number].size() == 1;
  for (unsigned part : nest.groups[number]) {
    Variable variable;
    variable.level = &level;
    variable.low = single ? low : 0;
    variable.high = single ? high : nest.instance->parts[part].extent - 1;
    variable.group = &group;
    variable.nest = nest.instance;
    variable.part = part;
    nest.variables[part] = newVariable(variable);
    group.variables.push_back(nest.variables[part]);
  }
}

void RegionEmitter::emitParallel(Nest &nest, Level &parent, size_t taken) {
  At here(builder, current, parent);
  SmallVector<std::pair<int64_t, int64_t>> ranges{{0, count - 1}};
  bool broken = taken == 1 && nest.broken(0);
  if (broken)
    ranges = nest.plan->ranges(nest.instance->parts[nest.groups[0][0]]);
  for (auto [low, high] : ranges) {
    moveTo(parent);
    Value from = begin, to = end;
    if (broken) {
      from = arith::MaxSIOp::create(builder, loc, from, constant(low));
      to = arith::MinSIOp::create(builder, loc, to, constant(high + 1));
    }
    auto loop = scf::ForOp::create(builder, loc, from, to, constant(1));
    parent.anchor = loop;
    Level &level = newLevel(parent, loop.getBody());
    Value rest = loop.getInductionVar();
    // Flattened loops, minor first: counter = rest % trips, rest = rest /
    // trips.
    for (size_t number = taken; number-- > 0;) {
      moveTo(level);
      Value counter = rest;
      if (number > 0) {
        Value trips = constant(nest.trips(number));
        counter = arith::RemUIOp::create(builder, loc, rest, trips);
        rest = arith::DivUIOp::create(builder, loc, rest, trips);
      }
      addGroup(nest, number, level, counter, broken ? low : 0,
               broken ? high : nest.trips(number) - 1);
    }
    emitGroups(nest, level, taken, {});
    closeLevel(level);
    parent.anchor = nullptr;
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The leading dimensions of `shape` with `rows` elements; nothing if a
/// dimension would be split.
static std::optional<SmallVector<unsigned>> leadingDims(ArrayRef<int64_t> shape,
                                                        int64_t rows) {
  SmallVector<unsigned> dims;
  int64_t product = 1;
  for (unsigned d = 0; d < shape.size() && product != rows; ++d) {
    product *= shape[d];
    dims.push_back(d);
  }
  if (product != rows)
    return std::nullopt;
  return dims;
}

/// Rows: the positions that are not swept. If the region sweeps, every result
/// is iterated row by row, so that what a row needs is computed once.
void RegionEmitter::planRows() {
  rowMode = false;
  rowDims.clear();
  auto results = region.getBody().front().getTerminator()->getOperands();
  for (Operation &op : region.getBody().front()) {
    auto swept = sweptDims(&op);
    if (!swept)
      continue;
    ArrayRef<int64_t> shape = shapeOf(op.getOperand(0));
    int64_t rows = 1;
    SmallVector<unsigned> kept;
    for (unsigned d = 0; d < shape.size(); ++d)
      if (!llvm::is_contained(*swept, d)) {
        rows *= shape[d];
        kept.push_back(d);
      }
    bool possible = true;
    for (Value result : results) {
      std::optional<SmallVector<unsigned>> dims;
      if (sweepsTrailingDims(&op))
        dims = leadingDims(shapeOf(result), rows);
      else if (shapeOf(result).size() == shape.size())
        dims = kept;
      possible &= dims.has_value();
      if (dims)
        rowDims.push_back(*dims);
    }
    rowMode = possible;
    if (rowMode)
      return;
    rowDims.clear();
  }
}

static SmallVector<int64_t> pick(ArrayRef<int64_t> shape,
                                 ArrayRef<unsigned> dims) {
  SmallVector<int64_t> result;
  for (unsigned dim : dims)
    result.push_back(shape[dim]);
  return result;
}

void RegionEmitter::storeResult(size_t number, ArrayRef<IndexExpr> indices) {
  Value result = region.getBody().front().getTerminator()->getOperand(number);
  auto type = cast<RankedTensorType>(result.getType());
  Value value = element(result, indices);
  if (rowMode && stored[number])
    return; // a sweep did it
  moveTo(*current);
  storeInResult(number, linearize(indices, type.getShape()), value);
  moveTo(*current);
}

void RegionEmitter::storeInResult(size_t number, const IndexExpr &position,
                                  Value value) {
  Value result = region.getBody().front().getTerminator()->getOperand(number);
  storeAt(buffers[region.getNumArguments() + number], elementTypeOf(result),
          position, value);
}

void RegionEmitter::emitResults() {
  planRows();
  planColumns();
  if (columnReduction)
    emitColumns();
  else if (rowMode)
    emitRows();
  else
    emitElements();
}

/// One nest over the positions of the first result; others have as many.
void RegionEmitter::emitElements() {
  auto results = region.getBody().front().getTerminator()->getOperands();
  ArrayRef<int64_t> shape = shapeOf(results[0]);
  emitNest(
      *root, {nullptr, 0}, shape, {},
      [&](ArrayRef<IndexExpr> dims, ValueRange) {
        rowLevel = current;
        enterRow();
        std::vector<Indices> at;
        for (Value result : results)
          at.push_back(
              shapeOf(result) == shape
                  ? Indices(dims)
                  : delinearize(linearize(dims, shape), shapeOf(result)));
        // All elements before the first store, which may be in place.
        for (auto [result, indices] : llvm::zip(results, at))
          element(result, indices);
        for (size_t number = 0; number < results.size(); ++number)
          storeResult(number, at[number]);
        return SmallVector<Value>();
      },
      /*parallel=*/true, /*allParallel=*/!shapesLoops());
}

void RegionEmitter::emitRows() {
  auto results = region.getBody().front().getTerminator()->getOperands();
  SmallVector<int64_t> rows = pick(shapeOf(results[0]), rowDims[0]);
  emitNest(
      *root, {nullptr, 0}, rows, {},
      [&](ArrayRef<IndexExpr> dims, ValueRange) {
        rowLevel = current;
        enterRow();
        rowIndices.assign(results.size(), {});
        stored.assign(results.size(), false);
        for (size_t number = 0; number < results.size(); ++number) {
          SmallVector<int64_t> own =
              pick(shapeOf(results[number]), rowDims[number]);
          Indices at = own == rows ? Indices(dims)
                                   : delinearize(linearize(dims, rows), own);
          rowIndices[number].resize(shapeOf(results[number]).size());
          for (auto [i, dim] : llvm::enumerate(rowDims[number]))
            rowIndices[number][dim] = at[i];
        }
        // Later results first: their sweeps may store earlier ones on the way.
        std::vector<bool> done(results.size(), false);
        for (size_t number = results.size(); number-- > 0;) {
          if (done[number] || stored[number])
            continue;
          auto innerDims = [&](size_t n) {
            SmallVector<unsigned> inner;
            for (unsigned d = 0; d < shapeOf(results[n]).size(); ++d)
              if (!llvm::is_contained(rowDims[n], d))
                inner.push_back(d);
            return inner;
          };
          SmallVector<int64_t> extents =
              pick(shapeOf(results[number]), innerDims(number));
          // Results with the same row share its loop.
          SmallVector<size_t> together;
          for (size_t other = number + 1; other-- > 0;)
            if (!done[other] &&
                pick(shapeOf(results[other]), innerDims(other)) == extents)
              together.push_back(other);
          emitNest(
              *rowLevel, {nullptr, static_cast<unsigned>(number) + 1}, extents,
              {},
              [&](ArrayRef<IndexExpr> inner, ValueRange) {
                for (size_t other : together) {
                  if (stored[other])
                    continue;
                  Indices at = rowIndices[other];
                  for (auto [i, dim] : llvm::enumerate(innerDims(other)))
                    at[dim] = inner[i];
                  storeResult(other, at);
                }
                return SmallVector<Value>();
              },
              /*parallel=*/false, /*allParallel=*/false);
          for (size_t other : together)
            done[other] = true;
        }
        return SmallVector<Value>();
      },
      /*parallel=*/true, /*allParallel=*/true);
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

void RegionEmitter::beginFunction(StringRef name) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  size_t results = region.getBody().front().getTerminator()->getNumOperands();
  size_t count = region.getNumArguments() + results;
  SmallVector<Type> inputs(count + 1, pointer);
  inputs.append(2, builder.getI64Type());
  builder.setInsertionPointToEnd(&target);
  auto made = func::FuncOp::create(builder, loc, name,
                                   builder.getFunctionType(inputs, {}));
  made.setPrivate();
  // Results overlap nothing, and operands are only read.
  for (unsigned i = 1; i <= count; ++i)
    made.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                    builder.getUnitAttr());
  Block *block = made.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  func::ReturnOp::create(builder, loc);
  begin = block->getArgument(count + 1);
  end = block->getArgument(count + 2);
  openFunction(made);
}

void RegionEmitter::openFunction(FunctionOpInterface made) {
  function = made;
  Block *block = &made.getFunctionBody().front();
  size_t count = region.getNumArguments() +
                 region.getBody().front().getTerminator()->getNumOperands();
  rank = block->getArgument(0);
  buffers.assign(block->args_begin() + 1, block->args_begin() + 1 + count);
  // One pointer for both, so that LLVM sees which accesses meet.
  if (auto pairs = region->getAttrOfType<DenseI64ArrayAttr>(kInPlace))
    for (int64_t i = 0; i + 1 < pairs.size(); i += 2)
      buffers[region.getNumArguments() + pairs[i + 1]] = buffers[pairs[i]];
  levels.emplace_back();
  root = floor = current = &levels.back();
  root->block = block;
}

LogicalResult RegionEmitter::emitOnce(StringRef name) {
  if (function)
    function.erase();
  for (Operation *global : globals)
    global->erase();
  globals.clear();
  levels.clear();
  groups.clear();
  nests.clear();
  variables.clear();
  mathTable = Value();
  scratchBytes = 0;
  replan = false;
  if (!merging)
    for (auto &[key, plan] : plans)
      plan.apart.clear();
  beginFunction(name);
  emitResults();
  return success(!failedOnce);
}

FailureOr<EmittedKernel> RegionEmitter::emit(StringRef name) {
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    if (failed(emitOnce(name)))
      return failure();
    if (!replan)
      break;
  }
  merging = true;
  if (failed(emitOnce(name)))
    return failure();
  EmittedKernel kernel;
  kernel.body = function;
  kernel.count = count;
  int64_t work = 1;
  for (Operation &op : region.getBody().front())
    if (const OpEmitter *emitter = emitterOf(&op)) {
      int64_t elements = 1;
      for (Value value : op.getOperands())
        elements = std::max(
            elements, cast<RankedTensorType>(value.getType()).getNumElements());
      for (Value value : op.getResults())
        elements = std::max(
            elements, cast<RankedTensorType>(value.getType()).getNumElements());
      if (emitter->kind !=
          FusionKind::Look) // a table is larger than what is read
        work += elements * std::max(1u, emitter->cost);
    }
  for (Value value : region.getBody().front().getTerminator()->getOperands())
    work += cast<RankedTensorType>(value.getType()).getNumElements();
  kernel.grain = std::max<int64_t>(
      1, kGrainWork / std::max<int64_t>(1, work / std::max<int64_t>(1, count)));
  return kernel;
}
