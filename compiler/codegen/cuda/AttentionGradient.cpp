// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- AttentionGradient.cpp - gradients from the logsumexp ---------------===//
//
// Up to three kernels, each without atomics and with its sums in a fixed order:
//
//   queries   rows are queries, tiles are keys:     dQ = scale * dS K
//   keys      rows are keys, tiles are queries:     dK = dS' (scale Q), dV = P'
//   mask      a thread for each element of the mask, which sums dS over what
//             the mask is broadcast along
//
// with P = exp(S - logsumexp), dS = P (G V' - rowsum(G Y)) computed again in
// each (AttentionCode.h).
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/AttentionCode.h"
#include "compiler/codegen/cuda/MatrixTile.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

using Values = AttentionCode::Values;

SmallVector<KernelPart> mtp::attentionGradientParts(Operation *op) {
  SmallVector<KernelPart> parts;
  KernelPart keys{"keys", {}};
  if (!op->getResult(0).use_empty())
    parts.push_back({"queries", {0}});
  for (unsigned number : {1, 2})
    if (!op->getResult(number).use_empty())
      keys.results.push_back(number);
  if (!keys.results.empty())
    parts.push_back(keys);
  if (!op->getResult(3).use_empty())
    parts.push_back({"mask", {3}});
  return parts;
}

namespace {

/// What the kernels have in common.
class Gradient {
public:
  explicit Gradient(LibraryKernelContext &context)
      : a(context), code(a.code), s(a.s) {}
  LogicalResult emitQueries();
  LogicalResult emitKeys();
  LogicalResult emitMask();
  /// The forward pass rounded the operands of its products.
  void roundOperands();

private:
  static constexpr int64_t kLanes = AttentionCode::kLanes,
                           kWarps = AttentionCode::kWarps;

  static int64_t columnsOf(int64_t depth) {
    return std::max<int64_t>(1, (depth + kLanes - 1) / kLanes);
  }
  LogicalResult chooseRows(int64_t sums);
  /// Of the warp's rows and the lane's entry.
  SmallVector<Value> products(const StagedRows &rows, Value rowHead,
                              const StagedRows &tile, Value tileHead,
                              Value firstEntry, int64_t rowLimit,
                              int64_t entryLimit);
  /// sums[r][c] += weight of an entry, from its lane * element of the entry
  Values addEntries(ValueRange sums, ArrayRef<Value> weights,
                    const StagedRows &tile, Value tileHead, Value firstEntry,
                    int64_t entryLimit);
  void storeRows(unsigned result, ValueRange sums, Value head, int64_t depth,
                 int64_t limit, double factor);
  void beginRows(int64_t rowCount, int64_t heads);
  Value rowOf(int64_t r) { return code.add(warpRow, r); }
  Value sharedStatistic(int64_t which, int64_t r) {
    Value row = code.add(code.mul(a.warp, a.rows), r);
    return code.load(statisticsArray, a.real,
                     code.add(row, which * blockRows()));
  }
  int64_t blockRows() const { return a.rows * kWarps; }

  AttentionCode a;
  KernelCode &code;
  Scalars &s;
  Value b, rowHead, firstRow, warpRow, statisticsArray;
};

LogicalResult Gradient::chooseRows(int64_t sums) {
  a.rows = a.chooseRows(a.depth + a.valueDepth + 4, sums);
  if (a.rows > 0)
    return success();
  return a.context.op->emitOpError()
         << "has heads of " << a.depth << " and " << a.valueDepth
         << " elements, more than a kernel on cuda has memory for";
}

void Gradient::beginRows(int64_t rowCount, int64_t heads) {
  int64_t tiles =
      std::max<int64_t>(1, (rowCount + blockRows() - 1) / blockRows());
  a.begin(tiles, a.batch * heads);
  a.loadOffset();
  auto at = code.split(a.block, {a.batch, heads, tiles});
  b = at[0];
  rowHead = at[1];
  firstRow = code.mul(at[2], blockRows());
  warpRow = code.add(firstRow, code.mul(a.warp, a.rows));
}

SmallVector<Value> Gradient::products(const StagedRows &rows, Value rowHead,
                                      const StagedRows &tile, Value tileHead,
                                      Value firstEntry, int64_t rowLimit,
                                      int64_t entryLimit) {
  return code.loop(
      code.number(0), code.number(rows.depth), 1, Values(a.rows, s.zero()),
      [&](Value d, ValueRange carried) -> Values {
        Value x =
            a.element(tile, b, tileHead, firstEntry, a.lane, d, entryLimit);
        Values next;
        for (int64_t r = 0; r < a.rows; ++r) {
          Value number = code.add(code.mul(a.warp, a.rows), r);
          Value y = a.element(rows, b, rowHead, firstRow, number, d, rowLimit);
          next.push_back(s.add(carried[r], s.mul(x, y)));
        }
        return next;
      });
}

Values Gradient::addEntries(ValueRange sums, ArrayRef<Value> weights,
                            const StagedRows &tile, Value tileHead,
                            Value firstEntry, int64_t entryLimit) {
  int64_t columns = columnsOf(tile.depth);
  Value count = code.min(code.number(kLanes),
                         code.sub(code.number(entryLimit), firstEntry));
  return code.loop(code.number(0), count, 1, sums,
                   [&](Value entry, ValueRange carried) -> Values {
                     Values x;
                     for (int64_t c = 0; c < columns; ++c) {
                       Value d = code.min(code.add(a.lane, c * kLanes),
                                          code.number(tile.depth - 1));
                       x.push_back(a.element(tile, b, tileHead, firstEntry,
                                             entry, d, entryLimit));
                     }
                     Values next;
                     for (int64_t r = 0; r < a.rows; ++r) {
                       Value weight =
                           a.context.emit.shuffleFrom(weights[r], entry);
                       for (int64_t c = 0; c < columns; ++c)
                         next.push_back(s.add(carried[r * columns + c],
                                              s.mul(weight, x[c])));
                     }
                     return next;
                   });
}

void Gradient::storeRows(unsigned result, ValueRange sums, Value head,
                         int64_t depth, int64_t limit, double factor) {
  int64_t columns = columnsOf(depth);
  for (int64_t r = 0; r < a.rows; ++r)
    code.when(code.inside(rowOf(r), limit), [&] {
      for (int64_t c = 0; c < columns; ++c) {
        Value d = code.add(a.lane, c * kLanes);
        code.when(code.inside(d, depth), [&] {
          Value x = sums[r * columns + c];
          if (factor != 1)
            x = s.mul(x, s.number(factor));
          a.storeResult(result, {b, head, rowOf(r), d}, x);
        });
      }
    });
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

LogicalResult Gradient::emitQueries() {
  int64_t columns = columnsOf(a.depth);
  if (failed(chooseRows(columns)))
    return failure();
  beginRows(a.queries, a.heads);
  if (a.batch * a.heads * a.queries * a.depth == 0)
    return success();
  Value h = rowHead, hk = a.keyHead(h);
  auto q = a.stageRows(0, a.depth, blockRows(), a.scale);
  auto g = a.stageRows(a.cotangent, a.valueDepth, blockRows(), 1);
  statisticsArray = a.context.emit.sharedArray(a.real, 4 * blockRows());
  auto k = a.stageTile(1, a.depth, 1), v = a.stageTile(2, a.valueDepth, 1);
  a.fill(q, blockRows(), b, h, firstRow, a.queries);
  a.fill(g, blockRows(), b, h, firstRow, a.queries);
  Value lastQuery = code.number(a.queries - 1);
  code.when(code.inside(a.thread, blockRows()), [&] {
    Value i = code.min(code.add(firstRow, a.thread), lastQuery);
    auto row = a.statistics(b, h, i, a.rowDelta(b, h, i));
    Value alike = s.select(row.alike, s.one(), s.zero());
    for (auto [which, value] : llvm::enumerate(
             ArrayRef<Value>{row.shift, row.factor, row.delta, alike}))
      code.store(statisticsArray, a.real,
                 code.add(a.thread, int64_t(which) * blockRows()), value);
  });
  a.context.emit.barrier();
  SmallVector<AttentionCode::Statistics> statistics;
  for (int64_t r = 0; r < a.rows; ++r)
    statistics.push_back(
        {sharedStatistic(0, r), sharedStatistic(1, r),
         s.compare(Scalars::Ne, sharedStatistic(3, r), s.zero()),
         sharedStatistic(2, r)});
  Value last = code.min(code.add(firstRow, blockRows() - 1), lastQuery);
  auto sums = code.loop(
      code.number(0), a.visibleEnd(last), kLanes,
      Values(a.rows * columns, s.zero()),
      [&](Value first, ValueRange carried) -> Values {
        a.context.emit.barrier();
        a.fill(k, kLanes, b, hk, first, a.keys);
        a.fill(v, kLanes, b, hk, first, a.keys);
        a.context.emit.barrier();
        auto scores = products(q, h, k, hk, first, a.queries, a.keys);
        auto cotangents = products(g, h, v, hk, first, a.queries, a.keys);
        Value j = code.add(first, a.lane);
        for (int64_t r = 0; r < a.rows; ++r) {
          Value i = code.min(rowOf(r), lastQuery);
          auto score = a.score(scores[r], b, h, i, j);
          Value slope =
              a.weightAndCotangent(statistics[r], score.score, cotangents[r])
                  .second;
          if (score.capped)
            slope = s.mul(slope, a.capSlope(score.capped));
          scores[r] = slope;
        }
        return addEntries(carried, scores, k, hk, first, a.keys);
      });
  storeRows(0, sums, h, a.depth, a.queries, a.scale);
  return success();
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

LogicalResult Gradient::emitKeys() {
  int64_t keyColumns = columnsOf(a.depth),
          valueColumns = columnsOf(a.valueDepth);
  if (failed(chooseRows(keyColumns + valueColumns)))
    return failure();
  beginRows(a.keys, a.keyHeads);
  if (a.batch * a.keyHeads * a.keys == 0)
    return success();
  Value hk = rowHead;
  auto k = a.stageRows(1, a.depth, blockRows(), 1);
  auto v = a.stageRows(2, a.valueDepth, blockRows(), 1);
  auto q = a.stageTile(0, a.depth, a.scale);
  auto g = a.stageTile(a.cotangent, a.valueDepth, 1);
  a.fill(k, blockRows(), b, hk, firstRow, a.keys);
  a.fill(v, blockRows(), b, hk, firstRow, a.keys);
  // Queries before the first key of the block don't see it, unless rows without
  // visible keys count all alike.
  Value from = code.number(0);
  if (a.causal && !a.uniformRows) {
    from = code.max(from, code.sub(firstRow, a.offset));
    from = code.mul(code.div(from, kLanes), kLanes);
  }
  int64_t keySums = a.rows * keyColumns, valueSums = a.rows * valueColumns;
  auto overHeads = [&](Value member, ValueRange initial) -> Values {
    Value h = code.add(code.mul(hk, a.group), member);
    return code.loop(
        from, code.number(a.queries), kLanes, initial,
        [&](Value first, ValueRange carried) -> Values {
          a.context.emit.barrier();
          a.fill(q, kLanes, b, h, first, a.queries);
          a.fill(g, kLanes, b, h, first, a.queries);
          a.context.emit.barrier();
          auto scores = products(k, hk, q, h, first, a.keys, a.queries);
          auto weights = products(v, hk, g, h, first, a.keys, a.queries);
          Value own = code.add(first, a.lane);
          Value exists = code.inside(own, a.queries);
          Value i = code.select(exists, own, code.number(a.queries - 1));
          auto row = a.statistics(b, h, i, a.rowDelta(b, h, i));
          for (int64_t r = 0; r < a.rows; ++r) {
            auto score = a.score(scores[r], b, h, i, rowOf(r));
            auto [weight, slope] =
                a.weightAndCotangent(row, score.score, weights[r]);
            if (score.capped)
              slope = s.mul(slope, a.capSlope(score.capped));
            weights[r] = s.select(exists, weight, s.zero());
            scores[r] = s.select(exists, slope, s.zero());
          }
          Values next = addEntries(carried.take_front(keySums), scores, q, h,
                                   first, a.queries);
          next.append(addEntries(carried.drop_front(keySums), weights, g, h,
                                 first, a.queries));
          return next;
        });
  };
  auto sums = code.loop(code.number(0), code.number(a.group), 1,
                        Values(keySums + valueSums, s.zero()), overHeads);
  if (a.context.resultBuffer(1))
    storeRows(1, ArrayRef<Value>(sums).take_front(keySums), hk, a.depth, a.keys,
              1);
  if (a.context.resultBuffer(2))
    storeRows(2, ArrayRef<Value>(sums).drop_front(keySums), hk, a.valueDepth,
              a.keys, 1);
  return success();
}

//===----------------------------------------------------------------------===//
// Mask
//===----------------------------------------------------------------------===//

void Gradient::roundOperands() {
  if (!a.element_.isF32())
    return;
  MatrixTile tile(code,
                  MatrixTile::computeType(a.element_, a.context.capability,
                                          a.context.precision));
  a.rounded = [tile](Value number) mutable { return tile.roundTrip(number); };
}

LogicalResult Gradient::emitMask() {
  ArrayRef<int64_t> shape = shapeOf(a.context.op->getResult(3));
  SmallVector<int64_t> all{a.batch, a.heads, a.queries, a.keys}, kept(4, 1),
      summed(all);
  int64_t count = 1, terms = 1;
  for (size_t d = 1; d <= shape.size(); ++d)
    if (shape[shape.size() - d] != 1) {
      kept[4 - d] = all[4 - d];
      summed[4 - d] = 1;
    }
  for (int64_t d = 0; d < 4; ++d) {
    count *= kept[d];
    terms *= summed[d];
  }
  code.forEach(a.context.name, count, [&](Value item) {
    a.loadOffset();
    auto fixed = code.split(item, kept);
    Value sum = code.loop(
        code.number(0), code.number(terms), 1, {s.zero()},
        [&](Value term, ValueRange carried) -> Values {
          auto at = code.split(term, summed);
          for (int64_t d = 0; d < 4; ++d)
            if (kept[d] != 1)
              at[d] = fixed[d];
          b = at[0];
          Value h = at[1], i = at[2], j = at[3], hk = a.keyHead(h);
          Value q = a.product(b, h, i, j);
          Value p =
              code.loop(code.number(0), code.number(a.valueDepth), 1,
                        {s.zero()}, [&](Value d, ValueRange inner) -> Values {
                          Value g = a.loadOperand(a.cotangent, {b, h, i, d}),
                                v = a.loadOperand(2, {b, hk, j, d});
                          g = a.round(g);
                          v = a.round(v);
                          return {s.add(inner[0], s.mul(g, v))};
                        })[0];
          auto row = a.statistics(b, h, i, a.rowDelta(b, h, i));
          auto score = a.score(q, b, h, i, j);
          Value slope = a.weightAndCotangent(row, score.score, p).second;
          return {s.add(carried[0], slope)};
        })[0];
    code.store(a.context.resultBuffer(3),
               elementTypeOf(a.context.op->getResult(3)), item, sum);
  });
  return success();
}

} // namespace

LogicalResult mtp::emitAttentionGradient(LibraryKernelContext &context) {
  Gradient gradient(context);
  AttentionCode code(context);
  if (context.part != "mask" && hasMatrixAttention(code, /*isGradient=*/true))
    return emitMatrixAttentionGradient(context);
  if (hasMatrixAttention(code, /*isGradient=*/false))
    gradient.roundOperands();
  if (context.part == "queries")
    return gradient.emitQueries();
  if (context.part == "keys")
    return gradient.emitKeys();
  return gradient.emitMask();
}
