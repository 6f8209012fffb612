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

/// Indices of the scale: the last dimensions.
Value parameterElement(RegionEmitter &emit, Value parameter,
                       ArrayRef<IndexExpr> indices) {
  return emit.element(parameter, indices.take_back(shapeOf(parameter).size()));
}

/// Two sweeps, so that the variance does not cancel: mean, then deviations.
Value layerNorm(RegionEmitter &emit, Operation *op, unsigned,
                ArrayRef<IndexExpr> indices) {
  auto norm = cast<LayerNormOp>(op);
  Scalars s(emit, elementTypeOf(norm.getInput()));
  Row row(op, indices);
  auto stats = emit.once(op, 0, row.at, [&] {
    Value count = s.number(row.elements);
    Value sum =
        emit.sweep(op, 0, norm.getInput(), row.at, row.swept, {s.zero()},
                   /*severalSweeps=*/true,
                   [&](Value x, ArrayRef<IndexExpr>, ValueRange carried) {
                     return SmallVector<Value>{s.accumulate(carried[0], x)};
                   })[0];
    Value mean = s.div(sum, count);
    Value squares = emit.sweep(
        op, 1, norm.getInput(), row.at, row.swept, {s.zero()},
        /*severalSweeps=*/true,
        [&](Value x, ArrayRef<IndexExpr>, ValueRange carried) {
          Value d = s.sub(x, mean);
          return SmallVector<Value>{s.accumulate(carried[0], s.mul(d, d))};
        })[0];
    Value variance = s.add(s.div(squares, count),
                           s.number(norm.getEpsilon().convertToDouble()));
    return SmallVector<Value>{mean, s.div(s.one(), s.sqrt(variance))};
  });
  Value x =
      s.mul(s.sub(emit.element(norm.getInput(), indices), stats[0]), stats[1]);
  x = s.mul(x, parameterElement(emit, norm.getScale(), indices));
  return norm.getBias()
             ? s.add(x, parameterElement(emit, norm.getBias(), indices))
             : x;
}

Value rmsNorm(RegionEmitter &emit, Operation *op, unsigned,
              ArrayRef<IndexExpr> indices) {
  auto norm = cast<RmsNormOp>(op);
  Scalars s(emit, elementTypeOf(norm.getInput()));
  Row row(op, indices);
  Value scale = emit.once(op, 0, row.at, [&] {
    Value squares = emit.sweep(
        op, 0, norm.getInput(), row.at, row.swept, {s.zero()},
        /*severalSweeps=*/true,
        [&](Value x, ArrayRef<IndexExpr>, ValueRange carried) {
          return SmallVector<Value>{s.accumulate(carried[0], s.mul(x, x))};
        })[0];
    Value mean = s.add(s.div(squares, s.number(row.elements)),
                       s.number(norm.getEpsilon().convertToDouble()));
    return SmallVector<Value>{s.div(s.one(), s.sqrt(mean))};
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
}
