// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpsElementwise.cpp - elementwise operators -------------------------===//

#include "compiler/frontend/onnx/TensorReader.h"
#include "compiler/frontend/onnx/import/Importer.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

namespace {
template <typename Op> void unary(NodeContext &n) {
  n.out(0, n.emit.unary<Op>(n.value(0)));
}
template <typename Op> void test(NodeContext &n) {
  n.out(0, n.emit.test<Op>(n.value(0)));
}

void checkSameTypes(NodeContext &n, size_t first = 0) {
  for (size_t i = first + 1; i < n.numInputs(); ++i)
    if (n.has(i) && n.type(i) != n.type(first))
      n.invalid(std::string("inputs are of types ") + name(n.type(first)) +
                " and " + name(n.type(i)));
}

template <typename Op> void binary(NodeContext &n) {
  checkSameTypes(n);
  n.out(0, n.emit.binary<Op>(n.value(0), n.value(1)));
}

/// Any number of operands.
template <typename Op> void variadic(NodeContext &n) {
  checkSameTypes(n);
  Value result = n.value(0);
  for (size_t i = 1; i < n.numInputs(); ++i)
    result = n.emit.binary<Op>(result, n.value(i));
  n.out(0, result);
}

void mean(NodeContext &n) {
  variadic<AddOp>(n);
  Value sum = n.results()[0]->value;
  n.out(0, n.emit.binary<MulOp>(
               sum, n.emit.scalar(elementOf(sum),
                                  1.0 / static_cast<double>(n.numInputs()))));
}

template <Compare predicate> void compare(NodeContext &n) {
  checkSameTypes(n);
  n.out(0, n.emit.compare(predicate, n.value(0), n.value(1)));
}

void where(NodeContext &n) {
  checkSameTypes(n, 1);
  n.out(0, n.emit.select(n.value(0), n.value(1), n.value(2)));
}

void pow(NodeContext &n) {
  Value base = n.value(0);
  n.out(0, n.emit.binary<PowOp>(base,
                                n.emit.convert(n.value(1), elementOf(base))));
}

void mod(NodeContext &n) {
  checkSameTypes(n);
  bool fmod = n.intAttr("fmod", 0) != 0;
  n.out(0, fmod ? n.emit.binary<FmodOp>(n.value(0), n.value(1))
                : n.emit.binary<ModOp>(n.value(0), n.value(1)));
}

void cast(NodeContext &n) {
  DType to;
  if (!dtypeOf(n.intAttr("to", 0), to))
    n.unsupported("a cast to " + foreignName(n.intAttr("to", 0)));
  DType type = n.importer.effective(to);
  if (type == n.type(0))
    return n.outAlias(0, n.in(0));
  n.out(0, n.emit.convert(n.value(0),
                          elementType(n.emit.builder->getContext(), type)));
}

void castLike(NodeContext &n) {
  if (n.type(0) == n.type(1))
    return n.outAlias(0, n.in(0));
  n.out(0, n.emit.convert(n.value(0), elementType(n.emit.builder->getContext(),
                                                  n.type(1))));
}

void clip(NodeContext &n) {
  checkSameTypes(n);
  Value x = n.value(0);
  Type element = elementOf(x);
  if (n.has(1))
    x = n.emit.binary<MaxOp>(x, n.value(1));
  else if (n.hasAttr("min"))
    x = n.emit.binary<MaxOp>(x, n.emit.scalar(element, n.floatAttr("min", 0)));
  if (n.has(2))
    x = n.emit.binary<MinOp>(x, n.value(2));
  else if (n.hasAttr("max"))
    x = n.emit.binary<MinOp>(x, n.emit.scalar(element, n.floatAttr("max", 0)));
  n.out(0, x);
}

void gelu(NodeContext &n) {
  std::string kind = n.stringAttr("approximate", "none");
  if (kind != "none" && kind != "tanh")
    n.invalid("approximate is '" + kind + "'");
  Value x = n.value(0);
  n.out(0,
        GeluOp::create(n.emit.b(), n.emit.loc, x.getType(), x, kind == "tanh"));
}

/// x · sigmoid(alpha x).
void swish(NodeContext &n) {
  Value x = n.value(0);
  double alpha = n.floatAttr("alpha", 1);
  if (alpha == 1)
    return n.out(0, n.emit.unary<SiluOp>(x));
  Value gate = n.emit.unary<SigmoidOp>(
      n.emit.binary<MulOp>(x, n.emit.scalar(elementOf(x), alpha)));
  n.out(0, n.emit.binary<MulOp>(x, gate));
}

/// x where x > 0, else `negative`.
Value positiveOr(NodeContext &n, Value x, Value negative) {
  return n.emit.select(
      n.emit.compare(Compare::gt, x, n.emit.scalar(elementOf(x), 0)), x,
      negative);
}

void leakyRelu(NodeContext &n) {
  Value x = n.value(0);
  n.out(0, positiveOr(n, x,
                      n.emit.binary<MulOp>(
                          x, n.emit.scalar(elementOf(x),
                                           n.floatAttr("alpha", 0.01)))));
}

void prelu(NodeContext &n) {
  checkSameTypes(n);
  Value x = n.value(0);
  n.out(0, positiveOr(n, x, n.emit.binary<MulOp>(x, n.value(1))));
}

void elu(NodeContext &n) {
  Value x = n.value(0);
  Type e = elementOf(x);
  Value rest =
      n.emit.binary<SubOp>(n.emit.unary<ExpOp>(x), n.emit.scalar(e, 1));
  n.out(0, positiveOr(n, x,
                      n.emit.binary<MulOp>(
                          rest, n.emit.scalar(e, n.floatAttr("alpha", 1)))));
}

/// max(x, 0) + log(1 + e^-|x|).
Value softplusOf(NodeContext &n, Value x) {
  Type e = elementOf(x);
  Value tail = n.emit.unary<ExpOp>(n.emit.unary<NegOp>(n.emit.unary<AbsOp>(x)));
  Value log =
      n.emit.unary<LogOp>(n.emit.binary<AddOp>(tail, n.emit.scalar(e, 1)));
  return n.emit.binary<AddOp>(n.emit.unary<ReluOp>(x), log);
}
void softplus(NodeContext &n) { n.out(0, softplusOf(n, n.value(0))); }
void mish(NodeContext &n) {
  n.out(0, n.emit.binary<MulOp>(
               n.value(0), n.emit.unary<TanhOp>(softplusOf(n, n.value(0)))));
}

void softsign(NodeContext &n) {
  Value x = n.value(0);
  n.out(0, n.emit.binary<DivOp>(
               x, n.emit.binary<AddOp>(n.emit.unary<AbsOp>(x),
                                       n.emit.scalar(elementOf(x), 1))));
}

/// min(max(alpha x + beta, 0), 1).
Value hardSigmoidOf(NodeContext &n, double alpha, double beta) {
  Value x = n.value(0);
  Type e = elementOf(x);
  Value line = n.emit.binary<AddOp>(
      n.emit.binary<MulOp>(x, n.emit.scalar(e, alpha)), n.emit.scalar(e, beta));
  return n.emit.binary<MinOp>(n.emit.binary<MaxOp>(line, n.emit.scalar(e, 0)),
                              n.emit.scalar(e, 1));
}
void hardSigmoid(NodeContext &n) {
  n.out(0,
        hardSigmoidOf(n, n.floatAttr("alpha", 0.2), n.floatAttr("beta", 0.5)));
}
void hardSwish(NodeContext &n) {
  n.out(0, n.emit.binary<MulOp>(n.value(0), hardSigmoidOf(n, 1.0 / 6, 0.5)));
}

void bitNot(NodeContext &n) { n.out(0, n.emit.unary<NotOp>(n.value(0))); }

void bitwiseNot(NodeContext &n) {
  Value x = n.value(0);
  n.out(0, n.emit.binary<XorOp>(x, n.emit.scalar(elementOf(x), -1)));
}

void isInf(NodeContext &n) {
  Value x = n.value(0);
  bool negative = n.intAttr("detect_negative", 1),
       positive = n.intAttr("detect_positive", 1);
  Value result = n.emit.test<IsInfOp>(x);
  Value zero = n.emit.scalar(elementOf(x), 0);
  if (!negative)
    result = n.emit.binary<AndOp>(result, n.emit.compare(Compare::gt, x, zero));
  if (!positive)
    result = n.emit.binary<AndOp>(result, n.emit.compare(Compare::lt, x, zero));
  n.out(0, result);
}

/// Before opset 12 the ratio is an attribute, and nothing says that the model
/// was exported in training.
void keptDropout(NodeContext &n) {
  double ratio = n.floatAttr("ratio", 0.5);
  if (n.has(1))
    ratio = n.known(1, "the ratio")->floatAt(0);
  bool training = n.has(2) && n.known(2, "training_mode")->intAt(0) != 0;
  if (!(ratio >= 0 && ratio < 1))
    n.unsupported("ratio " + std::to_string(ratio) + " (from 0 to below 1)");
  Value x = n.value(0);
  OpBuilder &builder = n.emit.b();
  auto op =
      DropoutOp::create(builder, n.emit.loc, x.getType(),
                        n.emit.type(shapeOf(x), builder.getI1Type()), x,
                        builder.getF64FloatAttr(ratio),
                        builder.getI64IntegerAttr(n.importer.nextStream()),
                        training ? builder.getUnitAttr() : UnitAttr());
  n.out(0, op.getResult());
  n.out(1, op.getMask());
}

/// The identity unless the model is trained; the mask of an inactive dropout is
/// all true.
void dropout(NodeContext &n) {
  if (n.importer.keepsDropout())
    return keptDropout(n);
  n.outAlias(0, n.in(0));
  if (!n.wants(1))
    return;
  Constant mask;
  mask.type = DType::Bool;
  mask.shape = n.shape(0);
  mask.splat = true;
  mask.ints = {1};
  n.outConstant(1, std::move(mask));
}

void identity(NodeContext &n) { n.outAlias(0, n.in(0)); }
} // namespace

void mtp::onnx::addElementwiseOps(OpTable &table) {
  table["Neg"] = {unary<NegOp>};
  table["Abs"] = {unary<AbsOp>};
  table["Sign"] = {unary<SignOp>};
  table["Exp"] = {unary<ExpOp>};
  table["Log"] = {unary<LogOp>};
  table["Sqrt"] = {unary<SqrtOp>};
  table["Reciprocal"] = {unary<ReciprocalOp>};
  table["Erf"] = {unary<ErfOp>};
  table["Tanh"] = {unary<TanhOp>};
  table["Sigmoid"] = {unary<SigmoidOp>};
  table["Relu"] = {unary<ReluOp>};
  table["Sin"] = {unary<SinOp>};
  table["Cos"] = {unary<CosOp>};
  table["Floor"] = {unary<FloorOp>};
  table["Ceil"] = {unary<CeilOp>};
  table["Round"] = {unary<RoundOp>};
  table["Not"] = {bitNot};
  table["IsNaN"] = {test<IsNanOp>};
  table["IsInf"] = {isInf, 10, 1, {"detect_negative", "detect_positive"}};
  table["Add"] = {binary<AddOp>, 1, 2};
  table["Sub"] = {binary<SubOp>, 1, 2};
  table["Mul"] = {binary<MulOp>, 1, 2};
  table["Div"] = {binary<DivOp>, 1, 2};
  table["Pow"] = {pow, 1, 2};
  table["Mod"] = {mod, 10, 2, {"fmod"}};
  table["And"] = {binary<AndOp>, 1, 2};
  table["Or"] = {binary<OrOp>, 1, 2};
  table["Xor"] = {binary<XorOp>, 1, 2};
  table["BitwiseAnd"] = {binary<AndOp>, 18, 2};
  table["BitwiseOr"] = {binary<OrOp>, 18, 2};
  table["BitwiseNot"] = {bitwiseNot, 18};
  table["BitwiseXor"] = {binary<XorOp>, 18, 2};
  table["Sum"] = {variadic<AddOp>};
  table["Max"] = {variadic<MaxOp>};
  table["Min"] = {variadic<MinOp>};
  table["Mean"] = {mean};
  table["Equal"] = {compare<Compare::eq>, 1, 2};
  table["Less"] = {compare<Compare::lt>, 1, 2};
  table["LessOrEqual"] = {compare<Compare::le>, 12, 2};
  table["Greater"] = {compare<Compare::gt>, 1, 2};
  table["GreaterOrEqual"] = {compare<Compare::ge>, 12, 2};
  table["Where"] = {where, 9, 3};
  table["Cast"] = {cast, 1, 1, {"to", "saturate", "round_mode"}};
  table["CastLike"] = {castLike, 15, 2, {"saturate", "round_mode"}};
  table["Clip"] = {clip, 1, 1, {"min", "max"}};
  table["Gelu"] = {gelu, 20, 1, {"approximate"}};
  table["Swish"] = {swish, 24, 1, {"alpha"}};
  table["LeakyRelu"] = {leakyRelu, 1, 1, {"alpha"}};
  table["PRelu"] = {prelu, 1, 2};
  table["Elu"] = {elu, 1, 1, {"alpha"}};
  table["Softplus"] = {softplus};
  table["Mish"] = {mish, 18};
  table["Softsign"] = {softsign};
  table["HardSigmoid"] = {hardSigmoid, 1, 1, {"alpha", "beta"}};
  table["HardSwish"] = {hardSwish, 14};
  table["Dropout"] = {dropout, 1, 1, {"ratio", "seed"}};
  table["Identity"] = {identity};
}
