// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Evaluate.h - folding of operators -----------------------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_EVALUATE_H
#define MTP_COMPILER_FRONTEND_ONNX_EVALUATE_H

#include "compiler/frontend/onnx/OpContext.h"

namespace mtp::onnx {

/// Row-major strides.
std::vector<int64_t> stridesOf(const Shape &shape);

/// For each element of `to` in order, the element of `from` that numpy
/// broadcasts there.
class BroadcastIndex {
public:
  BroadcastIndex(const Shape &from, const Shape &to);
  int64_t operator()(int64_t flat) const;

private:
  std::vector<int64_t> extents, steps; ///< of `to`, last first
};

/// Copies element `from` of `source` to element `to` of `result`.
void copyElement(Constant &result, int64_t to, const Constant &source, int64_t from);

/// Calls `element(flat result index)` for its source element of input 0.
template <typename Function> void evaluateMove(EvalContext &context, Function element) {
  Constant &result = context.out();
  for (int64_t i = 0, n = result.elements(); i < n; ++i)
    copyElement(result, i, context.in(0), element(i));
}

/// One operand: `onFloat` or `onInt` of each element.
template <double (*OnFloat)(double), int64_t (*OnInt)(int64_t)> void evaluateUnary(EvalContext &context) {
  Constant &result = context.out();
  const Constant &x = context.in(0);
  for (int64_t i = 0, n = result.elements(); i < n; ++i)
    if (x.holdsFloats())
      result.floats[i] = OnFloat(x.floatAt(i));
    else
      result.ints[i] = OnInt(x.intAt(i));
}

/// Two or more operands, broadcast, combined from the left.
template <double (*OnFloat)(double, double), int64_t (*OnInt)(int64_t, int64_t)>
void evaluateBinary(EvalContext &context) {
  Constant &result = context.out();
  bool floats = context.in(0).holdsFloats();
  for (size_t k = 0; k < context.inputs.size(); ++k) {
    const Constant &x = context.in(k);
    BroadcastIndex index(x.shape, result.shape);
    for (int64_t i = 0, n = result.elements(); i < n; ++i) {
      int64_t at = index(i);
      if (floats)
        result.floats[i] = k ? roundTo(OnFloat(result.floats[i], x.floatAt(at)), result.type) : x.floatAt(at);
      else
        result.ints[i] = k ? OnInt(result.ints[i], x.intAt(at)) : x.intAt(at);
    }
  }
}

/// Two operands to booleans.
template <bool (*OnFloat)(double, double), bool (*OnInt)(int64_t, int64_t)>
void evaluateCompare(EvalContext &context) {
  Constant &result = context.out();
  const Constant &a = context.in(0), &b = context.in(1);
  BroadcastIndex ia(a.shape, result.shape), ib(b.shape, result.shape);
  for (int64_t i = 0, n = result.elements(); i < n; ++i)
    result.ints[i] = a.holdsFloats() ? OnFloat(a.floatAt(ia(i)), b.floatAt(ib(i))) : OnInt(a.intAt(ia(i)), b.intAt(ib(i)));
}

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_EVALUATE_H
