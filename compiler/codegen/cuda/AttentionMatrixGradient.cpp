// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- AttentionMatrixGradient.cpp - attention's gradient by mma.sync -----===//
//
// The kernels "queries" and "keys" of AttentionGradient.cpp in the types of the
// forward pass (AttentionMatrix.cpp). Entries of a tile are taken 8 at a time
// (AttentionTile.h):
//
//   queries   S = Q K'   dP = G V'                   16 queries x 8 keys
//             dQ (16 x D) += dS K
//   keys      S' = K Q'  dP' = V G'                  16 keys x 8 queries
//             dV (16 x Dv) += P' G    dK (16 x D) += dS' Q
//
// P = exp(S - logsumexp) and dS = P (dP - rowsum(G Y)) are computed in the
// registers of S and rounded as operands of the second product. Sums are f32,
// in the order of the entries, then of the heads that share a key.
//
// Long heads have too many sums for the registers of one sweep over the
// queries: then dV and dK take one each, and the longest dK two.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/AttentionTile.h"

using namespace mlir;
using namespace mtp;

/// Registers of a thread that rows and sums of one sweep may take: ptxas spills
/// none then, with masks, softcap and operands that are rounded, too.
static constexpr int64_t kMostRegisters = 112;

namespace {

class MatrixGradient : AttentionTile {
public:
  using AttentionTile::AttentionTile;
  LogicalResult emitQueries();
  LogicalResult emitKeys();

private:
  /// What a sweep over the queries sums: elements of dK, and dV.
  struct Sweep {
    int64_t from, to;
    bool values;
    bool keys() const { return to > from; }
  };
  using Statistics = AttentionCode::Statistics;

  int64_t rowRegisters(int64_t depth) const;
  SmallVector<Sweep> sweeps() const;
  /// A lane's share of the sum of output * cotangent of query i.
  Value deltaShare(Value h, Value i);
  Statistics statistics(Value h, Value i, bool withDelta);
  /// Weight and slope of a score's product.
  std::pair<Value, Value> weightAndSlope(const Statistics &row, Value product,
                                         Value weightCotangent, Value h,
                                         Value i, Value j);
  /// Sums of the elements `from`, ... of the warp's rows.
  void storeRows(unsigned result, ArrayRef<Fragment> sums, int64_t from,
                 int64_t limit, double factor);

  // Keys.
  Value firstVisible();
  void fillStatistics(Value h, Value first, bool withDelta);
  Statistics statisticsOf(Value entry);
  Values sweep(const Sweep &what);
  Values takeStep(const Sweep &what, Value h, Value first, Value step,
                  ValueRange carried);

  Value queries, cotangents, rows; ///< tiles in shared memory; statistics
  Fragments keyRows, valueRows;
};

/// Of the fragments of 16 rows.
int64_t MatrixGradient::rowRegisters(int64_t depth) const {
  return depth / MatrixTile::kDepth * (compute.isF32() ? 4 : 2);
}

Value MatrixGradient::deltaShare(Value h, Value i) {
  Value share = code.rem(a.thread, 4);
  return code.loop(share, code.number(a.valueDepth), 4, {s.zero()},
                   [&](Value d, ValueRange carried) -> Values {
                     Value y = a.loadOperand(a.output, {b, h, i, d}),
                           x = a.loadOperand(a.cotangent, {b, h, i, d});
                     return {s.add(carried[0], s.mul(y, a.round(x)))};
                   })[0];
}

/// Of query i; four neighbouring lanes ask for the same one.
MatrixGradient::Statistics MatrixGradient::statistics(Value h, Value i,
                                                      bool withDelta) {
  Value delta =
      withDelta ? amongFour(deltaShare(h, i), /*largest=*/false) : s.zero();
  return a.statistics(b, h, i, delta);
}

std::pair<Value, Value> MatrixGradient::weightAndSlope(const Statistics &row,
                                                       Value product,
                                                       Value weightCotangent,
                                                       Value h, Value i,
                                                       Value j) {
  Value scaled = s.mul(product, s.number(a.scale));
  auto score = a.score(scaled, b, h, i, j);
  auto [weight, slope] =
      a.weightAndCotangent(row, score.score, weightCotangent);
  if (score.capped)
    slope = s.mul(slope, a.capSlope(score.capped));
  return {weight, slope};
}

void MatrixGradient::storeRows(unsigned result, ArrayRef<Fragment> sums,
                               int64_t from, int64_t limit, double factor) {
  for (int64_t half : {0, 1})
    code.when(code.inside(row(half), limit), [&] {
      for (auto [number, fragment] : llvm::enumerate(sums))
        for (int64_t next : {0, 1}) {
          Value d = code.add(
              twice, from + int64_t(number) * MatrixTile::kColumns + next);
          Value x = fragment[2 * half + next];
          if (factor != 1)
            x = s.mul(x, s.number(factor));
          a.storeResult(result, {b, head, row(half), d}, x);
        }
    });
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

LogicalResult MatrixGradient::emitQueries() {
  begin(a.queries, a.heads);
  Value hk = a.keyHead(head);
  Value keys = stage(a.depth), values = stage(a.valueDepth);
  SmallVector<Statistics> known;
  for (int64_t half : {0, 1})
    known.push_back(
        statistics(head, rowInside(half, a.queries), /*withDelta=*/true));
  Fragments own = loadRows(0, a.depth, a.queries),
            slopes = loadRows(a.cotangent, a.valueDepth, a.queries);
  Values initial;
  pack(initial, zeroSums(a.depth));
  Value last =
      code.min(code.add(firstRow, kBlockRows - 1), code.number(a.queries - 1));
  auto takeStep = [&](Value first, Value step, ValueRange carried) -> Values {
    Fragments sums = unpack(carried);
    Fragment scores = product(own, keys, a.depth, step),
             weights = product(slopes, values, a.valueDepth, step);
    Value entry = code.add(twice, code.mul(step, MatrixTile::kColumns));
    for (int64_t c = 0; c < 4; ++c) {
      Value i = rowInside(c / 2, a.queries);
      Value j = code.add(code.add(first, entry), c % 2);
      scores[c] =
          weightAndSlope(known[c / 2], scores[c], weights[c], head, i, j)
              .second;
    }
    addProduct(sums, scores, keys, a.depth, step);
    Values next;
    pack(next, sums);
    return next;
  };
  auto sums = code.loop(code.number(0), a.visibleEnd(last), kEntries, initial,
                        [&](Value first, ValueRange carried) -> Values {
                          a.context.emit.barrier();
                          fill(keys, 1, a.depth, hk, first, a.keys);
                          fill(values, 2, a.valueDepth, hk, first, a.keys);
                          a.context.emit.barrier();
                          return code.loop(
                              code.number(0), code.number(kSteps), 1, carried,
                              [&](Value step, ValueRange inner) -> Values {
                                return takeStep(first, step, inner);
                              });
                        });
  storeRows(0, unpack(sums), 0, a.queries, a.scale);
  return success();
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

SmallVector<MatrixGradient::Sweep> MatrixGradient::sweeps() const {
  bool keys = a.context.resultBuffer(1) != nullptr,
       values = a.context.resultBuffer(2) != nullptr;
  int64_t rowsTaken = rowRegisters(a.depth) + rowRegisters(a.valueDepth);
  int64_t keySums = a.depth / 2, valueSums = a.valueDepth / 2;
  if (!keys)
    return {{0, 0, true}};
  SmallVector<Sweep> all;
  if (values && rowsTaken + keySums + valueSums <= kMostRegisters)
    return {{0, a.depth, true}};
  if (values)
    all.push_back({0, 0, true});
  int64_t columns = a.depth / MatrixTile::kColumns, width = a.depth;
  if (rowsTaken + keySums > kMostRegisters)
    width = (columns + 1) / 2 * MatrixTile::kColumns;
  for (int64_t from = 0; from < a.depth; from += width)
    all.push_back({from, std::min(from + width, a.depth), false});
  return all;
}

/// Queries before the first key of the block don't see it, unless rows without
/// visible keys count all alike.
Value MatrixGradient::firstVisible() {
  Value from = code.number(0);
  if (!a.causal || a.uniformRows)
    return from;
  from = code.max(from, code.sub(firstRow, a.offset));
  return code.mul(code.div(from, kEntries), kEntries);
}

/// Of a tile's queries, four threads each.
void MatrixGradient::fillStatistics(Value h, Value first, bool withDelta) {
  Value entry = code.div(a.thread, 4);
  static_assert(AttentionCode::kLanes * AttentionCode::kWarps == 4 * kEntries);
  Value i = code.min(code.add(first, entry), code.number(a.queries - 1));
  Statistics row = statistics(h, i, withDelta);
  Value isFirst = code.compare(arith::CmpIPredicate::eq, code.rem(a.thread, 4),
                               code.number(0));
  code.when(isFirst, [&] {
    Value alike = s.select(row.alike, s.one(), s.zero());
    for (auto [which, value] : llvm::enumerate(
             ArrayRef<Value>{row.shift, row.factor, row.delta, alike}))
      code.store(rows, a.real, code.add(entry, int64_t(which) * kEntries),
                 value);
  });
}

MatrixGradient::Statistics MatrixGradient::statisticsOf(Value entry) {
  auto load = [&](int64_t which) {
    return code.load(rows, a.real, code.add(entry, which * kEntries));
  };
  Statistics row;
  row.shift = load(0);
  row.factor = load(1);
  row.delta = load(2);
  row.alike = s.compare(Scalars::Ne, load(3), s.zero());
  return row;
}

MatrixGradient::Values MatrixGradient::takeStep(const Sweep &what, Value h,
                                                Value first, Value step,
                                                ValueRange carried) {
  Fragments sums = unpack(carried);
  MutableArrayRef<Fragment> all(sums);
  auto keySums = all.take_front((what.to - what.from) / MatrixTile::kColumns),
       valueSums = all.drop_front(keySums.size());
  Fragment weights = product(keyRows, queries, a.depth, step), slopes;
  if (what.keys())
    slopes = product(valueRows, cotangents, a.valueDepth, step);
  else
    slopes.assign(4, s.zero());
  for (int64_t c = 0; c < 4; ++c) {
    Value entry =
        code.add(code.add(twice, code.mul(step, MatrixTile::kColumns)), c % 2);
    Value own = code.add(first, entry);
    Value exists = code.inside(own, a.queries);
    Value i = code.select(exists, own, code.number(a.queries - 1));
    auto [weight, slope] = weightAndSlope(statisticsOf(entry), weights[c],
                                          slopes[c], h, i, row(c / 2));
    weights[c] = s.select(exists, weight, s.zero());
    slopes[c] = s.select(exists, slope, s.zero());
  }
  if (what.values)
    addProduct(valueSums, weights, cotangents, a.valueDepth, step);
  if (what.keys())
    addProduct(keySums, slopes, queries, a.depth, step, what.from);
  Values next;
  pack(next, sums);
  return next;
}

MatrixGradient::Values MatrixGradient::sweep(const Sweep &what) {
  keyRows = loadRows(1, a.depth, a.keys);
  if (what.keys())
    valueRows = loadRows(2, a.valueDepth, a.keys);
  Values initial;
  pack(initial, zeroSums(what.to - what.from));
  if (what.values)
    pack(initial, zeroSums(a.valueDepth));
  Value from = firstVisible();
  auto overQueries = [&](Value member, ValueRange sums) -> Values {
    Value h = code.add(code.mul(head, a.group), member);
    return code.loop(
        from, code.number(a.queries), kEntries, sums,
        [&](Value first, ValueRange carried) -> Values {
          a.context.emit.barrier();
          fill(queries, 0, a.depth, h, first, a.queries);
          fill(cotangents, a.cotangent, a.valueDepth, h, first, a.queries);
          fillStatistics(h, first, what.keys());
          a.context.emit.barrier();
          return code.loop(code.number(0), code.number(kSteps), 1, carried,
                           [&](Value step, ValueRange inner) -> Values {
                             return takeStep(what, h, first, step, inner);
                           });
        });
  };
  return code.loop(code.number(0), code.number(a.group), 1, initial,
                   overQueries);
}

LogicalResult MatrixGradient::emitKeys() {
  begin(a.keys, a.keyHeads);
  queries = stage(a.depth);
  cotangents = stage(a.valueDepth);
  rows = a.context.emit.sharedArray(a.real, 4 * kEntries);
  for (const Sweep &what : sweeps()) {
    Fragments sums = unpack(sweep(what));
    ArrayRef<Fragment> all(sums);
    size_t keySums = (what.to - what.from) / MatrixTile::kColumns;
    if (what.keys())
      storeRows(1, all.take_front(keySums), what.from, a.keys, a.scale);
    if (what.values)
      storeRows(2, all.drop_front(keySums), 0, a.keys, 1);
  }
  return success();
}

} // namespace

LogicalResult mtp::emitMatrixAttentionGradient(LibraryKernelContext &context) {
  MatrixGradient gradient(context);
  return context.part == "queries" ? gradient.emitQueries()
                                   : gradient.emitKeys();
}
