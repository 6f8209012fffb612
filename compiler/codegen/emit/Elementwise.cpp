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

/// `Formula(s, x, g, op)` of an activation's operand and cotangent.
template <auto Formula>
Value activationGradient(RegionEmitter &emit, Operation *op, unsigned,
                         ArrayRef<IndexExpr> indices) {
  Value x = emit.broadcastElement(op->getOperand(0), indices);
  Value g = emit.broadcastElement(op->getOperand(1), indices);
  Scalars s(emit, elementTypeOf(op->getOperand(0)));
  return s.mul(Formula(s, x, op), g);
}

/// P(x) + x p(x) with the normal distribution P and its density p; with tanh,
/// the derivative of that form.
Value geluSlope(Scalars &s, Value x, Operation *op) {
  Value half = s.number(0.5), square = s.mul(x, x);
  if (!cast<GeluGradientOp>(op).getTanh()) {
    Value below =
        s.mul(half, s.add(s.erf(s.mul(x, s.number(std::sqrt(0.5)))), s.one()));
    Value density = s.mul(s.exp(s.mul(square, s.number(-0.5))),
                          s.number(1 / std::sqrt(2 * M_PI)));
    return s.add(below, s.mul(x, density));
  }
  double slope = std::sqrt(2 / M_PI), cubic = 0.044715;
  Value scaled = s.mul(x, s.number(slope));
  Value t =
      s.tanh(s.mul(scaled, s.add(s.one(), s.mul(square, s.number(cubic)))));
  Value inner =
      s.mul(scaled, s.add(s.one(), s.mul(square, s.number(3 * cubic))));
  Value steep = s.mul(s.sub(s.one(), s.mul(t, t)), inner);
  return s.mul(half, s.add(s.add(s.one(), t), steep));
}

Value siluSlope(Scalars &s, Value x, Operation *) {
  Value y = s.sigmoid(x);
  return s.mul(y, s.add(s.one(), s.mul(x, s.sub(s.one(), y))));
}

/// Ten rounds on 32 bit words that lie in i64 registers: products of two words
/// are whole.
Value philox(RegionEmitter &emit, Operation *op, unsigned,
             ArrayRef<IndexExpr> indices) {
  auto random = cast<PhiloxOp>(op);
  Scalars s(emit, emit.builder.getI64Type());
  auto low = [&](Value x) { return s.bitAnd(x, s.integer(0xffffffff)); };
  auto high = [&](Value x) {
    return arith::ShRUIOp::create(emit.builder, emit.loc, x, s.integer(32));
  };
  Value index = emit.element(random.getIndex(), indices),
        seed = emit.element(random.getSeed(), {}),
        step = emit.element(random.getStep(), {});
  Value counter[4] = {low(index), high(index), low(step),
                      low(s.integer(random.getStream()))};
  Value key[2] = {low(seed), high(seed)};
  for (int round = 0; round < 10; ++round) {
    Value p = s.mul(counter[0], s.integer(0xD2511F53)),
          q = s.mul(counter[2], s.integer(0xCD9E8D57));
    Value next[4] = {s.bitXor(s.bitXor(high(q), counter[1]), key[0]), low(q),
                     s.bitXor(s.bitXor(high(p), counter[3]), key[1]), low(p)};
    std::copy(next, next + 4, counter);
    key[0] = low(s.add(key[0], s.integer(0x9E3779B9)));
    key[1] = low(s.add(key[1], s.integer(0xBB67AE85)));
  }
  return counter[0];
}

/// Dropout that is not active: the identity, and a mask of ones.
Value dropout(RegionEmitter &emit, Operation *op, unsigned number,
              ArrayRef<IndexExpr> indices) {
  if (cast<DropoutOp>(op).getTraining())
    return emit.refuse(op, "is active and was not expanded");
  if (number == 0)
    return emit.element(op->getOperand(0), indices);
  return arith::ConstantIntOp::create(emit.builder, emit.loc,
                                      emit.builder.getI1Type(), 1);
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
  add("gelu_gradient", activationGradient<geluSlope>, 32);
  add("silu_gradient", activationGradient<siluSlope>, 18);
  add("philox", philox, 60);
  add("dropout", dropout, 0);
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
