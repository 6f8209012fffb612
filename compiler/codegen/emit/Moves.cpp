// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/Scalars.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {

Value constantElement(RegionEmitter &emit, Operation *op, unsigned,
                      ArrayRef<IndexExpr> indices) {
  ElementsAttr value = cast<ConstantOp>(op).getValue();
  Type type = elementTypeOf(op->getResult(0));
  if (auto splat = splatValue(op->getResult(0))) {
    Scalars s(emit, type);
    return s.isFloat()
               ? s.number(*splat)
               : s.integer(
                     cast<DenseElementsAttr>(value).getSplatValue<APInt>());
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return emit.refuse(op,
                       "is a constant whose elements are not in the module");
  Value array = emit.once(op, 0, {}, [&] {
    return SmallVector<Value>{emit.globalArray(dense)};
  })[0];
  return emit.loadAt(array, type,
                     linearize(indices, shapeOf(op->getResult(0))));
}

Value iotaElement(RegionEmitter &emit, Operation *op, unsigned,
                  ArrayRef<IndexExpr> indices) {
  Value position = emit.materialize(indices[cast<IotaOp>(op).getDim()]);
  return Scalars(emit, emit.builder.getI64Type())
      .convert(position, elementTypeOf(op->getResult(0)));
}

Value reshapeElement(RegionEmitter &emit, Operation *op, unsigned,
                     ArrayRef<IndexExpr> indices) {
  IndexExpr linear = linearize(indices, shapeOf(op->getResult(0)));
  return emit.element(op->getOperand(0),
                      emit.delinearize(linear, shapeOf(op->getOperand(0))));
}

Value transposeElement(RegionEmitter &emit, Operation *op, unsigned,
                       ArrayRef<IndexExpr> indices) {
  Indices operand(indices.size());
  for (auto [i, dim] : llvm::enumerate(cast<TransposeOp>(op).getPerm()))
    operand[dim] = indices[i];
  return emit.element(op->getOperand(0), operand);
}

Value broadcastOpElement(RegionEmitter &emit, Operation *op, unsigned,
                         ArrayRef<IndexExpr> indices) {
  return emit.broadcastElement(op->getOperand(0), indices);
}

Value sliceElement(RegionEmitter &emit, Operation *op, unsigned,
                   ArrayRef<IndexExpr> indices) {
  auto slice = cast<StridedSliceOp>(op);
  Indices operand(indices.begin(), indices.end());
  operand[slice.getDim()] =
      operand[slice.getDim()] * slice.getStep() + IndexExpr(slice.getStart());
  return emit.element(op->getOperand(0), operand);
}

/// position < bound, where the loops do not know.
Value isBelow(RegionEmitter &emit, const IndexExpr &position, int64_t bound) {
  Scalars s(emit, emit.builder.getI64Type());
  Value at = emit.materialize(position);
  return s.compare(Scalars::Lt, at, s.integer(bound));
}

Value concatElement(RegionEmitter &emit, Operation *op, unsigned,
                    ArrayRef<IndexExpr> indices) {
  int64_t dim = cast<ConcatOp>(op).getDim(), end = 0;
  SmallVector<int64_t> ends;
  for (Value input : op->getOperands())
    ends.push_back(end += shapeOf(input)[dim]);
  SmallVector<int64_t> bounds(ends.begin(), ends.end() - 1);
  auto part = [&](size_t number) {
    Indices operand(indices.begin(), indices.end());
    operand[dim] = operand[dim] + IndexExpr(number ? -ends[number - 1] : 0);
    return emit.element(op->getOperand(number), operand);
  };
  if (int known = emit.segment(indices[dim], bounds); known >= 0)
    return part(known);
  Type type = RegionEmitter::registerType(elementTypeOf(op->getResult(0)));
  std::function<Value(size_t)> from = [&](size_t number) -> Value {
    if (number + 1 == ends.size())
      return part(number);
    return emit.conditional(
        isBelow(emit, indices[dim], ends[number]), type,
        [&] { return part(number); }, [&] { return from(number + 1); });
  };
  return from(0);
}

Value padElement(RegionEmitter &emit, Operation *op, unsigned,
                 ArrayRef<IndexExpr> indices) {
  auto pad = cast<PadOp>(op);
  Type element = elementTypeOf(op->getResult(0));
  Scalars s(emit, element);
  double value = pad.getValue().convertToDouble();
  auto outside = [&] {
    return s.isFloat() ? s.number(value)
                       : s.integer(static_cast<int64_t>(value));
  };
  ArrayRef<int64_t> shape = shapeOf(pad.getInput());
  Indices operand(indices.begin(), indices.end());
  Value inside; // where the loops do not know
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t low = pad.getLow()[dim];
    operand[dim] = indices[dim] + IndexExpr(-low);
    if (low == 0 && pad.getHigh()[dim] == 0)
      continue;
    int known = emit.segment(indices[dim], {low, low + shape[dim]});
    if (known == 0 || known == 2)
      return outside();
    if (known == 1)
      continue;
    // 0 <= position < size, in one unsigned comparison.
    Value at = emit.materialize(operand[dim]);
    Value size = Scalars(emit, emit.builder.getI64Type()).integer(shape[dim]);
    Value in = arith::CmpIOp::create(emit.builder, emit.loc,
                                     arith::CmpIPredicate::ult, at, size);
    inside = inside ? s.bitAnd(inside, in) : in;
  }
  if (!inside)
    return emit.element(pad.getInput(), operand);
  return emit.conditional(
      inside, RegionEmitter::registerType(element),
      [&] { return emit.element(pad.getInput(), operand); }, outside);
}

/// y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin, the rest is passed on.
Value rotaryElement(RegionEmitter &emit, Operation *op, unsigned,
                    ArrayRef<IndexExpr> indices) {
  auto rotary = cast<RotaryOp>(op);
  Scalars s(emit, elementTypeOf(rotary.getInput()));
  int64_t half = shapeOf(rotary.getCos()).back(), rotated = 2 * half;
  IndexExpr last = indices.back();
  auto at = [&](const IndexExpr &position) {
    Indices result(indices.begin(), indices.end());
    result.back() = position;
    return result;
  };
  /// The first (second) of a pair whose positions are `one` and `two`.
  auto turn = [&](const IndexExpr &one, const IndexExpr &two,
                  const IndexExpr &angle, bool first) {
    Value a = emit.element(rotary.getInput(), at(one)),
          b = emit.element(rotary.getInput(), at(two));
    Value c = emit.broadcastElement(rotary.getCos(), at(angle));
    Value d = emit.broadcastElement(rotary.getSin(), at(angle));
    return first ? s.sub(s.mul(a, c), s.mul(b, d))
                 : s.add(s.mul(b, c), s.mul(a, d));
  };
  auto pass = [&] { return emit.element(rotary.getInput(), indices); };
  Type type = RegionEmitter::registerType(elementTypeOf(rotary.getInput()));
  if (!rotary.getInterleaved()) {
    auto first = [&] { return turn(last, last + IndexExpr(half), last, true); };
    auto second = [&] {
      return turn(last + IndexExpr(-half), last, last + IndexExpr(-half),
                  false);
    };
    int known = emit.segment(last, {half, rotated});
    if (known >= 0)
      return known == 0 ? first() : known == 1 ? second() : pass();
    return emit.conditional(isBelow(emit, last, half), type, first, [&] {
      return emit.conditional(isBelow(emit, last, rotated), type, second, pass);
    });
  }
  auto pair = [&]() -> Value {
    auto [angle, side] = emit.divMod(last, 2);
    IndexExpr one = angle * 2, two = one + IndexExpr(1);
    int known = emit.segment(side, {1});
    if (known >= 0)
      return turn(one, two, angle, known == 0);
    return emit.conditional(
        isBelow(emit, side, 1), type,
        [&, angle = angle] { return turn(one, two, angle, true); },
        [&, angle = angle] { return turn(one, two, angle, false); });
  };
  int known = emit.segment(last, {rotated});
  if (known >= 0)
    return known == 0 ? pair() : pass();
  return emit.conditional(isBelow(emit, last, rotated), type, pair, pass);
}

} // namespace

void mtp::registerMoveEmitters(EmitterTable &table) {
  table["mtp.constant"] = {constantElement, FusionKind::Source, 0};
  table["mtp.iota"] = {iotaElement, FusionKind::Source, 1};
  table["mtp.reshape"] = {reshapeElement, FusionKind::Move, 0};
  table["mtp.transpose"] = {transposeElement, FusionKind::Move, 1};
  table["mtp.broadcast"] = {broadcastOpElement, FusionKind::Move, 0};
  table["mtp.strided_slice"] = {sliceElement, FusionKind::Move, 0};
  table["mtp.concat"] = {concatElement, FusionKind::Move, 1};
  table["mtp.pad"] = {padElement, FusionKind::Move, 1};
  table["mtp.rotary"] = {rotaryElement, FusionKind::Move, 4};
}
