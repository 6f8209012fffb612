// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- AttentionMatrix.cpp - attention by matrix instructions -------------===//
//
// The forward pass in f16, bf16 and tf32: of tensors of these types, and of f32
// where --precision lets products round their operands. A warp has 16 queries,
// their fragments in registers; the block loads 32 keys and values at a time
// into shared memory:
//
//   S (16 x 32) = Q K'           four products of 8 keys, for each 8 of the
//   depth weights = exp(S - maximum)   in the registers of the fragments O (16
//   x Dv) += weights V     the weights are fragments already
//
// Sums are f32, as are maximum and sum of a row, which four lanes share.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/AttentionCode.h"
#include "compiler/codegen/cuda/MatrixTile.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {

using Values = AttentionCode::Values;
using Fragment = MatrixTile::Fragment;

/// Keys of a tile, and products of a tile.
constexpr int64_t kKeys = 32, kSteps = kKeys / MatrixTile::kColumns;
/// Longer heads would not fit into registers.
constexpr int64_t kMostDepth = 128;
/// Elements between rows of shared memory beyond their length, against
/// conflicts of banks.
constexpr int64_t kPadding = 8;

class MatrixForward {
public:
  explicit MatrixForward(LibraryKernelContext &context)
      : a(context), code(a.code), s(a.s),
        compute(MatrixTile::computeType(a.element_, context.capability,
                                        context.precision)),
        tile(a.code, compute) {}
  LogicalResult emit();

private:
  /// What runs along: of the rows g and g + 8 of the lane; sums of the result.
  struct State {
    Value maximum[2], sum[2];
    SmallVector<Fragment> result;
  };
  Values pack(const State &state) const;
  State unpack(ValueRange values) const;
  Value query(int64_t half) { return code.add(warpRow, code.add(g, half * 8)); }
  void loadQueries();
  void fill(Value shared, unsigned operand, int64_t depth, Value first);
  SmallVector<Fragment> scores(Value first);
  void takeTile(State &state, MutableArrayRef<Fragment> scores);
  void addValues(State &state, ArrayRef<Fragment> weights);
  void store(const State &state);
  Value amongFour(Value value, bool largest);

  AttentionCode a;
  KernelCode &code;
  Scalars &s;
  Type compute; ///< what products are computed in
  MatrixTile tile;
  Value b, h, hk, warpRow, g, t, twice; ///< lane = 4 g + t; 2 t
  Value keys, values;                   ///< tiles in shared memory
  SmallVector<Fragment> queries;        ///< by 8 of the depth
};

Values MatrixForward::pack(const State &state) const {
  Values all{state.maximum[0], state.maximum[1], state.sum[0], state.sum[1]};
  for (const Fragment &fragment : state.result)
    all.append(fragment.begin(), fragment.end());
  return all;
}

MatrixForward::State MatrixForward::unpack(ValueRange values) const {
  State state{{values[0], values[1]}, {values[2], values[3]}, {}};
  for (size_t i = 4; i < values.size(); i += 4)
    state.result.emplace_back(values.slice(i, 4));
  return state;
}

/// Over the four lanes that share a row.
Value MatrixForward::amongFour(Value value, bool largest) {
  for (int64_t mask : {1, 2}) {
    Value other = a.context.emit.shuffleXor(value, mask);
    value = largest ? s.max(value, other) : s.add(value, other);
  }
  return value;
}

void MatrixForward::loadQueries() {
  for (int64_t d = 0; d < a.depth; d += MatrixTile::kDepth) {
    SmallVector<Value> numbers;
    for (int64_t half : {0, 1}) {
      Value i = code.min(query(half), code.number(a.queries - 1));
      for (int64_t next : {0, 1}) {
        Value at = code.join({b, h, i, code.add(twice, d + next)},
                             a.context.operandStrides(0));
        numbers.push_back(
            tile.loadRounded(a.context.operandBuffer(0), a.element_, at));
      }
    }
    queries.push_back(tile.fragmentA(numbers));
  }
}

void MatrixForward::fill(Value shared, unsigned operand, int64_t depth,
                         Value first) {
  code.loop(a.thread, code.number(kKeys * depth),
            AttentionCode::kLanes * AttentionCode::kWarps, {},
            [&](Value at, ValueRange) -> Values {
              Value row = code.div(at, depth), d = code.rem(at, depth);
              Value j = code.add(first, row);
              Value exists = code.inside(j, a.keys);
              j = code.select(exists, j, code.number(0));
              Value from =
                  code.join({b, hk, j, d}, a.context.operandStrides(operand));
              Value x = tile.loadRounded(a.context.operandBuffer(operand),
                                         a.element_, from);
              Value to = code.add(code.mul(row, depth + kPadding), d);
              tile.store(shared, to, code.select(exists, x, tile.zero()));
              return {};
            });
}

SmallVector<Fragment> MatrixForward::scores(Value first) {
  SmallVector<Fragment> all;
  int64_t stride = a.depth + kPadding;
  for (int64_t step = 0; step < kSteps; ++step) {
    Fragment sums(4, s.zero());
    Value row = code.mul(code.add(g, step * MatrixTile::kColumns), stride);
    for (auto [number, fragment] : llvm::enumerate(queries)) {
      Value at =
          code.add(code.add(row, twice), int64_t(number) * MatrixTile::kDepth);
      Fragment k = tile.fragmentB(
          {tile.loadStored(keys, at), tile.loadStored(keys, code.add(at, 1))});
      sums = tile.multiply(fragment, k, sums);
    }
    for (int64_t c = 0; c < 4; ++c) {
      Value i = code.min(query(c / 2), code.number(a.queries - 1));
      Value j =
          code.add(code.add(first, twice), step * MatrixTile::kColumns + c % 2);
      Value product = s.mul(sums[c], s.number(a.scale));
      sums[c] = a.score(product, b, h, i, j).score;
    }
    all.push_back(sums);
  }
  return all;
}

/// Scores become weights; what was added before is rescaled.
void MatrixForward::takeTile(State &state, MutableArrayRef<Fragment> scores) {
  for (int64_t half : {0, 1}) {
    Value most = s.lowest();
    for (Fragment &fragment : scores)
      for (int64_t c : {2 * half, 2 * half + 1})
        most = s.max(most, fragment[c]);
    most = s.max(state.maximum[half], amongFour(most, /*largest=*/true));
    // Without any visible key so far: -inf - -inf is NaN.
    Value shift =
        s.select(s.compare(Scalars::Eq, most, s.lowest()), s.zero(), most);
    Value sum = s.zero();
    for (Fragment &fragment : scores)
      for (int64_t c : {2 * half, 2 * half + 1}) {
        fragment[c] = s.exp(s.sub(fragment[c], shift));
        sum = s.add(sum, fragment[c]);
      }
    Value rescale = s.exp(s.sub(state.maximum[half], shift));
    state.maximum[half] = most;
    state.sum[half] = s.add(s.mul(state.sum[half], rescale),
                            amongFour(sum, /*largest=*/false));
    for (Fragment &fragment : state.result)
      for (int64_t c : {2 * half, 2 * half + 1})
        fragment[c] = s.mul(fragment[c], rescale);
  }
}

void MatrixForward::addValues(State &state, ArrayRef<Fragment> weights) {
  int64_t stride = a.valueDepth + kPadding;
  for (auto [step, weight] : llvm::enumerate(weights)) {
    SmallVector<Value> rounded;
    for (Value w : weight)
      rounded.push_back(tile.round(w));
    Fragment left = tile.fragmentA(rounded);
    Value row =
        code.mul(code.add(twice, int64_t(step) * MatrixTile::kDepth), stride);
    for (auto [number, sums] : llvm::enumerate(state.result)) {
      Value at =
          code.add(code.add(row, g), int64_t(number) * MatrixTile::kColumns);
      Fragment v =
          tile.fragmentB({tile.loadStored(values, at),
                          tile.loadStored(values, code.add(at, stride))});
      sums = tile.multiply(left, v, sums);
    }
  }
}

void MatrixForward::store(const State &state) {
  for (int64_t half : {0, 1})
    code.when(code.inside(query(half), a.queries), [&] {
      Value hidden = s.compare(Scalars::Eq, state.maximum[half], s.lowest());
      for (auto [number, fragment] : llvm::enumerate(state.result))
        for (int64_t next : {0, 1}) {
          Value d =
              code.add(twice, int64_t(number) * MatrixTile::kColumns + next);
          Value y = s.div(fragment[2 * half + next], state.sum[half]);
          if (a.zeroRows)
            y = s.select(hidden, s.zero(), y);
          if (a.uniformRows)
            y = code.choose(
                hidden, {a.real},
                [&]() -> Values { return {a.meanOfValues(b, hk, d)}; },
                [&]() -> Values { return {y}; })[0];
          a.storeResult(0, {b, h, query(half), d}, y);
        }
      if (!a.context.resultBuffer(1))
        return;
      code.when(code.compare(arith::CmpIPredicate::eq, t, code.number(0)), [&] {
        Value logarithm = s.add(state.maximum[half], s.log(state.sum[half]));
        a.storeResult(1, {b, h, query(half)},
                      s.select(hidden, s.lowest(), logarithm));
      });
    });
}

LogicalResult MatrixForward::emit() {
  int64_t blockRows = MatrixTile::kRows * AttentionCode::kWarps;
  int64_t tiles = std::max<int64_t>(1, (a.queries + blockRows - 1) / blockRows);
  a.begin(tiles, a.batch * a.heads);
  a.loadOffset();
  auto at = code.split(a.block, {a.batch, a.heads, tiles});
  b = at[0];
  h = at[1];
  hk = a.keyHead(h);
  Value firstRow = code.mul(at[2], blockRows);
  warpRow = code.add(firstRow, code.mul(a.warp, MatrixTile::kRows));
  g = code.div(a.lane, 4);
  t = code.rem(a.lane, 4);
  twice = code.mul(t, 2);
  keys = a.context.emit.sharedArray(compute, kKeys * (a.depth + kPadding));
  values =
      a.context.emit.sharedArray(compute, kKeys * (a.valueDepth + kPadding));
  loadQueries();
  State initial{{s.lowest(), s.lowest()}, {s.zero(), s.zero()}, {}};
  initial.result.assign(a.valueDepth / MatrixTile::kColumns,
                        Fragment(4, s.zero()));
  Value last =
      code.min(code.add(firstRow, blockRows - 1), code.number(a.queries - 1));
  auto done =
      code.loop(code.number(0), a.visibleEnd(last), kKeys, pack(initial),
                [&](Value first, ValueRange carried) -> Values {
                  State state = unpack(carried);
                  a.context.emit.barrier();
                  fill(keys, 1, a.depth, first);
                  fill(values, 2, a.valueDepth, first);
                  a.context.emit.barrier();
                  SmallVector<Fragment> weights = scores(first);
                  takeTile(state, weights);
                  addValues(state, weights);
                  return pack(state);
                });
  store(unpack(done));
  return success();
}

} // namespace

bool mtp::hasMatrixAttention(const AttentionCode &a) {
  const LibraryKernelContext &context = a.context;
  Type type = a.element_;
  bool alike = elementTypeOf(context.op->getOperand(1)) == type &&
               elementTypeOf(context.op->getOperand(2)) == type;
  return alike &&
         MatrixTile::computeType(type, context.capability, context.precision) &&
         a.depth % MatrixTile::kDepth == 0 && a.depth > 0 &&
         a.depth <= kMostDepth && a.valueDepth % MatrixTile::kColumns == 0 &&
         a.valueDepth > 0 && a.valueDepth <= kMostDepth &&
         a.batch * a.heads * a.queries > 0;
}

LogicalResult mtp::emitMatrixAttention(LibraryKernelContext &context) {
  return MatrixForward(context).emit();
}
