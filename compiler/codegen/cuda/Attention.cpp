// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Attention.cpp - softmax(Q K') V without a stored score matrix ------===//
//
// Rows are queries, tiles are keys (AttentionCode.h). The maximum and the sum
// of a row run along; each tile rescales what was added before. Values are read
// where they lie: lanes go along their depth, and the warps of a block read the
// same ones.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/AttentionCode.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {

using Values = AttentionCode::Values;

SmallVector<KernelPart> attentionParts(Operation *op) {
  KernelPart part;
  part.results.push_back(0);
  if (!op->getResult(1).use_empty())
    part.results.push_back(1);
  return {part};
}

/// The forward pass of a block of queries.
class Forward {
public:
  explicit Forward(LibraryKernelContext &context)
      : a(context), code(a.code), s(a.s) {}
  LogicalResult emit();

private:
  /// What runs along: a row's maximum, its sum, and its result's elements that
  /// the lane has.
  struct Row {
    Value maximum, sum;
    Values result;
  };
  Values pack(ArrayRef<Row> rows) const;
  SmallVector<Row> unpack(ValueRange values) const;
  SmallVector<Value> products(Value first);
  Value takeTile(Row &row, Value product, Value i, Value first);
  void addValues(MutableArrayRef<Row> rows, ArrayRef<Value> weights,
                 Value first);
  void store(const Row &row, Value i);

  AttentionCode a;
  KernelCode &code;
  Scalars &s;
  int64_t columns = 1; ///< elements of a result that a lane has
  Value b, h, hk, firstRow;
  StagedRows queries, keys;
};

Values Forward::pack(ArrayRef<Row> rows) const {
  Values all;
  for (const Row &row : rows) {
    all.push_back(row.maximum);
    all.push_back(row.sum);
    all.append(row.result);
  }
  return all;
}

SmallVector<Forward::Row> Forward::unpack(ValueRange values) const {
  SmallVector<Row> rows;
  for (int64_t r = 0; r < a.rows; ++r) {
    ValueRange own = values.slice(r * (2 + columns), 2 + columns);
    rows.push_back({own[0], own[1], Values(own.drop_front(2))});
  }
  return rows;
}

/// Of the warp's rows and the lane's key.
SmallVector<Value> Forward::products(Value first) {
  return code.loop(
      code.number(0), code.number(a.depth), 1, Values(a.rows, s.zero()),
      [&](Value d, ValueRange carried) -> Values {
        Value k = a.element(keys, b, hk, first, a.lane, d, a.keys);
        Values next;
        for (int64_t r = 0; r < a.rows; ++r) {
          Value number = code.add(code.mul(a.warp, a.rows), r);
          Value q = a.element(queries, b, h, firstRow, number, d, a.queries);
          next.push_back(s.add(carried[r], s.mul(q, k)));
        }
        return next;
      });
}

/// The lane's weight of a row; the row's sums are rescaled.
Value Forward::takeTile(Row &row, Value product, Value i, Value first) {
  Value score = a.score(product, b, h, i, code.add(first, a.lane)).score;
  Value most = s.max(row.maximum, a.laneMax(score));
  // Without any visible key so far: -inf - -inf is NaN.
  Value shift =
      s.select(s.compare(Scalars::Eq, most, s.lowest()), s.zero(), most);
  Value weight = s.exp(s.sub(score, shift));
  Value rescale = s.exp(s.sub(row.maximum, shift));
  row.maximum = most;
  row.sum = s.add(s.mul(row.sum, rescale), a.laneSum(weight));
  for (Value &element : row.result)
    element = s.mul(element, rescale);
  return weight;
}

void Forward::addValues(MutableArrayRef<Row> rows, ArrayRef<Value> weights,
                        Value first) {
  Values initial;
  for (const Row &row : rows)
    initial.append(row.result);
  Value count = code.min(code.number(AttentionCode::kLanes),
                         code.sub(code.number(a.keys), first));
  auto sums = code.loop(
      code.number(0), count, 1, initial,
      [&](Value entry, ValueRange carried) -> Values {
        Values v;
        for (int64_t c = 0; c < columns; ++c) {
          Value d = code.add(a.lane, c * AttentionCode::kLanes);
          d = code.min(d, code.number(a.valueDepth - 1));
          v.push_back(a.loadOperand(2, {b, hk, code.add(first, entry), d}));
        }
        Values next;
        for (int64_t r = 0; r < a.rows; ++r) {
          Value weight = a.context.emit.shuffleFrom(weights[r], entry);
          for (int64_t c = 0; c < columns; ++c)
            next.push_back(
                s.add(carried[r * columns + c], s.mul(weight, v[c])));
        }
        return next;
      });
  for (auto [r, row] : llvm::enumerate(rows))
    row.result.assign(sums.begin() + r * columns,
                      sums.begin() + (r + 1) * columns);
}

void Forward::store(const Row &row, Value i) {
  Value hidden = s.compare(Scalars::Eq, row.maximum, s.lowest());
  for (int64_t c = 0; c < columns; ++c) {
    Value d = code.add(a.lane, c * AttentionCode::kLanes);
    code.when(code.inside(d, a.valueDepth), [&] {
      // 0 / 0 is NaN, which is what a softmax of nothing gives.
      Value y = s.div(row.result[c], row.sum);
      if (a.zeroRows)
        y = s.select(hidden, s.zero(), y);
      if (a.uniformRows)
        y = code.choose(
            hidden, {a.real},
            [&]() -> Values { return {a.meanOfValues(b, hk, d)}; },
            [&]() -> Values { return {y}; })[0];
      a.storeResult(0, {b, h, i, d}, y);
    });
  }
  if (!a.context.resultBuffer(1))
    return;
  Value isFirst =
      code.compare(arith::CmpIPredicate::eq, a.lane, code.number(0));
  code.when(isFirst, [&] {
    Value logarithm = s.add(row.maximum, s.log(row.sum));
    a.storeResult(1, {b, h, i}, s.select(hidden, s.lowest(), logarithm));
  });
}

LogicalResult Forward::emit() {
  columns = std::max<int64_t>(1, (a.valueDepth + AttentionCode::kLanes - 1) /
                                     AttentionCode::kLanes);
  a.rows = a.chooseRows(a.depth, columns + 2);
  if (a.rows == 0)
    return a.context.op->emitOpError()
           << "has heads of " << a.depth
           << " elements, more than a kernel on cuda has memory for";
  int64_t blockRows = a.rows * AttentionCode::kWarps;
  int64_t tiles = std::max<int64_t>(1, (a.queries + blockRows - 1) / blockRows);
  a.begin(tiles, a.batch * a.heads);
  if (a.batch * a.heads * a.queries * a.valueDepth == 0)
    return success();
  a.loadOffset();
  auto at = code.split(a.block, {a.batch, a.heads, tiles});
  b = at[0];
  h = at[1];
  hk = a.keyHead(h);
  firstRow = code.mul(at[2], blockRows);
  queries = a.stageRows(0, a.depth, blockRows, a.scale);
  keys = a.stageTile(1, a.depth, 1);
  a.fill(queries, blockRows, b, h, firstRow, a.queries);
  Value warpRow = code.add(firstRow, code.mul(a.warp, a.rows));
  Value lastQuery = code.number(a.queries - 1);
  auto query = [&](int64_t r) { return code.add(warpRow, r); };
  SmallVector<Row> initial(
      a.rows, Row{s.lowest(), s.zero(), Values(columns, s.zero())});
  Value last = code.min(code.add(firstRow, blockRows - 1), lastQuery);
  auto done =
      code.loop(code.number(0), a.visibleEnd(last), AttentionCode::kLanes,
                pack(initial), [&](Value first, ValueRange carried) -> Values {
                  SmallVector<Row> rows = unpack(carried);
                  a.context.emit.barrier();
                  a.fill(keys, AttentionCode::kLanes, b, hk, first, a.keys);
                  a.context.emit.barrier();
                  SmallVector<Value> weights = products(first);
                  for (int64_t r = 0; r < a.rows; ++r)
                    weights[r] = takeTile(rows[r], weights[r],
                                          code.min(query(r), lastQuery), first);
                  addValues(rows, weights, first);
                  return pack(rows);
                });
  SmallVector<Row> rows = unpack(done);
  for (int64_t r = 0; r < a.rows; ++r)
    code.when(code.inside(query(r), a.queries),
              [&] { store(rows[r], query(r)); });
  return success();
}

LogicalResult emitAttention(LibraryKernelContext &context) {
  return hasMatrixAttention(AttentionCode(context), /*isGradient=*/false)
             ? emitMatrixAttention(context)
             : Forward(context).emit();
}

} // namespace

void mtp::registerAttentionKernels(LibraryKernelTable &table) {
  table["mtp.attention"] = {attentionParts, emitAttention};
  table["mtp.attention_gradient"] = {attentionGradientParts,
                                     emitAttentionGradient};
}
