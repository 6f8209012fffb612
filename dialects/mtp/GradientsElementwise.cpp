// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GradientsElementwise.cpp - gradients of elementwise ops ------------===//

#include "dialects/mtp/Gradient.h"
#include "dialects/mtp/RuleSupport.h"

#include <cmath>

using namespace mlir;
using namespace mtp;
using namespace mtp::detail;
using Gradients = MutableArrayRef<Value>;

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

namespace {

// The cotangent of x, given the op (x, y = f(x)) and that of y.
Value negGradient(NegOp, GradientBuilder &b, Value g) { return b.neg(g); }
/// 0 at 0, as sign has it.
Value absGradient(AbsOp op, GradientBuilder &b, Value g) {
  return b.mul(g, b.unary<SignOp>(op.getInput()));
}
Value expGradient(ExpOp op, GradientBuilder &b, Value g) {
  return b.mul(g, op.getResult());
}
Value logGradient(LogOp op, GradientBuilder &b, Value g) {
  return b.div(g, op.getInput());
}
/// g / 2y
Value sqrtGradient(SqrtOp op, GradientBuilder &b, Value g) {
  return b.div(g, b.mul(op.getResult(), 2));
}
/// -g y³ / 2
Value rsqrtGradient(RsqrtOp op, GradientBuilder &b, Value g) {
  Value y = op.getResult();
  return b.mul(g, b.mul(b.mul(y, b.mul(y, y)), -0.5));
}
/// -g y²
Value reciprocalGradient(ReciprocalOp op, GradientBuilder &b, Value g) {
  Value y = op.getResult();
  return b.neg(b.mul(g, b.mul(y, y)));
}
/// g 2/√π e^-x²
Value erfGradient(ErfOp op, GradientBuilder &b, Value g) {
  Value x = op.getInput();
  Value bell = b.unary<ExpOp>(b.neg(b.mul(x, x)));
  return b.mul(g, b.mul(bell, 2 / std::sqrt(M_PI)));
}
/// g - g y²
Value tanhGradient(TanhOp op, GradientBuilder &b, Value g) {
  Value y = op.getResult();
  return b.sub(g, b.mul(g, b.mul(y, y)));
}
/// g (y - y²)
Value sigmoidGradient(SigmoidOp op, GradientBuilder &b, Value g) {
  Value y = op.getResult();
  return b.mul(g, b.sub(y, b.mul(y, y)));
}
Value reluGradient(ReluOp op, GradientBuilder &b, Value g) {
  Value zero = b.zero(g);
  return b.select(b.compare(Compare::gt, op.getInput(), zero), g, zero);
}
Value siluGradient(SiluOp op, GradientBuilder &b, Value g) {
  return b.makeFor<SiluGradientOp>(op.getInput(), op.getInput(), g);
}
Value geluGradient(GeluOp op, GradientBuilder &b, Value g) {
  return b.makeFor<GeluGradientOp>(op.getInput(), op.getInput(), g,
                                   op.getTanhAttr());
}
Value sinGradient(SinOp op, GradientBuilder &b, Value g) {
  return b.mul(g, b.unary<CosOp>(op.getInput()));
}
Value cosGradient(CosOp op, GradientBuilder &b, Value g) {
  return b.neg(b.mul(g, b.unary<SinOp>(op.getInput())));
}
Value convertGradient(ConvertOp op, GradientBuilder &b, Value g) {
  return b.convert(g, typeOf(op.getInput()).getElementType());
}
Value barrierGradient(BarrierOp, GradientBuilder &, Value g) { return g; }

/// Constant between steps: no cotangent, as PyTorch has it.
template <typename Op> Value noGradient(Op, GradientBuilder &, Value) {
  return {};
}

template <typename Function> struct UnarySignature;
template <typename ConcreteOp>
struct UnarySignature<Value (*)(ConcreteOp, GradientBuilder &, Value)> {
  using Op = ConcreteOp;
};
template <auto Function,
          typename Op = typename UnarySignature<decltype(Function)>::Op>
LogicalResult unaryGradient(Op op, GradientBuilder &b, ValueRange cotangents,
                            Gradients gradients) {
  if (b.wants(0u))
    gradients[0] = Function(op, b, cotangents[0]);
  return success();
}
template <auto Function> void attachUnary(MLIRContext *context) {
  using Op = typename UnarySignature<decltype(Function)>::Op;
  attachGradient<&unaryGradient<Function, Op>>(context);
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

LogicalResult addGradient(AddOp op, GradientBuilder &b, ValueRange g,
                          Gradients d) {
  for (unsigned i : {0u, 1u})
    if (b.wants(i))
      d[i] = b.sumTo(g[0], op->getOperand(i));
  return success();
}

LogicalResult subGradient(SubOp op, GradientBuilder &b, ValueRange g,
                          Gradients d) {
  if (b.wants(0u))
    d[0] = b.sumTo(g[0], op.getLhs());
  if (b.wants(1u))
    d[1] = b.neg(b.sumTo(g[0], op.getRhs()));
  return success();
}

LogicalResult mulGradient(MulOp op, GradientBuilder &b, ValueRange g,
                          Gradients d) {
  for (unsigned i : {0u, 1u})
    if (b.wants(i))
      d[i] = b.sumTo(b.mul(g[0], op->getOperand(1 - i)), op->getOperand(i));
  return success();
}

/// dx = g / y, dy = -(g / y) z
LogicalResult divGradient(DivOp op, GradientBuilder &b, ValueRange g,
                          Gradients d) {
  if (!b.wants(0u) && !b.wants(1u))
    return success();
  Value quotient = b.div(g[0], op.getRhs());
  if (b.wants(0u))
    d[0] = b.sumTo(quotient, op.getLhs());
  if (b.wants(1u))
    d[1] = b.neg(b.sumTo(b.mul(quotient, op.getResult()), op.getRhs()));
  return success();
}

/// dx = g y x^(y-1), 0 where y = 0 (also at x = 0);
/// dy = g z ln x, 0 where x = 0 and y >= 0.
LogicalResult powGradient(PowOp op, GradientBuilder &b, ValueRange g,
                          Gradients d) {
  Value x = op.getLhs(), y = op.getRhs(), z = op.getResult(),
        zero = b.zero(g[0]);
  if (b.wants(0u)) {
    Value slope =
        b.mul(y, b.make<PowOp>(b.plain(z), x, b.sub(y, b.scalar(y, 1))));
    Value flat = b.compare(Compare::eq, y, b.zero(y));
    d[0] = b.sumTo(b.select(flat, zero, b.mul(g[0], slope)), x);
  }
  if (b.wants(1u)) {
    Value none = b.compare(Compare::eq, x, b.zero(x));
    Value base = b.select(none, b.scalar(x, 1), x);
    Value inner = b.mul(g[0], b.mul(z, b.unary<LogOp>(base)));
    d[1] = b.sumTo(inner, y);
  }
  return success();
}

/// The larger (smaller) operand gets g, each of two equal ones half of it.
template <typename Op>
LogicalResult extremumGradient(Op op, GradientBuilder &b, ValueRange g,
                               Gradients d) {
  Compare wins = std::is_same_v<Op, MaxOp> ? Compare::gt : Compare::lt;
  Value zero = b.zero(g[0]);
  for (unsigned i : {0u, 1u}) {
    if (!b.wants(i))
      continue;
    Value mine = op->getOperand(i), other = op->getOperand(1 - i);
    Value tied =
        b.select(b.compare(Compare::eq, mine, other), b.mul(g[0], 0.5), zero);
    d[i] = b.sumTo(b.select(b.compare(wins, mine, other), g[0], tied), mine);
  }
  return success();
}

/// z = x - n y with n constant between steps: dx = g, dy = -n g.
template <typename Op>
LogicalResult remainderGradient(Op op, GradientBuilder &b, ValueRange g,
                                Gradients d) {
  Value x = op.getLhs(), y = op.getRhs();
  if (b.wants(0u))
    d[0] = b.sumTo(g[0], x);
  if (b.wants(1u)) {
    Value n = b.unary<RoundOp>(b.div(b.sub(x, op.getResult()), y));
    d[1] = b.neg(b.sumTo(b.mul(g[0], n), y));
  }
  return success();
}

LogicalResult selectGradient(SelectOp op, GradientBuilder &b, ValueRange g,
                             Gradients d) {
  Value condition = op.getCondition(), zero = b.zero(g[0]);
  if (b.wants(1u))
    d[1] = b.sumTo(b.select(condition, g[0], zero), op.getOnTrue());
  if (b.wants(2u))
    d[2] = b.sumTo(b.select(condition, zero, g[0]), op.getOnFalse());
  return success();
}

} // namespace

void mtp::detail::registerElementwiseGradients(MLIRContext *context) {
  attachUnary<&negGradient>(context);
  attachUnary<&absGradient>(context);
  attachUnary<&expGradient>(context);
  attachUnary<&logGradient>(context);
  attachUnary<&sqrtGradient>(context);
  attachUnary<&rsqrtGradient>(context);
  attachUnary<&reciprocalGradient>(context);
  attachUnary<&erfGradient>(context);
  attachUnary<&tanhGradient>(context);
  attachUnary<&sigmoidGradient>(context);
  attachUnary<&reluGradient>(context);
  attachUnary<&siluGradient>(context);
  attachUnary<&geluGradient>(context);
  attachUnary<&sinGradient>(context);
  attachUnary<&cosGradient>(context);
  attachUnary<&convertGradient>(context);
  attachUnary<&barrierGradient>(context);
  attachUnary<&noGradient<SignOp>>(context);
  attachUnary<&noGradient<FloorOp>>(context);
  attachUnary<&noGradient<CeilOp>>(context);
  attachUnary<&noGradient<RoundOp>>(context);
  attachGradient<&addGradient>(context);
  attachGradient<&subGradient>(context);
  attachGradient<&mulGradient>(context);
  attachGradient<&divGradient>(context);
  attachGradient<&powGradient>(context);
  attachGradient<&extremumGradient<MaxOp>>(context);
  attachGradient<&extremumGradient<MinOp>>(context);
  attachGradient<&remainderGradient<ModOp>>(context);
  attachGradient<&remainderGradient<FmodOp>>(context);
  attachGradient<&selectGradient>(context);
}
