// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/Evaluate.h"
#include "compiler/frontend/onnx/TensorReader.h"

#include <cmath>

namespace mtp::onnx {

namespace {

//===----------------------------------------------------------------------===//
// Types and shapes
//===----------------------------------------------------------------------===//

void inferUnary(OpContext &op) { op.output(0, op.type(0), op.shape(0)); }
void inferFloat(OpContext &op) {
  if (!isFloat(op.type(0)))
    op.unsupported(std::string("type ") + mtp::name(op.type(0)));
  op.output(0, op.type(0), op.shape(0));
}
void inferTest(OpContext &op) {
  if (op.intAttr("detect_negative", 1) != 1 || op.intAttr("detect_positive", 1) != 1)
    op.unsupported("one sign of infinity only");
  op.output(0, DType::Bool, op.shape(0));
}
void inferBinary(OpContext &op) {
  op.sameTypes();
  op.output(0, op.type(0), op.broadcastInputs());
}
void inferVariadic(OpContext &op) {
  if (op.numInputs() == 1)
    return op.alias(0, op.node.inputs[0]);
  inferBinary(op);
}
void inferLogical(OpContext &op) {
  for (size_t i = 0; i < op.numInputs(); ++i)
    if (op.type(i) != DType::Bool)
      op.invalid("an input is not boolean");
  op.output(0, DType::Bool, op.broadcastInputs());
}
void inferCompare(OpContext &op) {
  op.sameTypes();
  op.output(0, DType::Bool, op.broadcastInputs());
}
void inferPow(OpContext &op) { op.output(0, op.type(0), op.broadcastInputs()); }
void inferMod(OpContext &op) {
  if (isFloat(op.type(0)) && !op.intAttr("fmod", 0))
    op.invalid("floats need fmod = 1");
  inferBinary(op);
}
void inferWhere(OpContext &op) {
  if (op.type(0) != DType::Bool)
    op.invalid("the condition is not boolean");
  if (op.type(1) != op.type(2))
    op.invalid("the branches have different types");
  op.output(0, op.type(1), op.broadcastInputs());
}
void inferClip(OpContext &op) {
  if (!op.has(1) && !op.has(2))
    return op.alias(0, op.node.inputs[0]);
  op.output(0, op.type(0), op.shape(0));
}

void castTo(OpContext &op, DType to) {
  if (op.type(0) == to)
    return op.alias(0, op.node.inputs[0]);
  op.node.op = "Cast";
  op.node.attributes.clear();
  op.output(0, to, op.shape(0));
}
void inferCast(OpContext &op) {
  DType to;
  int64_t number = op.intAttr("to", 0);
  if (!dtypeOf(number, to))
    op.unsupported("to type " + foreignName(number));
  castTo(op, op.effective(to));
}
void inferCastLike(OpContext &op) {
  DType to = op.type(1);
  op.drop(1);
  castTo(op, to);
}

void inferIdentity(OpContext &op) {
  if (op.has(0))
    op.alias(0, op.node.inputs[0]);
}
/// The identity: mtp runs models; dropout of training is asked for by a flag.
void inferDropout(OpContext &op) {
  Shape shape = op.shape(0);
  op.alias(0, op.node.inputs[0]);
  Constant mask = scalarOf(DType::Bool, 1);
  mask.shape = shape;
  mask.splat = true;
  op.constant(1, std::move(mask));
}
void inferGelu(OpContext &op) {
  std::string kind = op.stringAttr("approximate", "none");
  if (kind != "none" && kind != "tanh")
    op.unsupported("approximate = '" + kind + "'");
  inferFloat(op);
}
void inferPRelu(OpContext &op) {
  op.sameTypes();
  if (op.broadcastInputs() != op.shape(0))
    op.invalid("the slope of shape " + text(op.shape(1)) + " does not broadcast to " + text(op.shape(0)));
  inferFloat(op);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

double same(double x) { return x; }
int64_t sameInt(int64_t x) { return x; }
double negate(double x) { return -x; }
int64_t negateInt(int64_t x) { return static_cast<int64_t>(0 - static_cast<uint64_t>(x)); }
double absolute(double x) { return std::fabs(x); }
int64_t absoluteInt(int64_t x) { return x < 0 ? negateInt(x) : x; }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
int64_t signInt(int64_t x) { return (x > 0) - (x < 0); }
double reciprocal(double x) { return 1 / x; }
double relu(double x) { return x < 0 ? 0 : x; }
int64_t reluInt(int64_t x) { return x < 0 ? 0 : x; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double roundEven(double x) { return std::nearbyint(x); }
double exponential(double x) { return std::exp(x); }
double logarithm(double x) { return std::log(x); }
double root(double x) { return std::sqrt(x); }
double tanhOf(double x) { return std::tanh(x); }
double erfOf(double x) { return std::erf(x); }
double sine(double x) { return std::sin(x); }
double cosine(double x) { return std::cos(x); }
double floorOf(double x) { return std::floor(x); }
double ceilOf(double x) { return std::ceil(x); }
int64_t notOf(int64_t x) { return !x; }

double add(double a, double b) { return a + b; }
int64_t addInt(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
double subtract(double a, double b) { return a - b; }
int64_t subtractInt(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }
double multiply(double a, double b) { return a * b; }
int64_t multiplyInt(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }
double divide(double a, double b) { return a / b; }
int64_t divideInt(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? negateInt(a) : a / b; }
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
int64_t largerInt(int64_t a, int64_t b) { return a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }
int64_t smallerInt(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t andOf(int64_t a, int64_t b) { return a & b; }
int64_t orOf(int64_t a, int64_t b) { return a | b; }
int64_t xorOf(int64_t a, int64_t b) { return a ^ b; }
double noFloat(double a, double) { return a; }

template <typename T> bool equal(T a, T b) { return a == b; }
template <typename T> bool less(T a, T b) { return a < b; }
template <typename T> bool lessOrEqual(T a, T b) { return a <= b; }
template <typename T> bool greater(T a, T b) { return a > b; }
template <typename T> bool greaterOrEqual(T a, T b) { return a >= b; }

void evaluatePow(EvalContext &context) {
  Constant &result = context.out();
  const Constant &a = context.in(0), &b = context.in(1);
  BroadcastIndex ia(a.shape, result.shape), ib(b.shape, result.shape);
  for (int64_t i = 0, n = result.elements(); i < n; ++i) {
    double value = std::pow(a.numberAt(ia(i)), b.numberAt(ib(i)));
    if (result.holdsFloats())
      result.floats[i] = value;
    else
      result.ints[i] = std::fabs(value) < 9e18 ? static_cast<int64_t>(value) : 0;
  }
}
void evaluateMod(EvalContext &context) {
  Constant &result = context.out();
  const Constant &a = context.in(0), &b = context.in(1);
  bool fmod = context.node.intAttr("fmod", 0);
  BroadcastIndex ia(a.shape, result.shape), ib(b.shape, result.shape);
  for (int64_t i = 0, n = result.elements(); i < n; ++i) {
    if (result.holdsFloats()) {
      result.floats[i] = std::fmod(a.floatAt(ia(i)), b.floatAt(ib(i)));
      continue;
    }
    int64_t x = a.intAt(ia(i)), y = b.intAt(ib(i));
    int64_t rest = y == 0 || y == -1 ? 0 : x % y;
    result.ints[i] = !fmod && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }
}
void evaluateMean(EvalContext &context) {
  evaluateBinary<add, addInt>(context);
  for (double &value : context.out().floats)
    value /= static_cast<double>(context.inputs.size());
}
void evaluateCast(EvalContext &context) {
  Constant converted = convert(context.in(0), context.out().type);
  context.out() = std::move(converted);
}
void evaluateWhere(EvalContext &context) {
  Constant &result = context.out();
  const Constant &condition = context.in(0);
  BroadcastIndex index(condition.shape, result.shape);
  BroadcastIndex branches[] = {{context.in(2).shape, result.shape}, {context.in(1).shape, result.shape}};
  for (int64_t i = 0, n = result.elements(); i < n; ++i) {
    bool yes = condition.intAt(index(i));
    copyElement(result, i, context.in(yes ? 1 : 2), branches[yes](i));
  }
}
void evaluateClip(EvalContext &context) {
  Constant &result = context.out();
  const Constant &x = context.in(0);
  for (int64_t i = 0, n = result.elements(); i < n; ++i) {
    copyElement(result, i, x, i);
    for (size_t k : {1, 2}) {
      if (k >= context.inputs.size() || !context.inputs[k])
        continue;
      const Constant &bound = context.in(k);
      bool outside = k == 1 ? x.numberAt(i) < bound.numberAt(0) : result.holdsFloats() ? result.floats[i] > bound.floatAt(0)
                                                                                      : result.ints[i] > bound.intAt(0);
      if (outside)
        copyElement(result, i, bound, 0);
    }
  }
}
void evaluateIsNan(EvalContext &context) {
  for (int64_t i = 0, n = context.out().elements(); i < n; ++i)
    context.out().ints[i] = std::isnan(context.in(0).numberAt(i));
}
void evaluateIsInf(EvalContext &context) {
  for (int64_t i = 0, n = context.out().elements(); i < n; ++i)
    context.out().ints[i] = std::isinf(context.in(0).numberAt(i));
}

} // namespace

void addElementwiseRules(OpTable &table) {
  constexpr uint32_t elementwise = OpRule::Elementwise;
  auto unary = [&](const char *name, void (*infer)(OpContext &), void (*evaluate)(EvalContext &), int64_t since = 1) {
    table[name] = {since, 1, 1, 1, {}, infer, evaluate, elementwise};
  };
  unary("Neg", inferUnary, evaluateUnary<negate, negateInt>);
  unary("Abs", inferUnary, evaluateUnary<absolute, absoluteInt>);
  unary("Sign", inferUnary, evaluateUnary<sign, signInt>);
  unary("Relu", inferUnary, evaluateUnary<relu, reluInt>);
  unary("Reciprocal", inferFloat, evaluateUnary<reciprocal, sameInt>);
  unary("Exp", inferFloat, evaluateUnary<exponential, sameInt>);
  unary("Log", inferFloat, evaluateUnary<logarithm, sameInt>);
  unary("Sqrt", inferFloat, evaluateUnary<root, sameInt>);
  unary("Tanh", inferFloat, evaluateUnary<tanhOf, sameInt>);
  unary("Erf", inferFloat, evaluateUnary<erfOf, sameInt>);
  unary("Sin", inferFloat, evaluateUnary<sine, sameInt>);
  unary("Cos", inferFloat, evaluateUnary<cosine, sameInt>);
  unary("Sigmoid", inferFloat, evaluateUnary<sigmoid, sameInt>);
  unary("Floor", inferFloat, evaluateUnary<floorOf, sameInt>);
  unary("Ceil", inferFloat, evaluateUnary<ceilOf, sameInt>);
  unary("Round", inferFloat, evaluateUnary<roundEven, sameInt>);
  unary("Not", inferLogical, evaluateUnary<same, notOf>);
  unary("IsNaN", inferTest, evaluateIsNan);
  table["IsInf"] = {10, 1, 1, 1, {"detect_negative", "detect_positive"}, inferTest, evaluateIsInf, elementwise};
  table["Gelu"] = {20, 1, 1, 1, {"approximate"}, inferGelu};
  table["Swish"] = {24, 1, 1, 1, {"alpha"}, inferFloat};
  table["LeakyRelu"] = {1, 1, 1, 1, {"alpha"}, inferFloat};
  table["Elu"] = {1, 1, 1, 1, {"alpha"}, inferFloat};
  table["HardSigmoid"] = {1, 1, 1, 1, {"alpha", "beta"}, inferFloat};
  table["HardSwish"] = {14, 1, 1, 1, {}, inferFloat};
  table["Softplus"] = {1, 1, 1, 1, {}, inferFloat};
  table["Mish"] = {18, 1, 1, 1, {}, inferFloat};
  table["PRelu"] = {1, 2, 2, 1, {}, inferPRelu};

  auto binary = [&](const char *name, void (*infer)(OpContext &), void (*evaluate)(EvalContext &), int64_t since = 1) {
    table[name] = {since, 2, 2, 1, {}, infer, evaluate, elementwise};
  };
  binary("Add", inferBinary, evaluateBinary<add, addInt>);
  binary("Sub", inferBinary, evaluateBinary<subtract, subtractInt>);
  binary("Mul", inferBinary, evaluateBinary<multiply, multiplyInt>);
  binary("Div", inferBinary, evaluateBinary<divide, divideInt>);
  binary("Pow", inferPow, evaluatePow);
  binary("And", inferLogical, evaluateBinary<noFloat, andOf>);
  binary("Or", inferLogical, evaluateBinary<noFloat, orOf>);
  binary("Xor", inferLogical, evaluateBinary<noFloat, xorOf>);
  binary("BitwiseAnd", inferBinary, evaluateBinary<noFloat, andOf>, 18);
  binary("BitwiseOr", inferBinary, evaluateBinary<noFloat, orOf>, 18);
  binary("BitwiseXor", inferBinary, evaluateBinary<noFloat, xorOf>, 18);
  binary("Equal", inferCompare, evaluateCompare<equal<double>, equal<int64_t>>);
  binary("Less", inferCompare, evaluateCompare<less<double>, less<int64_t>>);
  binary("LessOrEqual", inferCompare, evaluateCompare<lessOrEqual<double>, lessOrEqual<int64_t>>, 12);
  binary("Greater", inferCompare, evaluateCompare<greater<double>, greater<int64_t>>);
  binary("GreaterOrEqual", inferCompare, evaluateCompare<greaterOrEqual<double>, greaterOrEqual<int64_t>>, 12);
  table["Mod"] = {10, 2, 2, 1, {"fmod"}, inferMod, evaluateMod, elementwise};
  table["Max"] = {1, 1, kAnyNumber, 1, {}, inferVariadic, evaluateBinary<larger, largerInt>, elementwise};
  table["Min"] = {1, 1, kAnyNumber, 1, {}, inferVariadic, evaluateBinary<smaller, smallerInt>, elementwise};
  table["Sum"] = {1, 1, kAnyNumber, 1, {}, inferVariadic, evaluateBinary<add, addInt>, elementwise};
  table["Mean"] = {1, 1, kAnyNumber, 1, {}, inferVariadic, evaluateMean, elementwise};
  table["Where"] = {9, 3, 3, 1, {}, inferWhere, evaluateWhere, elementwise};
  table["Clip"] = {11, 1, 3, 1, {}, inferClip, evaluateClip, elementwise};
  table["Cast"] = {1, 1, 1, 1, {"to", "saturate", "round_mode"}, inferCast, evaluateCast, elementwise};
  table["CastLike"] = {15, 2, 2, 1, {"saturate", "round_mode"}, inferCastLike};
  table["Identity"] = {1, 1, 1, 1, {}, inferIdentity};
  table["Dropout"] = {1, 1, 3, 2, {"seed"}, inferDropout};
}

} // namespace mtp::onnx
