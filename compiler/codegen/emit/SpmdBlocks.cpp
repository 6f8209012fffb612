// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/Scalars.h"

#include "dialects/spmd/SpmdDialect.h"

using namespace mlir;
using namespace mtp;

namespace {

/// No tensor dimension is longer.
constexpr int64_t kFar = int64_t(1) << 48;

int64_t dimOf(Operation *op) {
  return op->getAttrOfType<IntegerAttr>("dim").getInt();
}

/// position < bound as unsigned numbers: 0 <= position < bound.
Value isInside(RegionEmitter &emit, const IndexExpr &position, Value bound) {
  Value at = emit.materialize(position);
  return arith::CmpIOp::create(emit.builder, emit.loc,
                               arith::CmpIPredicate::ult, at, bound);
}

/// A selection, never a product: padding may hold NaN.
Value maskTail(RegionEmitter &emit, Operation *op, unsigned,
               ArrayRef<IndexExpr> indices) {
  auto mask = cast<spmd::MaskTailOp>(op);
  Value valid = emit.element(mask.getValid(), {});
  Value x = emit.element(mask.getInput(), indices);
  Scalars s(emit, elementTypeOf(mask.getInput()));
  Value neutral;
  if (auto number = dyn_cast<FloatAttr>(mask.getNeutral()))
    neutral = s.number(number.getValueAsDouble());
  else
    neutral = s.integer(cast<IntegerAttr>(mask.getNeutral()).getValue());
  return s.select(isInside(emit, indices[dimOf(op)], valid), x, neutral);
}

IndexExpr scalarOf(RegionEmitter &emit, Value scalar) {
  return emit.variableAt(emit.element(scalar, {}), {}, -kFar, kFar);
}

/// The element at a moved position, zero where that is outside.
Value elementOrZero(RegionEmitter &emit, Operation *op, Value condition,
                    const Indices &at) {
  Value input = op->getOperand(0);
  Scalars s(emit, elementTypeOf(input));
  return emit.conditional(
      condition, RegionEmitter::registerType(elementTypeOf(input)),
      [&] { return emit.element(input, at); }, [&] { return s.zero(); });
}

Value takeBlock(RegionEmitter &emit, Operation *op, unsigned,
                ArrayRef<IndexExpr> indices) {
  int64_t dim = dimOf(op);
  Indices at(indices.begin(), indices.end());
  at[dim] = at[dim] + scalarOf(emit, op->getOperand(1));
  Value size = Scalars(emit, emit.builder.getI64Type())
                   .integer(shapeOf(op->getOperand(0))[dim]);
  return elementOrZero(emit, op, isInside(emit, at[dim], size), at);
}

Value placeBlock(RegionEmitter &emit, Operation *op, unsigned,
                 ArrayRef<IndexExpr> indices) {
  int64_t dim = dimOf(op);
  Indices at(indices.begin(), indices.end());
  at[dim] = at[dim] + scalarOf(emit, op->getOperand(1)) * -1;
  Value valid = emit.element(op->getOperand(2), {});
  return elementOrZero(emit, op, isInside(emit, at[dim], valid), at);
}

Value keepOnRoot(RegionEmitter &emit, Operation *op, unsigned,
                 ArrayRef<IndexExpr> indices) {
  Value coordinate = emit.element(op->getOperand(1), {});
  Scalars i64(emit, emit.builder.getI64Type()),
      s(emit, elementTypeOf(op->getOperand(0)));
  Value isRoot = i64.compare(Scalars::Eq, coordinate, i64.integer(0));
  return s.select(isRoot, emit.element(op->getOperand(0), indices), s.zero());
}

} // namespace

void mtp::registerSpmdEmitters(EmitterTable &table) {
  table["spmd.mask_tail"] = {maskTail, FusionKind::Elementwise, 1};
  table["spmd.take_block"] = {takeBlock, FusionKind::Move, 1};
  table["spmd.place_block"] = {placeBlock, FusionKind::Move, 1};
  table["spmd.keep_on_root"] = {keepOnRoot, FusionKind::Elementwise, 1};
}
