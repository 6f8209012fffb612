// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/codegen/Interpreter.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"

#include <cmath>
#include <functional>
#include <stdexcept>

using namespace mlir;
using namespace mtp;
using mtp::test::Tensor;

namespace {

using Index = std::vector<int64_t>;
using Operands = std::vector<Tensor>;
/// Element `at` of result `number`.
using Rule = std::function<double(Operation *, const Operands &, const Index &,
                                  unsigned)>;

int64_t flat(const Index &at, const std::vector<int64_t> &shape) {
  int64_t position = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    position = position * shape[d] + at[d];
  return position;
}
Index unflat(int64_t position, const std::vector<int64_t> &shape) {
  Index at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = position % shape[d];
    position /= shape[d];
  }
  return at;
}
double get(const Tensor &tensor, const Index &at) {
  return tensor.data.at(flat(at, tensor.shape));
}
double spread(const Tensor &tensor, const Index &at) { // numpy broadcast
  Index own;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    own.push_back(
        tensor.shape[d] == 1 ? 0 : at[at.size() - tensor.shape.size() + d]);
  return get(tensor, own);
}

Rule unary(std::function<double(double)> f) {
  return [f](Operation *, const Operands &in, const Index &at, unsigned) {
    return f(get(in[0], at));
  };
}
Rule binary(std::function<double(double, double)> f) {
  return [f](Operation *, const Operands &in, const Index &at, unsigned) {
    return f(spread(in[0], at), spread(in[1], at));
  };
}
bool isInteger(Value value) {
  return isa<IntegerType>(
      cast<RankedTensorType>(value.getType()).getElementType());
}

double divide(Operation *op, const Operands &in, const Index &at, unsigned) {
  double a = spread(in[0], at), b = spread(in[1], at);
  if (!isInteger(op->getResult(0)))
    return a / b;
  return b == 0 ? 0 : std::trunc(a / b);
}
double modulo(Operation *op, const Operands &in, const Index &at, unsigned) {
  double a = spread(in[0], at), b = spread(in[1], at);
  if (b == 0 && isInteger(op->getResult(0)))
    return 0;
  double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
double compare(Operation *op, const Operands &in, const Index &at, unsigned) {
  double a = spread(in[0], at), b = spread(in[1], at);
  switch (cast<CompareOp>(op).getPredicate()) {
  case Compare::eq:
    return a == b;
  case Compare::ne:
    return a != b;
  case Compare::lt:
    return a < b;
  case Compare::le:
    return a <= b;
  case Compare::gt:
    return a > b;
  case Compare::ge:
    return a >= b;
  }
  return 0;
}
double convert(Operation *op, const Operands &in, const Index &at, unsigned) {
  double x = get(in[0], at);
  auto type = dyn_cast<IntegerType>(
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType());
  if (!type)
    return x;
  if (type.getWidth() == 1)
    return x != 0;
  if (std::isnan(x))
    return 0;
  x = std::trunc(x);
  if (isInteger(op->getOperand(0)))
    return x;
  double top = std::ldexp(1, type.getWidth() - (type.isUnsigned() ? 0 : 1));
  return std::min(std::max(x, type.isUnsigned() ? 0 : -top), top - 1);
}

//===--- moves ------------------------------------------------------------===//

double concatenated(Operation *op, const Operands &in, const Index &at,
                    unsigned) {
  Index own = at;
  int64_t dim = cast<ConcatOp>(op).getDim();
  for (const Tensor &tensor : in) {
    if (own[dim] < tensor.shape[dim])
      return get(tensor, own);
    own[dim] -= tensor.shape[dim];
  }
  throw std::runtime_error("concat");
}
double padded(Operation *op, const Operands &in, const Index &at, unsigned) {
  auto pad = cast<PadOp>(op);
  Index own = at;
  for (size_t d = 0; d < at.size(); ++d) {
    own[d] -= pad.getLow()[d];
    if (own[d] < 0 || own[d] >= in[0].shape[d])
      return pad.getValue().convertToDouble();
  }
  return get(in[0], own);
}
double rotated(Operation *op, const Operands &in, const Index &at, unsigned) {
  auto rotary = cast<RotaryOp>(op);
  int64_t half = in[1].shape.back(), i = at.back();
  if (i >= 2 * half)
    return get(in[0], at);
  Index one = at, two = at, angle = at;
  bool second = rotary.getInterleaved() ? i % 2 : i >= half;
  angle.back() = rotary.getInterleaved() ? i / 2 : i % half;
  one.back() = rotary.getInterleaved() ? i - i % 2 : i % half;
  two.back() = rotary.getInterleaved() ? one.back() + 1 : one.back() + half;
  double a = get(in[0], one), b = get(in[0], two), c = spread(in[1], angle),
         s = spread(in[2], angle);
  return second ? b * c + a * s : a * c - b * s;
}
int64_t looked(double index, int64_t size) {
  return static_cast<int64_t>(index) + (index < 0 ? size : 0);
}
double gathered(Operation *op, const Operands &in, const Index &at, unsigned) {
  int64_t dim = cast<GatherOp>(op).getDim();
  size_t count = in[1].shape.size();
  Index data(at.begin(), at.begin() + dim);
  data.push_back(
      looked(get(in[1], Index(at.begin() + dim, at.begin() + dim + count)),
             in[0].shape[dim]));
  data.insert(data.end(), at.begin() + dim + count, at.end());
  return get(in[0], data);
}
double gatheredElements(Operation *op, const Operands &in, const Index &at,
                        unsigned) {
  int64_t dim = cast<GatherElementsOp>(op).getDim();
  Index data = at;
  data[dim] = looked(get(in[1], at), in[0].shape[dim]);
  return get(in[0], data);
}
double gatheredNd(Operation *op, const Operands &in, const Index &at,
                  unsigned) {
  int64_t batch = cast<GatherNdOp>(op).getBatchDims();
  Index data(at.begin(), at.begin() + batch);
  for (int64_t i = 0; i < in[1].shape.back(); ++i) {
    Index tuple(at.begin(), at.begin() + in[1].shape.size() - 1);
    tuple.push_back(i);
    data.push_back(looked(get(in[1], tuple), in[0].shape[batch + i]));
  }
  data.insert(data.end(), at.begin() + in[1].shape.size() - 1, at.end());
  return get(in[0], data);
}

//===--- rows -------------------------------------------------------------===//

/// Calls `f` for all positions that differ from `at` only in `dims`.
void overDims(const Tensor &tensor, Index at, const std::vector<int64_t> &dims,
              const std::function<void(double)> &f) {
  int64_t count = 1;
  std::vector<int64_t> sizes;
  for (int64_t d : dims) {
    sizes.push_back(tensor.shape[d]);
    count *= sizes.back();
  }
  for (int64_t i = 0; i < count; ++i) {
    Index inner = unflat(i, sizes);
    for (size_t k = 0; k < dims.size(); ++k)
      at[dims[k]] = inner[k];
    f(get(tensor, at));
  }
}
Rule reduction(double start, std::function<double(double, double)> f) {
  return [=](Operation *op, const Operands &in, const Index &at, unsigned) {
    auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dims").asArrayRef();
    bool keep = op->hasAttr("keep");
    Index own(in[0].shape.size());
    for (size_t d = 0, next = 0; d < own.size(); ++d) {
      bool isReduced = llvm::is_contained(dims, static_cast<int64_t>(d));
      own[d] = isReduced ? 0 : at[next];
      next += !isReduced || keep;
    }
    double value = start;
    overDims(in[0], own, std::vector<int64_t>(dims.begin(), dims.end()),
             [&](double x) { value = f(value, x); });
    return value;
  };
}
double softmaxed(Operation *op, const Operands &in, const Index &at, unsigned) {
  int64_t dim = op->getAttrOfType<IntegerAttr>("dim").getInt();
  double top = -INFINITY, sum = 0;
  bool isNan = false;
  overDims(in[0], at, {dim},
           [&](double x) { top = std::max(top, x), isNan |= std::isnan(x); });
  overDims(in[0], at, {dim}, [&](double x) { sum += std::exp(x - top); });
  if (isNan)
    return NAN;
  double x = get(in[0], at);
  return isa<SoftmaxOp>(op) ? std::exp(x - top) / sum : x - top - std::log(sum);
}
double normed(Operation *op, const Operands &in, const Index &at, unsigned) {
  std::vector<int64_t> dims;
  size_t rank = in[0].shape.size();
  for (size_t d = rank - in[1].shape.size(); d < rank; ++d)
    dims.push_back(d);
  double count = 0, sum = 0, squares = 0;
  overDims(in[0], at, dims, [&](double x) { ++count, sum += x; });
  double mean = isa<LayerNormOp>(op) ? sum / count : 0;
  overDims(in[0], at, dims,
           [&](double x) { squares += (x - mean) * (x - mean); });
  double epsilon = op->getAttrOfType<FloatAttr>("epsilon").getValueAsDouble();
  Index inner(at.begin() + rank - dims.size(), at.end());
  double y = (get(in[0], at) - mean) / std::sqrt(squares / count + epsilon) *
             get(in[1], inner);
  return in.size() > 2 ? y + get(in[2], inner) : y;
}

/// y (g - sum of g y), or g - exp(y) sum of g.
double softmaxGradient(Operation *op, const Operands &in, const Index &at,
                       unsigned) {
  int64_t dim = op->getAttrOfType<IntegerAttr>("dim").getInt();
  bool isLog = isa<LogSoftmaxGradientOp>(op);
  double sum = 0;
  Index own = at;
  for (own[dim] = 0; own[dim] < in[0].shape[dim]; ++own[dim])
    sum += get(in[1], own) * (isLog ? 1 : get(in[0], own));
  double y = get(in[0], at), g = get(in[1], at);
  return isLog ? g - std::exp(y) * sum : y * (g - sum);
}
/// The Jacobian of the forward, one product an element of the row.
double normGradient(Operation *op, const Operands &in, const Index &at,
                    unsigned) {
  bool centered = isa<LayerNormGradientOp>(op);
  size_t rank = in[0].shape.size(), first = rank - in[1].shape.size();
  std::vector<int64_t> sizes(in[0].shape.begin() + first, in[0].shape.end());
  double count = in[1].elements(), sum = 0, squares = 0;
  auto position = [&](int64_t i) {
    Index own = at, inner = unflat(i, sizes);
    std::copy(inner.begin(), inner.end(), own.begin() + first);
    return own;
  };
  for (int64_t i = 0; i < count; ++i)
    sum += get(in[0], position(i));
  double mean = centered ? sum / count : 0;
  for (int64_t i = 0; i < count; ++i)
    squares += std::pow(get(in[0], position(i)) - mean, 2);
  double epsilon = op->getAttrOfType<FloatAttr>("epsilon").getValueAsDouble();
  double deviation = std::sqrt(squares / count + epsilon), result = 0;
  double own = get(in[0], at) - mean;
  for (int64_t i = 0; i < count; ++i) {
    double x = get(in[0], position(i)) - mean;
    // d y[i] / d x[at]
    double slope = (position(i) == at) / deviation -
                   x * own / (count * std::pow(deviation, 3));
    if (centered)
      slope -= 1 / (count * deviation);
    result += get(in[2], position(i)) * in[1].data[i] * slope;
  }
  return result;
}

/// The first word of Philox4x32-10.
double philox(Operation *op, const Operands &in, const Index &at, unsigned) {
  auto index = static_cast<uint64_t>(static_cast<int64_t>(get(in[0], at))),
       seed = static_cast<uint64_t>(static_cast<int64_t>(in[1].data[0])),
       step = static_cast<uint64_t>(static_cast<int64_t>(in[2].data[0]));
  uint32_t c[4] = {uint32_t(index), uint32_t(index >> 32), uint32_t(step),
                   uint32_t(cast<PhiloxOp>(op).getStream())};
  uint32_t k[2] = {uint32_t(seed), uint32_t(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t p = uint64_t(0xD2511F53) * c[0], q = uint64_t(0xCD9E8D57) * c[2];
    uint32_t next[4] = {uint32_t(q >> 32) ^ c[1] ^ k[0], uint32_t(q),
                        uint32_t(p >> 32) ^ c[3] ^ k[1], uint32_t(p)};
    std::copy(next, next + 4, c);
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c[0];
}

double maximum(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
}
double minimum(double a, double b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
}
double gelu(double x, bool tanhForm) {
  return tanhForm ? x *
                        (1 + std::tanh(std::sqrt(2 / M_PI) *
                                       (x + 0.044715 * x * x * x))) /
                        2
                  : x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
}

double geluSlope(double x, bool tanhForm) {
  if (!tanhForm)
    return (1 + std::erf(x / std::sqrt(2.0))) / 2 +
           x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  double c = std::sqrt(2 / M_PI), t = std::tanh(c * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x) / 2;
}

std::map<std::string, Rule> makeRules() {
  std::map<std::string, Rule> r;
  r["neg"] = unary([](double x) { return -x; });
  r["abs"] = unary([](double x) { return std::fabs(x); });
  r["sign"] =
      unary([](double x) { return std::isnan(x) ? x : (x > 0) - (x < 0); });
  r["exp"] = unary([](double x) { return std::exp(x); });
  r["log"] = unary([](double x) { return std::log(x); });
  r["sqrt"] = unary([](double x) { return std::sqrt(x); });
  r["rsqrt"] = unary([](double x) { return 1 / std::sqrt(x); });
  r["reciprocal"] = unary([](double x) { return 1 / x; });
  r["erf"] = unary([](double x) { return std::erf(x); });
  r["tanh"] = unary([](double x) { return std::tanh(x); });
  r["sigmoid"] = unary([](double x) { return 1 / (1 + std::exp(-x)); });
  r["relu"] =
      unary([](double x) { return std::isnan(x) ? x : std::max(x, 0.0); });
  r["silu"] = unary([](double x) { return x / (1 + std::exp(-x)); });
  r["sin"] = unary([](double x) { return std::sin(x); });
  r["cos"] = unary([](double x) { return std::cos(x); });
  r["floor"] = unary([](double x) { return std::floor(x); });
  r["ceil"] = unary([](double x) { return std::ceil(x); });
  r["round"] = unary([](double x) { return std::nearbyint(x); });
  r["not"] = unary([](double x) { return x == 0; });
  r["is_nan"] = unary([](double x) { return std::isnan(x); });
  r["is_inf"] = unary([](double x) { return std::isinf(x); });
  r["stop_gradient"] = r["barrier"] = unary([](double x) { return x; });
  r["gelu"] = [](Operation *op, const Operands &in, const Index &at, unsigned) {
    return gelu(get(in[0], at), op->hasAttr("tanh"));
  };
  r["gelu_gradient"] = [](Operation *op, const Operands &in, const Index &at,
                          unsigned) {
    return geluSlope(get(in[0], at), op->hasAttr("tanh")) * spread(in[1], at);
  };
  r["silu_gradient"] = binary([](double x, double g) {
    double y = 1 / (1 + std::exp(-x));
    return y * (1 + x * (1 - y)) * g;
  });
  r["dropout"] = [](Operation *, const Operands &in, const Index &at,
                    unsigned number) { return number ? 1 : get(in[0], at); };
  r["philox"] = philox;
  r["add"] = binary([](double a, double b) { return a + b; });
  r["sub"] = binary([](double a, double b) { return a - b; });
  r["mul"] = binary([](double a, double b) { return a * b; });
  r["pow"] = binary([](double a, double b) { return std::pow(a, b); });
  r["fmod"] = binary([](double a, double b) { return std::fmod(a, b); });
  r["and"] = binary(
      [](double a, double b) -> double { return int64_t(a) & int64_t(b); });
  r["or"] = binary(
      [](double a, double b) -> double { return int64_t(a) | int64_t(b); });
  r["xor"] = binary(
      [](double a, double b) -> double { return int64_t(a) ^ int64_t(b); });
  r["max"] = binary(maximum);
  r["min"] = binary(minimum);
  r["div"] = divide;
  r["mod"] = modulo;
  r["compare"] = compare;
  r["convert"] = convert;
  r["select"] = [](Operation *, const Operands &in, const Index &at, unsigned) {
    return spread(in[0], at) != 0 ? spread(in[1], at) : spread(in[2], at);
  };
  r["broadcast"] = [](Operation *, const Operands &in, const Index &at,
                      unsigned) { return spread(in[0], at); };
  r["reshape"] = [](Operation *op, const Operands &in, const Index &at,
                    unsigned) {
    return in[0].data.at(flat(
        at,
        cast<RankedTensorType>(op->getResult(0).getType()).getShape().vec()));
  };
  r["transpose"] = [](Operation *op, const Operands &in, const Index &at,
                      unsigned) {
    Index own(at.size());
    for (auto [i, d] : llvm::enumerate(cast<TransposeOp>(op).getPerm()))
      own[d] = at[i];
    return get(in[0], own);
  };
  r["strided_slice"] = [](Operation *op, const Operands &in, const Index &at,
                          unsigned) {
    auto slice = cast<StridedSliceOp>(op);
    Index own = at;
    own[slice.getDim()] =
        slice.getStart() + slice.getStep() * at[slice.getDim()];
    return get(in[0], own);
  };
  r["iota"] = [](Operation *op, const Operands &, const Index &at,
                 unsigned) -> double { return at[cast<IotaOp>(op).getDim()]; };
  r["constant"] = [](Operation *op, const Operands &, const Index &at,
                     unsigned) -> double {
    auto value = cast<DenseElementsAttr>(cast<ConstantOp>(op).getValue());
    int64_t i = flat(at, value.getType().getShape().vec());
    if (isa<FloatType>(value.getElementType()))
      return (value.value_begin<APFloat>() + i).operator*().convertToDouble();
    APInt integer = *(value.value_begin<APInt>() + i);
    return integer.getBitWidth() == 1 ? integer.getZExtValue()
                                      : integer.getSExtValue();
  };
  r["concat"] = concatenated;
  r["pad"] = padded;
  r["rotary"] = rotated;
  r["gather"] = gathered;
  r["gather_elements"] = gatheredElements;
  r["gather_nd"] = gatheredNd;
  r["reduce_sum"] = reduction(0, [](double a, double b) { return a + b; });
  r["reduce_prod"] = reduction(1, [](double a, double b) { return a * b; });
  r["reduce_max"] = reduction(-INFINITY, maximum);
  r["reduce_min"] = reduction(INFINITY, minimum);
  r["softmax"] = r["log_softmax"] = softmaxed;
  r["layer_norm"] = r["rms_norm"] = normed;
  r["softmax_gradient"] = r["log_softmax_gradient"] = softmaxGradient;
  r["layer_norm_gradient"] = r["rms_norm_gradient"] = normGradient;
  r["mask_tail"] = [](Operation *op, const Operands &in, const Index &at,
                      unsigned) {
    auto mask = cast<spmd::MaskTailOp>(op);
    if (at[mask.getDim()] < in[1].data[0])
      return get(in[0], at);
    if (auto number = dyn_cast<FloatAttr>(mask.getNeutral()))
      return number.getValueAsDouble();
    return double(cast<IntegerAttr>(mask.getNeutral()).getInt());
  };
  r["take_block"] = [](Operation *op, const Operands &in, const Index &at,
                       unsigned) {
    int64_t dim = cast<spmd::TakeBlockOp>(op).getDim();
    Index own = at;
    own[dim] += in[1].data[0];
    return own[dim] < in[0].shape[dim] ? get(in[0], own) : 0;
  };
  r["place_block"] = [](Operation *op, const Operands &in, const Index &at,
                        unsigned) {
    int64_t dim = cast<spmd::PlaceBlockOp>(op).getDim();
    Index own = at;
    own[dim] -= in[1].data[0];
    return own[dim] >= 0 && own[dim] < in[2].data[0] ? get(in[0], own) : 0;
  };
  r["keep_on_root"] = [](Operation *, const Operands &in, const Index &at,
                         unsigned) {
    return in[1].data[0] == 0 ? get(in[0], at) : 0;
  };
  return r;
}

} // namespace

std::vector<Tensor> mtp::test::interpret(Operation *op,
                                         const std::vector<Tensor> &operands) {
  static const std::map<std::string, Rule> rules = makeRules();
  auto rule = rules.find(op->getName().stripDialect().str());
  if (rule == rules.end())
    throw std::runtime_error("no rule for " +
                             op->getName().getStringRef().str());
  std::vector<Tensor> results;
  for (OpResult result : op->getResults()) {
    Tensor tensor{cast<RankedTensorType>(result.getType()).getShape().vec(),
                  {}};
    tensor.data.resize(tensor.elements());
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.data[i] = rule->second(op, operands, unflat(i, tensor.shape),
                                    result.getResultNumber());
    results.push_back(std::move(tensor));
  }
  return results;
}

std::vector<Tensor> mtp::test::interpret(func::FuncOp func,
                                         const std::vector<Tensor> &arguments) {
  llvm::DenseMap<Value, Tensor> values;
  for (auto [argument, tensor] : llvm::zip(func.getArguments(), arguments))
    values[argument] = tensor;
  for (Operation &op : func.getBody().front()) {
    Operands operands;
    for (Value value : op.getOperands())
      operands.push_back(values[value]);
    if (isa<func::ReturnOp>(op))
      return operands;
    auto results = interpret(&op, operands);
    for (auto [result, tensor] : llvm::zip(op.getResults(), results))
      values[result] = std::move(tensor);
  }
  return {};
}
