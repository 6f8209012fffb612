// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Fold.cpp - arithmetic on what is known at import -------------------===//
//
// Shapes and what is computed from them: vectors and splats. Larger values,
// such as masks, stay operators whatever their size, so that later passes see
// one form of them; tables of a few integers, such as pads, fold in any rank.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/onnx/TensorReader.h"
#include "compiler/frontend/onnx/import/Importer.h"
#include "runtime/support/Checked.h"

#include <cmath>
#include <functional>

using namespace mtp;
using namespace mtp::onnx;

namespace {
/// Largest vector that is folded.
constexpr int64_t kMostFolded = int64_t(1) << 16;

bool isVector(const Shape &shape) {
  return llvm::count_if(shape, [](int64_t extent) { return extent != 1; }) <=
             1 &&
         elementCount(shape) <= kMostFolded;
}

using Floats = std::function<double(double, double)>;
using Ints = std::function<int64_t(int64_t, int64_t)>;
struct BinaryFold {
  Floats floats;
  Ints ints;
  bool isTest = false; ///< the result is boolean
};

int64_t divide(int64_t a, int64_t b) {
  return b == 0 ? 0 : (b == -1 ? -a : a / b);
}
int64_t modulo(int64_t a, int64_t b) {
  if (b == 0 || b == -1)
    return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
int64_t power(int64_t a, int64_t b) {
  return static_cast<int64_t>(
      std::pow(static_cast<double>(a), static_cast<double>(b)));
}
double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}
double smaller(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
}

const std::map<std::string, BinaryFold> &binaryFolds() {
  auto wrapAdd = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) +
                                static_cast<uint64_t>(b));
  };
  auto wrapSub = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) -
                                static_cast<uint64_t>(b));
  };
  auto wrapMul = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) *
                                static_cast<uint64_t>(b));
  };
  static const std::map<std::string, BinaryFold> folds = {
      {"Add", {[](double a, double b) { return a + b; }, wrapAdd}},
      {"Sub", {[](double a, double b) { return a - b; }, wrapSub}},
      {"Mul", {[](double a, double b) { return a * b; }, wrapMul}},
      {"Div", {[](double a, double b) { return a / b; }, divide}},
      {"Pow", {[](double a, double b) { return std::pow(a, b); }, power}},
      {"Mod", {[](double a, double b) { return std::fmod(a, b); }, modulo}},
      {"Max", {larger, [](int64_t a, int64_t b) { return std::max(a, b); }}},
      {"Min", {smaller, [](int64_t a, int64_t b) { return std::min(a, b); }}},
      {"And",
       {[](double a, double b) { return a && b; },
        [](int64_t a, int64_t b) { return a & b; }}},
      {"Or",
       {[](double a, double b) { return a || b; },
        [](int64_t a, int64_t b) { return a | b; }}},
      {"Equal",
       {[](double a, double b) { return a == b; },
        [](int64_t a, int64_t b) { return int64_t(a == b); }, true}},
      {"Less",
       {[](double a, double b) { return a < b; },
        [](int64_t a, int64_t b) { return int64_t(a < b); }, true}},
      {"LessOrEqual",
       {[](double a, double b) { return a <= b; },
        [](int64_t a, int64_t b) { return int64_t(a <= b); }, true}},
      {"Greater",
       {[](double a, double b) { return a > b; },
        [](int64_t a, int64_t b) { return int64_t(a > b); }, true}},
      {"GreaterOrEqual",
       {[](double a, double b) { return a >= b; },
        [](int64_t a, int64_t b) { return int64_t(a >= b); }, true}}};
  return folds;
}

const std::map<std::string, std::function<double(double)>> &unaryFolds() {
  static const std::map<std::string, std::function<double(double)>> folds = {
      {"Neg", [](double a) { return -a; }},
      {"Abs", [](double a) { return std::fabs(a); }},
      {"Sqrt", [](double a) { return std::sqrt(a); }},
      {"Exp", [](double a) { return std::exp(a); }},
      {"Log", [](double a) { return std::log(a); }},
      {"Floor", [](double a) { return std::floor(a); }},
      {"Ceil", [](double a) { return std::ceil(a); }},
      {"Reciprocal", [](double a) { return 1 / a; }},
      {"Not", [](double a) { return a == 0 ? 1.0 : 0.0; }}};
  return folds;
}

/// Index into an operand of `shape` for element `i` of `result`.
int64_t broadcastIndex(int64_t i, const Shape &result, const Shape &shape) {
  int64_t index = 0, stride = 1;
  for (size_t d = 0; d < result.size(); ++d) {
    int64_t extent = result[result.size() - 1 - d], at = i % extent;
    i /= extent;
    if (d < shape.size()) {
      int64_t own = shape[shape.size() - 1 - d];
      index += own == 1 ? 0 : at * stride;
      stride *= own;
    }
  }
  return index;
}

class Folder {
public:
  explicit Folder(const NodeContext &n) : n(n) {}

  bool run(std::vector<Constant> &results) {
    for (size_t i = 0; i < n.numInputs(); ++i) {
      inputs.push_back(n.has(i) && !n.in(i)->isSequence ? n.in(i)->constant
                                                        : nullptr);
      if (n.has(i) && !inputs.back())
        return false;
    }
    if (inputs.empty() || !inputs[0])
      return false;
    const std::string &op = n.node.op;
    results.resize(n.numOutputs());
    if (op == "Split")
      return n.numOutputs() > 0 && split(results);
    if (n.numOutputs() != 1)
      return false;
    if (auto fold = binaryFolds().find(op);
        fold != binaryFolds().end() && inputs.size() == 2)
      return binary(fold->second, results[0]);
    if (auto fold = unaryFolds().find(op); fold != unaryFolds().end())
      return unary(fold->second, results[0]);
    if (op == "Where")
      return where(results[0]);
    if (op == "Cast")
      return cast(results[0]);
    if (op == "CastLike")
      return convertTo(n.type(1), results[0]);
    if (op == "Gather")
      return gather(results[0]);
    if (op == "Concat")
      return concat(results[0]);
    if (op == "Slice")
      return slice(results[0]);
    if (op == "Transpose")
      return transpose(results[0]);
    if (op == "ReduceProd" || op == "ReduceSum" || op == "ReduceMax" ||
        op == "ReduceMin")
      return reduce(op, results[0]);
    return false;
  }

private:
  bool prepare(Constant &result, DType type, const Shape &shape) {
    result.type = type;
    result.shape = shape;
    result.splat =
        llvm::all_of(
            inputs,
            [](auto &in) { return !in || in->splat || in->elements() == 1; }) &&
        elementCount(shape) != 1 && !shape.empty();
    if (!result.splat && !isVector(shape))
      return false;
    result.resize();
    return true;
  }
  int64_t count(const Constant &result) {
    return result.splat ? 1 : result.elements();
  }

  bool binary(const BinaryFold &fold, Constant &result) {
    const Constant &a = *inputs[0], &b = *inputs[1];
    if (!prepare(result, fold.isTest ? DType::Bool : a.type,
                 broadcastShapes(a.shape, b.shape)))
      return false;
    for (int64_t i = 0; i < count(result); ++i) {
      int64_t x = a.splat ? 0 : broadcastIndex(i, result.shape, a.shape),
              y = b.splat ? 0 : broadcastIndex(i, result.shape, b.shape);
      if (result.splat)
        x = y = 0;
      if (a.holdsFloats() || b.holdsFloats()) {
        double value = fold.floats(a.numberAt(x), b.numberAt(y));
        result.holdsFloats()
            ? void(result.floats[i] = value)
            : void(result.ints[i] = static_cast<int64_t>(value));
      } else {
        result.ints[i] = fold.ints(a.intAt(x), b.intAt(y));
      }
    }
    result.normalize();
    return true;
  }

  bool unary(const std::function<double(double)> &fold, Constant &result) {
    const Constant &a = *inputs[0];
    if (!prepare(result, a.type, a.shape))
      return false;
    for (int64_t i = 0; i < count(result); ++i)
      if (result.holdsFloats())
        result.floats[i] = fold(a.floatAt(i));
      else
        result.ints[i] =
            static_cast<int64_t>(fold(static_cast<double>(a.intAt(i))));
    result.normalize();
    return true;
  }

  bool where(Constant &result) {
    const Constant &c = *inputs[0], &a = *inputs[1], &b = *inputs[2];
    if (!prepare(result, a.type,
                 broadcastShapes(c.shape, broadcastShapes(a.shape, b.shape))))
      return false;
    auto at = [&](const Constant &in, int64_t i) {
      return result.splat || in.splat
                 ? 0
                 : broadcastIndex(i, result.shape, in.shape);
    };
    for (int64_t i = 0; i < count(result); ++i) {
      const Constant &from = c.intAt(at(c, i)) ? a : b;
      if (result.holdsFloats())
        result.floats[i] = from.floatAt(at(from, i));
      else
        result.ints[i] = from.intAt(at(from, i));
    }
    return true;
  }

  bool cast(Constant &result) {
    DType to;
    return dtypeOf(n.intAttr("to", 0), to) &&
           convertTo(n.importer.effective(to), result);
  }

  bool convertTo(DType type, Constant &result) {
    if (!inputs[0]->splat && !isVector(inputs[0]->shape))
      return false;
    result = convert(*inputs[0], type);
    return true;
  }

  bool gather(Constant &result) {
    const Constant &data = *inputs[0], &indices = *inputs[1];
    if (data.shape.size() != 1 || indices.shape.size() > 1 ||
        indices.holdsFloats())
      return false;
    result.type = data.type;
    result.shape = indices.shape;
    result.splat = data.splat && !indices.shape.empty();
    result.resize();
    for (int64_t i = 0; i < count(result); ++i) {
      int64_t at = indices.intAt(i), extent = data.shape[0];
      at = at < 0 ? at + extent : at;
      if (at < 0 || at >= extent)
        n.invalid("index " + std::to_string(indices.intAt(i)) +
                  " lies outside of a vector of " + std::to_string(extent));
      put(result, i, data, at);
    }
    return true;
  }

  static void put(Constant &to, int64_t i, const Constant &from, int64_t j) {
    if (to.holdsFloats())
      to.floats[i] = from.floatAt(j);
    else
      to.ints[i] = from.intAt(j);
  }

  bool concat(Constant &result) {
    int64_t total = 0;
    for (auto &in : inputs) {
      if (in->shape.size() != 1 || in->type != inputs[0]->type)
        return false;
      total += in->shape[0];
    }
    if (total > kMostFolded)
      return false;
    result.type = inputs[0]->type;
    result.shape = {total};
    result.resize();
    int64_t at = 0;
    for (auto &in : inputs)
      for (int64_t i = 0; i < in->shape[0]; ++i)
        put(result, at++, *in, i);
    return true;
  }

  /// Numpy's slice of one dimension: first index, count, step.
  struct Cut {
    int64_t first = 0, count = 0, step = 1;
  };
  Cut cut(int64_t extent, int64_t start, int64_t end, int64_t step) {
    if (step == 0)
      n.invalid("a step is zero");
    step = std::clamp(step, -std::max<int64_t>(extent, 1),
                      std::max<int64_t>(extent, 1));
    auto bound = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 ? (at < -extent ? low : at + extent) : at, low,
                        high);
    };
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    int64_t first = bound(start, low, high), last = bound(end, low, high);
    int64_t span = step > 0 ? last - first : first - last;
    return {first, span > 0 ? ceilDiv(span, std::abs(step)) : 0, step};
  }

  /// Small tables of integers, such as pads, fold in any rank; masks don't.
  static bool isTable(const Constant &data) {
    return data.shape.size() == 1 || isVector(data.shape) ||
           (!data.holdsFloats() && data.type != DType::Bool &&
            data.elements() <= 64);
  }

  bool slice(Constant &result) {
    const Constant &data = *inputs[0];
    if (!isTable(data) || inputs.size() < 3 || n.has(1) == false ||
        n.has(2) == false)
      return false;
    int64_t rank = static_cast<int64_t>(data.shape.size()),
            cuts = inputs[1]->elements();
    std::vector<Cut> all;
    for (int64_t extent : data.shape)
      all.push_back({0, extent, 1});
    for (int64_t i = 0; i < cuts; ++i) {
      bool axesGiven = inputs.size() > 3 && inputs[3],
           stepsGiven = inputs.size() > 4 && inputs[4];
      if (inputs[2]->elements() != cuts ||
          (axesGiven && inputs[3]->elements() != cuts) ||
          (stepsGiven && inputs[4]->elements() != cuts))
        n.invalid("starts, ends, axes and steps have different lengths");
      int64_t dim = n.axis(axesGiven ? inputs[3]->intAt(i) : i, rank);
      all[dim] = cut(data.shape[dim], inputs[1]->intAt(i), inputs[2]->intAt(i),
                     stepsGiven ? inputs[4]->intAt(i) : 1);
    }
    result.type = data.type;
    for (const Cut &c : all)
      result.shape.push_back(c.count);
    result.resize();
    for (int64_t i = 0; i < result.elements(); ++i) {
      int64_t rest = i, from = 0, stride = 1;
      for (int64_t dim = rank - 1; dim >= 0; --dim) {
        from +=
            (all[dim].first + rest % all[dim].count * all[dim].step) * stride;
        rest /= all[dim].count;
        stride *= data.shape[dim];
      }
      put(result, i, data, from);
    }
    return true;
  }

  bool transpose(Constant &result) {
    const Constant &data = *inputs[0];
    int64_t rank = static_cast<int64_t>(data.shape.size());
    std::vector<int64_t> perm;
    for (int64_t dim = rank; dim-- > 0;)
      perm.push_back(dim);
    perm = n.intsAttr("perm").value_or(perm);
    if (!isTable(data) ||
        n.axes(perm, rank).size() != static_cast<size_t>(rank))
      return false;
    result.type = data.type;
    for (int64_t dim : perm)
      result.shape.push_back(data.shape[n.axis(dim, rank)]);
    result.resize();
    std::vector<int64_t> strides(rank, 1);
    for (int64_t dim = rank - 1; dim > 0; --dim)
      strides[dim - 1] = strides[dim] * data.shape[dim];
    for (int64_t i = 0; i < result.elements(); ++i) {
      int64_t rest = i, from = 0;
      for (int64_t dim = rank - 1; dim >= 0; --dim) {
        from += rest % result.shape[dim] * strides[n.axis(perm[dim], rank)];
        rest /= result.shape[dim];
      }
      put(result, i, data, from);
    }
    return true;
  }

  /// Parts of a vector, each an output.
  bool split(std::vector<Constant> &results) {
    const Constant &data = *inputs[0];
    size_t parts = n.numOutputs();
    if (data.shape.size() != 1 || data.splat)
      return false;
    std::vector<int64_t> sizes =
        n.has(1) ? n.ints(1, "the sizes")
                 : n.intsAttr("split").value_or(std::vector<int64_t>{});
    if (sizes.empty()) {
      int64_t part = ceilDiv(data.shape[0], static_cast<int64_t>(parts));
      for (size_t i = 0; i < parts; ++i)
        sizes.push_back(std::max<int64_t>(
            0, std::min(part, data.shape[0] - static_cast<int64_t>(i) * part)));
    }
    int64_t at = 0;
    if (sizes.size() != parts)
      return false;
    for (size_t i = 0; i < parts; ++i) {
      if (sizes[i] < 0 || sizes[i] > data.shape[0] - at)
        return false; // the handler says what is wrong
      results[i].type = data.type;
      results[i].shape = {sizes[i]};
      results[i].resize();
      for (int64_t k = 0; k < sizes[i]; ++k)
        put(results[i], k, data, at++);
    }
    return at == data.shape[0];
  }

  bool reduce(const std::string &op, Constant &result) {
    const Constant &data = *inputs[0];
    if (data.shape.size() > 1 || data.holdsFloats() || data.elements() == 0 ||
        n.intAttr("noop_with_empty_axes", 0))
      return false;
    int64_t value = data.intAt(0);
    for (int64_t i = 1; i < data.elements(); ++i) {
      int64_t next = data.intAt(i);
      value = op == "ReduceProd"  ? value * next
              : op == "ReduceSum" ? value + next
              : op == "ReduceMax" ? std::max(value, next)
                                  : std::min(value, next);
    }
    result.type = data.type;
    result.shape =
        n.intAttr("keepdims", 1) ? Shape(data.shape.size(), 1) : Shape{};
    result.ints = {value};
    result.normalize();
    return true;
  }

  const NodeContext &n;
  std::vector<std::shared_ptr<const Constant>> inputs;
};
} // namespace

bool mtp::onnx::foldNode(const NodeContext &context,
                         std::vector<Constant> &results) {
  return Folder(context).run(results);
}
