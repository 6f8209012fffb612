// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RegionColumns.cpp - sums down columns, in the order of rows --------===//
//
// A reduction over leading dimensions (the gradient of a bias) whose elements
// each went down their column would touch a new line of memory at every step.
// Instead a block of columns is summed at once, row by row:
//
//   for a block of columns:                      in parallel
//     sum[..] = 0
//     for each row:
//       for each column of the block: sum[c] += element(row, c)
//     for each column of the block: store f(sum[c])
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/RegionEmitter.h"
#include "compiler/codegen/emit/RowOps.h"

using namespace mlir;
using namespace mtp;

/// Fewer rows or columns are summed element by element.
static constexpr int64_t kLeastRows = 4, kLeastColumns = 8;
/// Columns of a block: their sums stay in the first cache, and a row of it is
/// worth a page of memory.
static constexpr int64_t kBlock = 256, kMostBlock = 1024;

/// The divisor of `columns` that is the largest up to kBlock, or all columns if
/// that is small.
static int64_t blockOf(int64_t columns) {
  if (columns <= kBlock)
    return columns;
  int64_t best = 1;
  for (int64_t width = 1; width <= kBlock; ++width)
    if (columns % width == 0)
      best = width;
  if (best >= 32)
    return best;
  for (int64_t width = kBlock; width <= kMostBlock; ++width)
    if (columns % width == 0)
      return width;
  return columns;
}

void RegionEmitter::planColumns() {
  columnReduction = nullptr;
  if (rowMode)
    return;
  Operation *reduction = nullptr;
  for (Operation &op : region.getBody().front()) {
    if (!sweptDims(&op))
      continue;
    if (reduction || emitterOf(&op)->kind != FusionKind::Reduce)
      return;
    reduction = &op;
  }
  if (!reduction)
    return;
  Value input = reduction->getOperand(0), sums = reduction->getResult(0);
  ArrayRef<int64_t> shape = shapeOf(sums);
  auto swept = *sweptDims(reduction);
  if (shape.empty() ||
      llvm::is_contained(swept, unsigned(shapeOf(input).size()) - 1))
    return;
  int64_t rows = 1;
  for (unsigned dim : swept)
    rows *= shapeOf(input)[dim];
  auto results = region.getBody().front().getTerminator()->getOperands();
  bool alike = llvm::all_of(
      results, [&](Value result) { return shapeOf(result) == shape; });
  int64_t width = blockOf(shape.back());
  if (!alike || rows < kLeastRows || shape.back() < kLeastColumns ||
      !hasRoom(registerType(elementTypeOf(sums)), width))
    return;
  columnReduction = reduction;
  columnWidth = width;
}

void RegionEmitter::emitColumns() {
  Operation *op = columnReduction;
  Value input = op->getOperand(0), sums = op->getResult(0);
  auto results = region.getBody().front().getTerminator()->getOperands();
  Type kept = registerType(elementTypeOf(sums));
  auto swept = *sweptDims(op);
  SmallVector<int64_t> blocks(shapeOf(sums)), rows;
  blocks.back() /= columnWidth;
  for (unsigned dim : swept)
    rows.push_back(shapeOf(input)[dim]);
  rows.push_back(columnWidth);
  emitNest(
      *root, {nullptr, 0}, blocks, {},
      [&](ArrayRef<IndexExpr> block, ValueRange) {
        Level &level = *current;
        Value memory = scratch(kept, columnWidth);
        Indices first(block.begin(), block.end());
        first.back() = first.back() * columnWidth;
        auto column = [&](const IndexExpr &offset) {
          Indices at = first;
          at.back() = at.back() + offset;
          return at;
        };
        auto inside = [&](NestKey key, ArrayRef<int64_t> extents,
                          llvm::function_ref<void(ArrayRef<IndexExpr>)> body) {
          emitNest(
              level, key, extents, {},
              [&](ArrayRef<IndexExpr> dims, ValueRange) {
                body(dims);
                moveTo(*current);
                return SmallVector<Value>();
              },
              /*parallel=*/false, /*allParallel=*/false);
        };
        inside({op, 0}, {columnWidth}, [&](ArrayRef<IndexExpr> dims) {
          Scalars s(*this, elementTypeOf(sums));
          storeAt(memory, kept, dims[0], neutralOf(s, op));
        });
        inside({op, 1}, rows, [&](ArrayRef<IndexExpr> dims) {
          Indices at = operandIndices(op, column(dims.back()));
          for (auto [i, dim] : llvm::enumerate(swept))
            at[dim] = dims[i];
          Value x = element(input, at);
          moveTo(*current);
          Scalars s(*this, elementTypeOf(input));
          Value sum = loadAt(memory, kept, dims.back());
          storeAt(memory, kept, dims.back(), combine(s, op, sum, x));
        });
        level.rowCaches.push_back({sums,
                                   first,
                                   {unsigned(first.size()) - 1},
                                   memory,
                                   -1,
                                   first.back()});
        inside({nullptr, 1}, {columnWidth}, [&](ArrayRef<IndexExpr> dims) {
          Indices at = column(dims[0]);
          for (Value result : results)
            element(result, at);
          for (size_t number = 0; number < results.size(); ++number)
            storeResult(number, at);
        });
        return SmallVector<Value>();
      },
      /*parallel=*/true, /*allParallel=*/true);
}
