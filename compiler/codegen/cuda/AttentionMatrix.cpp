// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- AttentionMatrix.cpp - attention's forward pass by mma.sync ---------===//
//
// In f16, bf16 and tf32: of tensors of these types, and of f32 where
// --precision lets products round their operands. Rows are queries, entries are
// keys and their values (AttentionTile.h):
//
//   S (16 x 32) = Q K'               8 keys a step
//   weights = exp(S - maximum)       in the registers of the sums
//   O (16 x Dv) += weights V
//
// Sums are f32, as are maximum and sum of a row, which four lanes share.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/AttentionTile.h"

using namespace mlir;
using namespace mtp;

namespace {

class MatrixForward : AttentionTile {
public:
  using AttentionTile::AttentionTile;
  LogicalResult emit();

private:
  /// What runs along: of the rows g and g + 8 of the lane; sums of the result.
  struct State {
    Value maximum[2], sum[2];
    Fragments result;
  };
  Values packState(const State &state) const;
  State unpackState(ValueRange values) const;
  Fragments scores(Value first);
  void takeTile(State &state, MutableArrayRef<Fragment> scores);
  void store(const State &state);

  Value hk, keys, values; ///< the keys' head; tiles in shared memory
  Fragments queries;
};

MatrixForward::Values MatrixForward::packState(const State &state) const {
  Values all{state.maximum[0], state.maximum[1], state.sum[0], state.sum[1]};
  pack(all, state.result);
  return all;
}

MatrixForward::State MatrixForward::unpackState(ValueRange values) const {
  return {{values[0], values[1]},
          {values[2], values[3]},
          unpack(values.drop_front(4))};
}

MatrixForward::Fragments MatrixForward::scores(Value first) {
  Fragments all;
  for (int64_t step = 0; step < kSteps; ++step) {
    Fragment sums = product(queries, keys, a.depth, code.number(step));
    for (int64_t c = 0; c < 4; ++c) {
      Value i = rowInside(c / 2, a.queries);
      Value j =
          code.add(code.add(first, twice), step * MatrixTile::kColumns + c % 2);
      Value scaled = s.mul(sums[c], s.number(a.scale));
      sums[c] = a.score(scaled, b, head, i, j).score;
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

void MatrixForward::store(const State &state) {
  for (int64_t half : {0, 1})
    code.when(code.inside(row(half), a.queries), [&] {
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
          a.storeResult(0, {b, head, row(half), d}, y);
        }
      if (!a.context.resultBuffer(1))
        return;
      code.when(code.compare(arith::CmpIPredicate::eq, t, code.number(0)), [&] {
        Value logarithm = s.add(state.maximum[half], s.log(state.sum[half]));
        a.storeResult(1, {b, head, row(half)},
                      s.select(hidden, s.lowest(), logarithm));
      });
    });
}

LogicalResult MatrixForward::emit() {
  begin(a.queries, a.heads);
  hk = a.keyHead(head);
  keys = stage(a.depth);
  values = stage(a.valueDepth);
  queries = loadRows(0, a.depth, a.queries);
  State initial{
      {s.lowest(), s.lowest()}, {s.zero(), s.zero()}, zeroSums(a.valueDepth)};
  Value last =
      code.min(code.add(firstRow, kBlockRows - 1), code.number(a.queries - 1));
  auto done = code.loop(code.number(0), a.visibleEnd(last), kEntries,
                        packState(initial),
                        [&](Value first, ValueRange carried) -> Values {
                          State state = unpackState(carried);
                          a.context.emit.barrier();
                          fill(keys, 1, a.depth, hk, first, a.keys);
                          fill(values, 2, a.valueDepth, hk, first, a.keys);
                          a.context.emit.barrier();
                          Fragments weights = scores(first);
                          takeTile(state, weights);
                          for (auto [step, weight] : llvm::enumerate(weights))
                            addProduct(state.result, weight, values,
                                       a.valueDepth, code.number(step));
                          return packState(state);
                        });
  store(unpackState(done));
  return success();
}

} // namespace

LogicalResult mtp::emitMatrixAttention(LibraryKernelContext &context) {
  return MatrixForward(context).emit();
}
