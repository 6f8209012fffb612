// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/Scalars.h"

#include "dialects/mtp/MtpDialect.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace mtp;

namespace {

/// `Formula(s, x, op)` on the element of the only operand.
template <auto Formula>
Value unary(RegionEmitter &emit, Operation *op, unsigned,
            ArrayRef<IndexExpr> indices) {
  Value x = emit.element(op->getOperand(0), indices);
  Scalars s(emit, elementTypeOf(op->getOperand(0)));
  return Formula(s, x, op);
}

/// `Formula(s, a, b)` on broadcast operands.
template <auto Formula>
Value binary(RegionEmitter &emit, Operation *op, unsigned,
             ArrayRef<IndexExpr> indices) {
  Value a = emit.broadcastElement(op->getOperand(0), indices);
  Value b = emit.broadcastElement(op->getOperand(1), indices);
  Scalars s(emit, elementTypeOf(op->getOperand(0)));
  return Formula(s, a, b);
}

/// Rounding functions are the identity on integers.
template <typename Op>
Value round(RegionEmitter &emit, Operation *op, unsigned,
            ArrayRef<IndexExpr> indices) {
  Value x = emit.element(op->getOperand(0), indices);
  if (!isa<FloatType>(x.getType()))
    return x;
  return Op::create(emit.builder, emit.loc, x);
}

Value identity(RegionEmitter &emit, Operation *op, unsigned,
               ArrayRef<IndexExpr> indices) {
  return emit.element(op->getOperand(0), indices);
}

Value gelu(Scalars &s, Value x, Operation *op) {
  Value half = s.mul(x, s.number(0.5)), inner;
  if (cast<GeluOp>(op).getTanh()) {
    Value cube = s.mul(s.mul(x, x), x);
    Value sum = s.add(x, s.mul(cube, s.number(0.044715)));
    inner = s.tanh(s.mul(sum, s.number(std::sqrt(2 / M_PI))));
  } else {
    inner = s.erf(s.mul(x, s.number(std::sqrt(0.5))));
  }
  return s.mul(half, s.add(inner, s.one()));
}

Value pow(RegionEmitter &emit, Operation *op, unsigned,
          ArrayRef<IndexExpr> indices) {
  Value base = emit.broadcastElement(op->getOperand(0), indices);
  Type type = elementTypeOf(op->getOperand(0)),
       exponentType = elementTypeOf(op->getOperand(1));
  Scalars s(emit, type);
  if (auto exponent = splatValue(op->getOperand(1)))
    if (Value result = s.powConstant(base, *exponent))
      return result;
  Value exponent = emit.broadcastElement(op->getOperand(1), indices);
  if (s.isFloat())
    return s.pow(base, Scalars(emit, exponentType).convert(exponent, type));
  // Integers: in double precision, exact to 2^53.
  Type f64 = emit.builder.getF64Type();
  Value a = s.convert(base, f64),
        b = Scalars(emit, exponentType).convert(exponent, f64);
  Scalars wide(emit, f64);
  return wide.convert(wide.pow(a, b), type);
}

Value compare(RegionEmitter &emit, Operation *op, unsigned,
              ArrayRef<IndexExpr> indices) {
  Value a = emit.broadcastElement(op->getOperand(0), indices);
  Value b = emit.broadcastElement(op->getOperand(1), indices);
  Scalars s(emit, elementTypeOf(op->getOperand(0)));
  return s.compare(static_cast<int>(cast<CompareOp>(op).getPredicate()), a, b);
}

Value select(RegionEmitter &emit, Operation *op, unsigned,
             ArrayRef<IndexExpr> indices) {
  Value condition = emit.broadcastElement(op->getOperand(0), indices);
  Value a = emit.broadcastElement(op->getOperand(1), indices);
  Value b = emit.broadcastElement(op->getOperand(2), indices);
  return Scalars(emit, elementTypeOf(op->getResult(0))).select(condition, a, b);
}

Value convert(RegionEmitter &emit, Operation *op, unsigned,
              ArrayRef<IndexExpr> indices) {
  Value x = emit.element(op->getOperand(0), indices);
  return Scalars(emit, elementTypeOf(op->getOperand(0)))
      .convert(x, elementTypeOf(op->getResult(0)));
}

} // namespace

void mtp::registerElementwiseEmitters(EmitterTable &table) {
  using S = Scalars &;
  auto add = [&](StringRef name, EmitElement emit, unsigned cost = 1) {
    table["mtp." + name.str()] = {emit, FusionKind::Elementwise, cost};
  };
  add("neg", unary<[](S s, Value x, Operation *) { return s.negate(x); }>);
  add("abs", unary<[](S s, Value x, Operation *) { return s.abs(x); }>);
  add("sign", unary<[](S s, Value x, Operation *) { return s.sign(x); }>);
  add("exp", unary<[](S s, Value x, Operation *) { return s.exp(x); }>, 10);
  add("log", unary<[](S s, Value x, Operation *) { return s.log(x); }>, 12);
  add("sqrt", unary<[](S s, Value x, Operation *) { return s.sqrt(x); }>, 6);
  add("rsqrt", unary<[](S s, Value x, Operation *) {
        return s.div(s.one(), s.sqrt(x));
      }>,
      10);
  add("reciprocal",
      unary<[](S s, Value x, Operation *) { return s.div(s.one(), x); }>, 5);
  add("erf", unary<[](S s, Value x, Operation *) { return s.erf(x); }>, 16);
  add("tanh", unary<[](S s, Value x, Operation *) { return s.tanh(x); }>, 14);
  add("sigmoid", unary<[](S s, Value x, Operation *) { return s.sigmoid(x); }>,
      14);
  add("relu",
      unary<[](S s, Value x, Operation *) { return s.max(x, s.zero()); }>);
  add("silu", unary<[](S s, Value x, Operation *) {
        return s.div(x, s.add(s.one(), s.exp(s.negate(x))));
      }>,
      15);
  add("sin", unary<[](S s, Value x, Operation *) { return s.sin(x); }>, 40);
  add("cos", unary<[](S s, Value x, Operation *) { return s.cos(x); }>, 40);
  add("floor", round<math::FloorOp>);
  add("ceil", round<math::CeilOp>);
  add("round", round<math::RoundEvenOp>);
  add("not", unary<[](S s, Value x, Operation *) {
        return s.compare(Scalars::Eq, x, s.zero());
      }>);
  add("gelu", unary<gelu>, 20);
  add("is_nan", unary<[](S s, Value x, Operation *) { return s.isNan(x); }>);
  add("is_inf", unary<[](S s, Value x, Operation *) { return s.isInf(x); }>);
  add("stop_gradient", identity, 0);
  add("barrier", identity, 0);

  add("add", binary<[](S s, Value a, Value b) { return s.add(a, b); }>);
  add("sub", binary<[](S s, Value a, Value b) { return s.sub(a, b); }>);
  add("mul", binary<[](S s, Value a, Value b) { return s.mul(a, b); }>);
  add("div", binary<[](S s, Value a, Value b) { return s.div(a, b); }>, 5);
  add("pow", pow, 40);
  add("mod", binary<[](S s, Value a, Value b) { return s.mod(a, b); }>, 20);
  add("fmod", binary<[](S s, Value a, Value b) { return s.fmod(a, b); }>, 20);
  add("and", binary<[](S s, Value a, Value b) { return s.bitAnd(a, b); }>);
  add("or", binary<[](S s, Value a, Value b) { return s.bitOr(a, b); }>);
  add("xor", binary<[](S s, Value a, Value b) { return s.bitXor(a, b); }>);
  add("max", binary<[](S s, Value a, Value b) { return s.max(a, b); }>);
  add("min", binary<[](S s, Value a, Value b) { return s.min(a, b); }>);
  add("compare", compare);
  add("select", select);
  add("convert", convert);
}
