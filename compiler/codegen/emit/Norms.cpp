// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/RowOps.h"
#include "compiler/codegen/emit/Scalars.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {

/// A row op at one position: what is swept, and where the row is.
struct Row {
  SmallVector<unsigned> swept;
  Indices at; ///< swept dimensions at 0
  int64_t elements = 1;

  Row(Operation *op, ArrayRef<IndexExpr> indices)
      : swept(*sweptDims(op)), at(indices.begin(), indices.end()) {
    for (unsigned dim : swept) {
      at[dim] = IndexExpr();
      elements *= shapeOf(op->getOperand(0))[dim];
    }
  }
};

Value maximumOf(RegionEmitter &emit, Scalars &s, Operation *op,
                const Row &row) {
  return emit.sweep(op, 0, op->getOperand(0), row.at, row.swept, {s.lowest()},
                    /*severalSweeps=*/true,
                    [&](Value x, ArrayRef<IndexExpr>, ValueRange carried) {
                      return SmallVector<Value>{s.max(carried[0], x)};
                    })[0];
}

/// A row of -inf is NaN: -inf - -inf.
Value softmax(RegionEmitter &emit, Operation *op, unsigned,
              ArrayRef<IndexExpr> indices) {
  Value input = op->getOperand(0);
  Scalars s(emit, elementTypeOf(input));
  Row row(op, indices);
  Type kept = RegionEmitter::registerType(elementTypeOf(input));
  unsigned dim = row.swept[0];
  // {maximum, 1 / sum, buffer of the exponentials if there is room}
  auto stats = emit.once(op, 0, row.at, [&] {
    Value maximum = maximumOf(emit, s, op, row);
    bool keeps = emit.hasRoom(kept, row.elements);
    Value buffer = keeps ? emit.scratch(kept, row.elements) : Value();
    Value sum = emit.sweep(
        op, 1, input, row.at, row.swept, {s.zero()}, /*severalSweeps=*/true,
        [&](Value x, ArrayRef<IndexExpr> inside, ValueRange carried) {
          Value e = s.exp(s.sub(x, maximum));
          if (keeps)
            emit.storeAt(buffer, kept, inside[dim], e);
          return SmallVector<Value>{s.accumulate(carried[0], e)};
        })[0];
    SmallVector<Value> result{maximum, s.div(s.one(), sum)};
    if (keeps)
      result.push_back(buffer);
    return result;
  });
  Value e = stats.size() > 2
                ? emit.loadAt(stats[2], kept, indices[dim])
                : s.exp(s.sub(emit.element(input, indices), stats[0]));
  return s.mul(e, stats[1]);
}

/// x - maximum - log(sum of exp(x - maximum))
Value logSoftmax(RegionEmitter &emit, Operation *op, unsigned,
                 ArrayRef<IndexExpr> indices) {
  Value input = op->getOperand(0);
  Scalars s(emit, elementTypeOf(input));
  Row row(op, indices);
  auto stats = emit.once(op, 0, row.at, [&] {
    Value maximum = maximumOf(emit, s, op, row);
    Value sum = emit.sweep(
        op, 1, input, row.at, row.swept, {s.zero()}, /*severalSweeps=*/true,
        [&](Value x, ArrayRef<IndexExpr>, ValueRange carried) {
          return SmallVector<Value>{
              s.accumulate(carried[0], s.exp(s.sub(x, maximum)))};
        })[0];
    return SmallVector<Value>{maximum, s.log(sum)};
  });
  return s.sub(s.sub(emit.element(input, indices), stats[0]), stats[1]);
}

/// The sum over a row of `term(g, position)`, in which the cotangent g is kept
/// for later.
template <typename Term>
Value sumOverRow(RegionEmitter &emit, Scalars &s, Operation *op,
                 unsigned number, Value g, const Row &row, Term &&term) {
  return emit.sweep(
      op, number, g, row.at, row.swept, {s.zero()}, /*severalSweeps=*/true,
      [&](Value x, ArrayRef<IndexExpr> inside, ValueRange carried) {
        return SmallVector<Value>{s.accumulate(carried[0], term(x, inside))};
      })[0];
}

/// y (g - sum of g y)
Value softmaxGradient(RegionEmitter &emit, Operation *op, unsigned,
                      ArrayRef<IndexExpr> indices) {
  auto gradient = cast<SoftmaxGradientOp>(op);
  Value y = gradient.getOutput(), g = gradient.getCotangent();
  Scalars s(emit, elementTypeOf(y));
  Row row(op, indices);
  Value sum = emit.once(op, 0, row.at, [&] {
    return SmallVector<Value>{sumOverRow(
        emit, s, op, 0, g, row, [&](Value x, ArrayRef<IndexExpr> inside) {
          return s.mul(x, emit.element(y, inside));
        })};
  })[0];
  return s.mul(emit.element(y, indices), s.sub(emit.element(g, indices), sum));
}

/// g - exp(y) sum of g
Value logSoftmaxGradient(RegionEmitter &emit, Operation *op, unsigned,
                         ArrayRef<IndexExpr> indices) {
  auto gradient = cast<LogSoftmaxGradientOp>(op);
  Value y = gradient.getOutput(), g = gradient.getCotangent();
  Scalars s(emit, elementTypeOf(y));
  Row row(op, indices);
  Value sum = emit.once(op, 0, row.at, [&] {
    return SmallVector<Value>{
        sumOverRow(emit, s, op, 0, g, row,
                   [](Value x, ArrayRef<IndexExpr>) { return x; })};
  })[0];
  return s.sub(emit.element(g, indices),
               s.mul(s.exp(emit.element(y, indices)), sum));
}

/// Indices of the scale: the last dimensions.
Value parameterElement(RegionEmitter &emit, Value parameter,
                       ArrayRef<IndexExpr> indices) {
  return emit.element(parameter, indices.take_back(shapeOf(parameter).size()));
}

/// Mean and 1 / sqrt(variance + epsilon). Two sweeps, so that the variance does
/// not cancel: mean, then deviations.
SmallVector<Value> layerStatistics(RegionEmitter &emit, Scalars &s,
                                   Operation *op, double epsilon,
                                   const Row &row) {
  Value input = op->getOperand(0), count = s.number(row.elements);
  Value sum = sumOverRow(emit, s, op, 0, input, row,
                         [](Value x, ArrayRef<IndexExpr>) { return x; });
  Value mean = s.div(sum, count);
  Value squares =
      sumOverRow(emit, s, op, 1, input, row, [&](Value x, ArrayRef<IndexExpr>) {
        Value d = s.sub(x, mean);
        return s.mul(d, d);
      });
  Value variance = s.add(s.div(squares, count), s.number(epsilon));
  return {mean, s.div(s.one(), s.sqrt(variance))};
}

Value layerNorm(RegionEmitter &emit, Operation *op, unsigned,
                ArrayRef<IndexExpr> indices) {
  auto norm = cast<LayerNormOp>(op);
  Scalars s(emit, elementTypeOf(norm.getInput()));
  Row row(op, indices);
  auto stats = emit.once(op, 0, row.at, [&] {
    return layerStatistics(emit, s, op, norm.getEpsilon().convertToDouble(),
                           row);
  });
  Value x =
      s.mul(s.sub(emit.element(norm.getInput(), indices), stats[0]), stats[1]);
  x = s.mul(x, parameterElement(emit, norm.getScale(), indices));
  return norm.getBias()
             ? s.add(x, parameterElement(emit, norm.getBias(), indices))
             : x;
}

/// 1 / sqrt(mean of squares + epsilon)
Value rootStatistic(RegionEmitter &emit, Scalars &s, Operation *op,
                    double epsilon, const Row &row) {
  Value squares =
      sumOverRow(emit, s, op, 0, op->getOperand(0), row,
                 [&](Value x, ArrayRef<IndexExpr>) { return s.mul(x, x); });
  Value mean = s.add(s.div(squares, s.number(row.elements)), s.number(epsilon));
  return s.div(s.one(), s.sqrt(mean));
}

/// r (h - mean(h) - n mean(h n)), h = g scale, n the normalized input; without
/// mean(h) for rms_norm.
template <typename Op, bool centered>
Value normGradient(RegionEmitter &emit, Operation *op, unsigned,
                   ArrayRef<IndexExpr> indices) {
  auto norm = cast<Op>(op);
  Value x = norm.getInput(), g = norm.getCotangent();
  Scalars s(emit, elementTypeOf(x));
  Row row(op, indices);
  double epsilon = norm.getEpsilon().convertToDouble();
  auto scaled = [&](Value element, ArrayRef<IndexExpr> at) {
    return s.mul(element, parameterElement(emit, norm.getScale(), at));
  };
  auto normalized = [&](ArrayRef<IndexExpr> at, ValueRange stats) {
    Value element = emit.element(x, at);
    if (centered)
      element = s.sub(element, stats[1]);
    return s.mul(element, stats[0]);
  };
  // r, mean(x), mean(h n), mean(h)
  auto stats = emit.once(op, 0, row.at, [&] {
    SmallVector<Value> known;
    if (centered) {
      auto both = layerStatistics(emit, s, op, epsilon, row);
      known = {both[1], both[0]};
    } else {
      known = {rootStatistic(emit, s, op, epsilon, row), s.zero()};
    }
    auto sums = emit.sweep(
        op, 2, g, row.at, row.swept, {s.zero(), s.zero()},
        /*severalSweeps=*/true,
        [&](Value element, ArrayRef<IndexExpr> inside, ValueRange carried) {
          Value h = scaled(element, inside);
          return SmallVector<Value>{
              s.accumulate(carried[0], s.mul(h, normalized(inside, known))),
              centered ? s.accumulate(carried[1], h) : carried[1]};
        });
    for (Value sum : sums)
      known.push_back(s.div(sum, s.number(row.elements)));
    return known;
  });
  Value h = scaled(emit.element(g, indices), indices);
  if (centered)
    h = s.sub(h, stats[3]);
  return s.mul(stats[0], s.sub(h, s.mul(normalized(indices, stats), stats[2])));
}

Value rmsNorm(RegionEmitter &emit, Operation *op, unsigned,
              ArrayRef<IndexExpr> indices) {
  auto norm = cast<RmsNormOp>(op);
  Scalars s(emit, elementTypeOf(norm.getInput()));
  Row row(op, indices);
  Value scale = emit.once(op, 0, row.at, [&] {
    return SmallVector<Value>{
        rootStatistic(emit, s, op, norm.getEpsilon().convertToDouble(), row)};
  })[0];
  return s.mul(s.mul(emit.element(norm.getInput(), indices), scale),
               parameterElement(emit, norm.getScale(), indices));
}

} // namespace

void mtp::registerNormEmitters(EmitterTable &table) {
  table["mtp.softmax"] = {softmax, FusionKind::Row, 16};
  table["mtp.log_softmax"] = {logSoftmax, FusionKind::Row, 16};
  table["mtp.layer_norm"] = {layerNorm, FusionKind::Row, 8};
  table["mtp.rms_norm"] = {rmsNorm, FusionKind::Row, 6};
  table["mtp.softmax_gradient"] = {softmaxGradient, FusionKind::Row, 6};
  table["mtp.log_softmax_gradient"] = {logSoftmaxGradient, FusionKind::Row, 16};
  table["mtp.layer_norm_gradient"] = {normGradient<LayerNormGradientOp, true>,
                                      FusionKind::Row, 16};
  table["mtp.rms_norm_gradient"] = {normGradient<RmsNormGradientOp, false>,
                                    FusionKind::Row, 12};
}
