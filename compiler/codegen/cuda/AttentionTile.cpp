// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cuda/AttentionTile.h"

using namespace mlir;
using namespace mtp;

/// Longer heads would not fit into registers: of the forward pass and the
/// gradient, and of the gradient in tf32, whose fragments take twice as many.
static constexpr int64_t kMostDepth = 128, kMostTf32Depth = 96;
/// Elements between rows of shared memory beyond their length, against
/// conflicts of banks.
static constexpr int64_t kPadding = 8;

bool mtp::hasMatrixAttention(const AttentionCode &a, bool isGradient) {
  const LibraryKernelContext &context = a.context;
  Type type = a.element_;
  bool alike = elementTypeOf(context.op->getOperand(1)) == type &&
               elementTypeOf(context.op->getOperand(2)) == type;
  if (isGradient)
    alike &= elementTypeOf(context.op->getOperand(a.cotangent)) == type;
  Type compute =
      MatrixTile::computeType(type, context.capability, context.precision);
  if (!alike || !compute)
    return false;
  int64_t most = isGradient && compute.isF32() ? kMostTf32Depth : kMostDepth;
  auto fits = [&](int64_t depth, int64_t multiple) {
    return depth > 0 && depth <= most && depth % multiple == 0;
  };
  return fits(a.depth, MatrixTile::kDepth) &&
         fits(a.valueDepth, MatrixTile::kColumns) &&
         a.batch * a.heads * a.queries > 0 && a.keys > 0;
}

AttentionTile::AttentionTile(LibraryKernelContext &context)
    : a(context), code(a.code), s(a.s),
      compute(MatrixTile::computeType(a.element_, context.capability,
                                      context.precision)),
      tile(a.code, compute) {
  if (a.element_.isF32())
    a.rounded = [this](Value number) { return tile.roundTrip(number); };
}

void AttentionTile::begin(int64_t count, int64_t heads) {
  int64_t tiles = std::max<int64_t>(1, (count + kBlockRows - 1) / kBlockRows);
  a.begin(tiles, a.batch * heads);
  a.loadOffset();
  auto at = code.split(a.block, {a.batch, heads, tiles});
  b = at[0];
  head = at[1];
  firstRow = code.mul(at[2], kBlockRows);
  warpRow = code.add(firstRow, code.mul(a.warp, MatrixTile::kRows));
  g = code.div(a.lane, 4);
  t = code.rem(a.lane, 4);
  twice = code.mul(t, 2);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// How many neighbours of the last dimension one access may take: as many as
/// 16 bytes have, at most `most`; 1 if their addresses don't allow it.
int64_t AttentionTile::vectorWidth(unsigned operand, int64_t most) {
  Type storage = RegionEmitter::storageType(
      elementTypeOf(a.context.op->getOperand(operand)));
  int64_t width =
      std::min<int64_t>(most, 128 / storage.getIntOrFloatBitWidth());
  ArrayRef<int64_t> strides = a.context.operandStrides(operand);
  bool fits = a.context.isAligned(operand) && strides.back() == 1;
  for (int64_t stride : strides.drop_back())
    fits &= stride % width == 0;
  return fits ? width : 1;
}

/// `width` neighbours as numbers of a tile.
SmallVector<Value> AttentionTile::loadNumbers(unsigned operand,
                                              ArrayRef<Value> at,
                                              int64_t width) {
  Type type = elementTypeOf(a.context.op->getOperand(operand));
  Value base = a.context.operandBuffer(operand);
  Value first = code.join(at, a.context.operandStrides(operand));
  SmallVector<Value> numbers;
  if (vectorWidth(operand, width) == width)
    return tile.loadRounded(base, type, first, width);
  int64_t stride = a.context.operandStrides(operand).back();
  for (int64_t i = 0; i < width; ++i)
    numbers.append(
        tile.loadRounded(base, type, code.add(first, i * stride), 1));
  return numbers;
}

AttentionTile::Fragments AttentionTile::loadRows(unsigned operand,
                                                 int64_t depth, int64_t limit) {
  Fragments rows;
  for (int64_t d = 0; d < depth; d += MatrixTile::kDepth) {
    SmallVector<Value> numbers;
    for (int64_t half : {0, 1})
      numbers.append(loadNumbers(
          operand, {b, head, rowInside(half, limit), code.add(twice, d)}, 2));
    rows.push_back(tile.fragmentA(numbers));
  }
  return rows;
}

Value AttentionTile::stage(int64_t depth) {
  return a.context.emit.sharedArray(compute, kEntries * (depth + kPadding));
}

void AttentionTile::fill(Value shared, unsigned operand, int64_t depth, Value h,
                         Value first, int64_t limit) {
  int64_t width = vectorWidth(operand, 8);
  code.loop(a.thread, code.number(kEntries * depth / width),
            AttentionCode::kLanes * AttentionCode::kWarps, {},
            [&](Value at, ValueRange) -> Values {
              Value number = code.div(at, depth / width);
              Value d = code.mul(code.rem(at, depth / width), width);
              Value i = code.add(first, number);
              Value exists = code.inside(i, limit);
              i = code.select(exists, i, code.number(0));
              auto numbers = loadNumbers(operand, {b, h, i, d}, width);
              for (Value &x : numbers)
                x = code.select(exists, x, tile.zero());
              tile.store(shared,
                         code.add(code.mul(number, depth + kPadding), d),
                         numbers);
              return {};
            });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

AttentionTile::Fragment AttentionTile::product(ArrayRef<Fragment> rows,
                                               Value shared, int64_t depth,
                                               Value step) {
  Fragment sums(4, s.zero());
  Value entry = code.add(g, code.mul(step, MatrixTile::kColumns));
  Value at = code.add(code.mul(entry, depth + kPadding), twice);
  for (auto [number, fragment] : llvm::enumerate(rows)) {
    Value from = code.add(at, int64_t(number) * MatrixTile::kDepth);
    sums = tile.multiply(fragment, tile.loadPair(shared, from), sums);
  }
  return sums;
}

void AttentionTile::addProduct(MutableArrayRef<Fragment> sums,
                               ArrayRef<Value> numbers, Value shared,
                               int64_t depth, Value step, int64_t from) {
  SmallVector<Value> rounded;
  for (Value number : numbers)
    rounded.push_back(tile.round(number));
  Fragment left = tile.fragmentA(rounded);
  int64_t stride = depth + kPadding;
  Value entry = code.add(twice, code.mul(step, MatrixTile::kDepth));
  Value at = code.add(code.mul(entry, stride), g);
  for (auto [number, sum] : llvm::enumerate(sums)) {
    Value own = code.add(at, from + int64_t(number) * MatrixTile::kColumns);
    Fragment right =
        tile.fragmentB({tile.loadStored(shared, own),
                        tile.loadStored(shared, code.add(own, stride))});
    sum = tile.multiply(left, right, sum);
  }
}

AttentionTile::Fragments AttentionTile::zeroSums(int64_t depth) {
  return Fragments(depth / MatrixTile::kColumns, Fragment(4, s.zero()));
}

void AttentionTile::pack(Values &all, ArrayRef<Fragment> fragments) {
  for (const Fragment &fragment : fragments)
    all.append(fragment.begin(), fragment.end());
}

AttentionTile::Fragments AttentionTile::unpack(ValueRange values) {
  Fragments fragments;
  for (size_t i = 0; i < values.size(); i += 4)
    fragments.emplace_back(values.slice(i, 4));
  return fragments;
}

Value AttentionTile::amongFour(Value value, bool largest) {
  for (int64_t mask : {1, 2}) {
    Value other = a.context.emit.shuffleXor(value, mask);
    value = largest ? s.max(value, other) : s.add(value, other);
  }
  return value;
}
