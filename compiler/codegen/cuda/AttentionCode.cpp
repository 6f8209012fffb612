// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cuda/AttentionCode.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

/// Shared memory of a block that tiles may take.
static constexpr int64_t kMaxTiles = 46 << 10;
/// Sums that a lane keeps in registers.
static constexpr int64_t kMaxSums = 32;

template <typename Op> static void readAttributes(AttentionCode &a, Op op) {
  a.scale = op.getScale().convertToDouble();
  a.softcap = op.getSoftcap().convertToDouble();
  a.causal = op.getCausal();
  a.causalOffset = op.getCausalOffset();
  a.zeroRows = op.getMaskedRowZero();
  a.uniformRows = op.getMaskedRowUniform();
  int next = 3;
  if (op.getMask())
    a.mask = next++;
  if (op.getQueryStart())
    a.start = next++;
}

AttentionCode::AttentionCode(LibraryKernelContext &context)
    : context(context), code(context.emit),
      element_(elementTypeOf(context.op->getOperand(0))),
      real(RegionEmitter::registerType(element_)), s(context.emit, real) {
  Operation *op = context.op;
  ArrayRef<int64_t> q = shapeOf(op->getOperand(0)),
                    k = shapeOf(op->getOperand(1)),
                    v = shapeOf(op->getOperand(2));
  batch = q[0];
  heads = q[1];
  queries = q[2];
  depth = q[3];
  keyHeads = k[1];
  keys = k[2];
  valueDepth = v[3];
  group = std::max<int64_t>(1, heads / std::max<int64_t>(1, keyHeads));
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    readAttributes(*this, attention);
    return;
  }
  readAttributes(*this, cast<AttentionGradientOp>(op));
  cotangent = op->getNumOperands() - 1;
  logsumexp = cotangent - 1;
  output = cotangent - 2;
}

int64_t AttentionCode::bytes(int64_t elements) const {
  return elements * real.getIntOrFloatBitWidth() / 8;
}

int64_t AttentionCode::chooseRows(int64_t rowElements, int64_t sums) const {
  for (int64_t count : {4, 2, 1}) {
    // Half of the memory is left for tiles, which may also lie outside.
    bool fits = bytes(kWarps * count * rowElements) <=
                (count > 1 ? kMaxTiles / 3 : kMaxTiles);
    if (fits && (count * sums <= kMaxSums || count == 1))
      return count;
  }
  return 0;
}

void AttentionCode::begin(int64_t tiles, int64_t allHeads) {
  LaunchShape launch;
  launch.block[0] = kLanes * kWarps;
  launch.grid[0] = std::max<int64_t>(1, tiles * allHeads);
  context.emit.beginKernel(context.name, launch);
  thread = context.emit.threadId();
  lane = code.rem(thread, kLanes);
  warp = code.div(thread, kLanes);
  block = context.emit.blockId();
}

void AttentionCode::loadOffset() {
  offset = code.number(causalOffset);
  if (start < 0)
    return;
  Value added = code.loadIndex(context.operandBuffer(start),
                               elementTypeOf(context.op->getOperand(start)),
                               code.number(0));
  offset = code.add(offset, added);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

StagedRows AttentionCode::stageRows(unsigned operand, int64_t elements,
                                    int64_t count, double factor) {
  StagedRows result;
  result.operand = operand;
  result.depth = elements;
  result.stride = elements;
  result.factor = factor;
  result.shared = context.emit.sharedArray(real, count * elements);
  sharedBytes += bytes(count * elements);
  return result;
}

StagedRows AttentionCode::stageTile(unsigned operand, int64_t elements,
                                    double factor) {
  StagedRows result;
  result.operand = operand;
  result.depth = elements;
  // One more: lanes that read the same element of their entries read different
  // banks.
  result.stride = elements + 1;
  result.factor = factor;
  int64_t size = bytes(kLanes * result.stride);
  if (sharedBytes + size > kMaxTiles)
    return result;
  sharedBytes += size;
  result.shared = context.emit.sharedArray(real, kLanes * result.stride);
  return result;
}

Value AttentionCode::loadOperand(unsigned operand, ArrayRef<Value> at) {
  return code.load(context.operandBuffer(operand),
                   elementTypeOf(context.op->getOperand(operand)),
                   code.join(at, context.operandStrides(operand)));
}

void AttentionCode::storeResult(unsigned result, ArrayRef<Value> at,
                                Value value) {
  Type type = elementTypeOf(context.op->getResult(result));
  code.store(context.resultBuffer(result), type,
             code.join(at, context.resultStrides(result)), value);
}

void AttentionCode::fill(const StagedRows &rows, int64_t count, Value b,
                         Value h, Value first, int64_t limit) {
  if (!rows.shared)
    return;
  code.loop(thread, code.number(count * rows.depth), kLanes * kWarps, {},
            [&](Value at, ValueRange) -> Values {
              Value number = code.div(at, rows.depth),
                    d = code.rem(at, rows.depth);
              StagedRows outside = rows;
              outside.shared = Value();
              Value x = element(outside, b, h, first, number, d, limit);
              code.store(rows.shared, real,
                         code.add(code.mul(number, rows.stride), d), x);
              return {};
            });
}

Value AttentionCode::element(const StagedRows &rows, Value b, Value h,
                             Value first, Value number, Value d,
                             int64_t limit) {
  if (rows.shared)
    return code.load(rows.shared, real,
                     code.add(code.mul(number, rows.stride), d));
  Value at = code.add(first, number);
  Value exists = code.inside(at, limit);
  at = code.select(exists, at, code.number(0));
  Value x = round(loadOperand(rows.operand, {b, h, at, d}));
  if (rows.factor != 1)
    x = s.mul(x, s.number(rows.factor));
  return s.select(exists, x, s.zero());
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

Value AttentionCode::laneMax(Value value) {
  for (int64_t mask = kLanes / 2; mask > 0; mask /= 2)
    value = s.max(value, context.emit.shuffleXor(value, mask));
  return value;
}

Value AttentionCode::laneSum(Value value) {
  for (int64_t mask = kLanes / 2; mask > 0; mask /= 2)
    value = s.add(value, context.emit.shuffleXor(value, mask));
  return value;
}

/// Strides of the mask under (b, h, i, j).
SmallVector<int64_t> AttentionCode::maskStrides() const {
  ArrayRef<int64_t> shape = shapeOf(context.op->getOperand(mask));
  auto own = rowMajorStrides(shape);
  SmallVector<int64_t> strides(4, 0);
  for (size_t i = 1; i <= shape.size(); ++i)
    if (shape[shape.size() - i] != 1)
      strides[4 - i] = own[shape.size() - i];
  return strides;
}

AttentionCode::Score AttentionCode::score(Value product, Value b, Value h,
                                          Value i, Value j) {
  Score result;
  result.score = product;
  if (softcap > 0) {
    Value t = s.tanh(s.div(product, s.number(softcap)));
    result.score = result.capped = s.mul(t, s.number(softcap));
  }
  Value visible = code.inside(j, keys);
  if (mask >= 0) {
    Type type = elementTypeOf(context.op->getOperand(mask));
    Value safe = code.select(visible, j, code.number(0));
    Value m = code.load(context.operandBuffer(mask), type,
                        code.join({b, h, i, safe}, maskStrides()));
    if (type.isInteger(1))
      visible = code.both(visible, m);
    else
      result.score = s.add(result.score, m);
  }
  if (causal) {
    Value hidden = code.less(code.add(i, offset), j);
    visible = code.both(visible, code.negate(hidden));
  }
  result.score = s.select(visible, result.score, s.lowest());
  return result;
}

Value AttentionCode::capSlope(Value capped) {
  Value t = s.div(capped, s.number(softcap));
  return s.sub(s.one(), s.mul(t, t));
}

Value AttentionCode::visibleEnd(Value last) {
  Value all = code.number(keys);
  if (!causal)
    return all;
  Value end = code.add(code.add(last, offset), 1);
  return code.max(code.number(0), code.min(all, end));
}

Value AttentionCode::meanOfValues(Value b, Value hk, Value d) {
  Value sum = code.loop(code.number(0), code.number(keys), 1, {s.zero()},
                        [&](Value j, ValueRange carried) -> Values {
                          Value v = loadOperand(2, {b, hk, j, d});
                          return {s.add(carried[0], v)};
                        })[0];
  return s.div(sum, s.number(double(keys)));
}

//===----------------------------------------------------------------------===//
// The gradient's rows
//===----------------------------------------------------------------------===//

/// The scaled product of query i and key j, read where they lie.
Value AttentionCode::product(Value b, Value h, Value i, Value j) {
  Value hk = keyHead(h);
  return code.loop(code.number(0), code.number(depth), 1, {s.zero()},
                   [&](Value d, ValueRange carried) -> Values {
                     Value q = s.mul(round(loadOperand(0, {b, h, i, d})),
                                     s.number(scale));
                     Value k = round(loadOperand(1, {b, hk, j, d}));
                     return {s.add(carried[0], s.mul(q, k))};
                   })[0];
}

/// Maximum and 1 / sum as the forward pass has them, where their logarithm has
/// lost too many digits (scores of the order of 1e3, masks of -1e38).
AttentionCode::Values AttentionCode::exactStatistics(Value b, Value h,
                                                     Value i) {
  auto both = code.loop(
      code.number(0), visibleEnd(i), 1, {s.lowest(), s.zero()},
      [&](Value j, ValueRange carried) -> Values {
        Value x = score(product(b, h, i, j), b, h, i, j).score;
        Value most = s.max(carried[0], x);
        Value shift =
            s.select(s.compare(Scalars::Eq, most, s.lowest()), s.zero(), most);
        Value sum = s.mul(carried[1], s.exp(s.sub(carried[0], shift)));
        return {most, s.add(sum, s.exp(s.sub(x, shift)))};
      });
  return {both[0], s.div(s.one(), both[1])};
}

AttentionCode::Statistics AttentionCode::statistics(Value b, Value h, Value i,
                                                    Value delta) {
  Statistics result;
  Value logSum = loadOperand(logsumexp, {b, h, i});
  Value empty = s.compare(Scalars::Eq, logSum, s.lowest());
  Value large =
      s.compare(Scalars::Gt, s.abs(logSum), s.number(s.isF64() ? 1e8 : 256));
  large = code.both(large, code.negate(empty));
  auto known = code.choose(
      large, {real, real}, [&] { return exactStatistics(b, h, i); },
      [&] { return Values{logSum, s.one()}; });
  result.shift = s.select(empty, s.zero(), known[0]);
  result.factor = s.select(empty, s.zero(), known[1]);
  result.alike = zeroRows
                     ? Value(arith::ConstantIntOp::create(
                           code.builder, code.loc, code.builder.getI1Type(), 0))
                     : empty;
  result.delta = delta;
  return result;
}

Value AttentionCode::rowDelta(Value b, Value h, Value i) {
  return code.loop(code.number(0), code.number(valueDepth), 1, {s.zero()},
                   [&](Value d, ValueRange carried) -> Values {
                     Value y = loadOperand(output, {b, h, i, d}),
                           g = round(loadOperand(cotangent, {b, h, i, d}));
                     return {s.add(carried[0], s.mul(y, g))};
                   })[0];
}

std::pair<Value, Value>
AttentionCode::weightAndCotangent(const Statistics &row, Value score,
                                  Value weightCotangent) {
  Value weight = s.mul(s.exp(s.sub(score, row.shift)), row.factor);
  Value slope = s.mul(weight, s.sub(weightCotangent, row.delta));
  double nan = std::numeric_limits<double>::quiet_NaN();
  weight = s.select(row.alike, s.number(uniformRows ? 1.0 / double(keys) : nan),
                    weight);
  slope = s.select(row.alike, s.number(uniformRows ? 0 : nan), slope);
  return {weight, slope};
}
