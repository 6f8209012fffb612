// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RegionRows.cpp - sweeps over rows, and what they keep --------------===//

#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/RegionEmitter.h"

using namespace mlir;
using namespace mtp;

const Level::RowCache *RegionEmitter::findCache(Level &level, Value tensor,
                                                ArrayRef<IndexExpr> indices) {
  for (Level *at = &level; at; at = at->parent)
    for (const Level::RowCache &cache : at->rowCaches) {
      if (cache.tensor != tensor)
        continue;
      bool same = true;
      for (unsigned dim = 0; dim < indices.size(); ++dim)
        same &= llvm::is_contained(cache.swept, dim) ||
                indices[dim] == cache.indices[dim];
      if (same)
        return &cache;
    }
  return nullptr;
}

bool RegionEmitter::worthKeeping(Value tensor, Operation *user,
                                 bool severalSweeps) {
  Value source = tensor;
  while (Operation *def = source.getDefiningOp()) {
    const OpEmitter *emitter = emitterOf(def);
    if (!emitter || emitter->kind != FusionKind::Move || emitter->cost > 0)
      break;
    source = def->getOperand(0);
  }
  if (isa<BlockArgument>(source))
    return false;
  if (Operation *def = source.getDefiningOp())
    if (emitterOf(def) && emitterOf(def)->kind == FusionKind::Source)
      return false;
  return severalSweeps ||
         llvm::any_of(tensor.getUsers(),
                      [&](Operation *other) { return other != user; });
}

int RegionEmitter::resultBuffer(Value tensor, ArrayRef<IndexExpr> indices,
                                ArrayRef<unsigned> swept, Level &level) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!rowMode || &level != rowLevel || !readsResults() ||
      registerType(type.getElementType()) != storageType(type.getElementType()))
    return -1;
  for (auto [number, value] : llvm::enumerate(
           region.getBody().front().getTerminator()->getOperands())) {
    if (value != tensor || stored[number])
      continue;
    bool same = true;
    for (unsigned dim = 0; dim < indices.size(); ++dim)
      same &= llvm::is_contained(swept, dim)
                  ? !llvm::is_contained(rowDims[number], dim)
                  : type.getDimSize(dim) == 1 ||
                        indices[dim] == rowIndices[number][dim];
    if (same)
      return number;
  }
  return -1;
}

SmallVector<Value>
RegionEmitter::sweep(Operation *op, unsigned number, Value input,
                     ArrayRef<IndexExpr> indices, ArrayRef<unsigned> swept,
                     ValueRange initial, bool severalSweeps, SweepBody body) {
  auto type = cast<RankedTensorType>(input.getType());
  Indices at(indices.begin(), indices.end());
  SmallVector<int64_t> extents;
  int64_t elements = 1;
  for (unsigned dim : swept) {
    at[dim] = IndexExpr();
    extents.push_back(type.getDimSize(dim));
    elements *= extents.back();
  }
  Level &level = levelOf(at);
  At here(builder, current, level);
  Type kept = registerType(type.getElementType());
  Level::RowCache cache{input, at, SmallVector<unsigned>(swept), Value(), -1};
  bool keeping = (severalSweeps || (rowMode && &level == rowLevel)) &&
                 !findCache(level, input, at);
  if (keeping) {
    cache.resultNumber = resultBuffer(input, at, swept, level);
    if (cache.resultNumber >= 0)
      cache.buffer = buffers[region.getNumArguments() + cache.resultNumber];
    else if (worthKeeping(input, op, severalSweeps) && hasRoom(kept, elements))
      cache.buffer = scratch(kept, elements);
    keeping = cache.buffer != nullptr;
  }
  auto result = emitNest(
      level, {op, number}, extents, initial,
      [&](ArrayRef<IndexExpr> dims, ValueRange carried) {
        Indices inside = at;
        for (auto [i, dim] : llvm::enumerate(swept))
          inside[dim] = dims[i];
        Value value = element(input, inside);
        if (keeping) {
          moveTo(*current);
          if (cache.resultNumber >= 0)
            storeAt(cache.buffer, type.getElementType(),
                    linearize(inside, type.getShape()), value);
          else
            storeAt(cache.buffer, kept, linearize(dims, extents), value);
        }
        moveTo(*current);
        return body(value, inside, carried);
      },
      /*parallel=*/false, /*allParallel=*/false);
  if (keeping) {
    level.rowCaches.push_back(cache);
    if (cache.resultNumber >= 0)
      stored[cache.resultNumber] = true;
  }
  return result;
}
