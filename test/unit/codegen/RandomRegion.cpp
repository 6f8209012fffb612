// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/codegen/RandomRegion.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"

#include <numeric>
#include <random>

using namespace mlir;
using namespace mtp;

namespace {

using Shape = SmallVector<int64_t>;

class Generator {
public:
  Generator(func::FuncOp func, uint64_t seed, std::set<std::string> &covered)
      : func(func), builder(OpBuilder::atBlockEnd(func.addEntryBlock())),
        loc(func.getLoc()), random(seed), covered(covered) {}

  void run(int ops, bool several);

private:
  int64_t pick(int64_t low, int64_t high) {
    return low + int64_t(random() % uint64_t(high - low + 1));
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  Shape shapeOf(Value value) {
    return Shape(cast<RankedTensorType>(value.getType()).getShape());
  }
  RankedTensorType typeOf(ArrayRef<int64_t> shape, Type element = {}) {
    return RankedTensorType::get(shape, element ? element
                                                : Type(builder.getF32Type()));
  }
  Value argument(RankedTensorType type, int64_t below = 0) {
    (void)func.insertArgument(func.getNumArguments(), type, {}, loc);
    if (below)
      func.setArgAttr(func.getNumArguments() - 1, "mtp.below",
                      builder.getI64IntegerAttr(below));
    return func.getArguments().back();
  }
  Value scalar(int64_t below) {
    return argument(typeOf({}, builder.getI64Type()), below);
  }
  /// A value computed before, rather a late one.
  Value any() {
    size_t last = values.size() - 1;
    return values[chance(60) ? last : pick(0, last)];
  }
  /// Something that broadcasts to `shape`.
  Value operandFor(const Shape &shape);
  template <typename Op, typename... Args>
  Value create(ArrayRef<int64_t> shape, Args &&...args) {
    auto op =
        Op::create(builder, loc, typeOf(shape), std::forward<Args>(args)...);
    covered.insert(op->getName().stripDialect().str());
    return op->getResult(0);
  }
  Value near(Value x) { return create<TanhOp>(shapeOf(x), x); }
  Value elementwise(Value x);
  Value move(Value x);
  Value look(Value x);
  Value row(Value x);
  Value block(Value x);

  func::FuncOp func;
  OpBuilder builder;
  Location loc;
  std::mt19937_64 random;
  std::set<std::string> &covered;
  std::vector<Value> values;
};

Value Generator::operandFor(const Shape &shape) {
  for (int i = 0; i < 4; ++i) {
    Value candidate = any();
    Shape own = shapeOf(candidate);
    bool fits = own.size() <= shape.size();
    for (size_t d = 0; fits && d < own.size(); ++d)
      fits &= own[d] == 1 || own[d] == shape[shape.size() - own.size() + d];
    if (fits)
      return candidate;
  }
  Shape own(shape.begin() + pick(0, shape.size()), shape.end());
  for (int64_t &size : own)
    if (chance(30))
      size = 1;
  if (chance(30)) {
    auto type = typeOf(own);
    if (chance(50))
      return ConstantOp::create(builder, loc,
                                DenseElementsAttr::get(type, 0.25f));
    SmallVector<float> elements;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      elements.push_back(float(i % 7) / 4 - 0.5f);
    return ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, ArrayRef<float>(elements)));
  }
  return argument(typeOf(own));
}

Value Generator::elementwise(Value x) {
  Shape shape = shapeOf(x);
  switch (pick(0, 19)) {
  case 0:
    return create<AddOp>(shape, x, operandFor(shape));
  case 1:
    return create<SubOp>(shape, operandFor(shape), x);
  case 2:
    return near(create<MulOp>(shape, x, operandFor(shape)));
  case 3:
    return create<MaxOp>(shape, x, operandFor(shape));
  case 4:
    return create<MinOp>(shape, x, operandFor(shape));
  case 5:
    return near(x);
  case 6:
    return create<ExpOp>(shape, near(x));
  case 7:
    return create<SigmoidOp>(shape, x);
  case 8:
    return create<GeluOp>(shape, x,
                          chance(50) ? builder.getUnitAttr() : UnitAttr());
  case 9:
    return create<SiluOp>(shape, x);
  case 10:
    return create<ReluOp>(shape, x);
  case 11:
    return create<NegOp>(shape, x);
  case 12:
    return create<AbsOp>(shape, x);
  case 13:
    return create<DivOp>(shape, x, create<ExpOp>(shape, near(x)));
  case 14:
    return create<ErfOp>(shape, x);
  case 15:
    return near(create<GeluGradientOp>(shape, x, operandFor(shape),
                                       chance(50) ? builder.getUnitAttr()
                                                  : UnitAttr()));
  case 16:
    return near(create<SiluGradientOp>(shape, x, operandFor(shape)));
  case 17: { // dropout
    auto i64 = builder.getI64Type();
    if (shape.empty())
      return near(x);
    Value index = IotaOp::create(builder, loc, typeOf(shape, i64),
                                 pick(0, shape.size() - 1));
    Value bits = PhiloxOp::create(builder, loc, typeOf(shape, i64), index,
                                  scalar(100), scalar(100), pick(0, 5));
    Value bound = ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(typeOf({}, i64), int64_t(3) << 30));
    Value kept =
        CompareOp::create(builder, loc, typeOf(shape, builder.getI1Type()),
                          Compare::lt, bits, bound);
    covered.insert("philox");
    Value zero = ConstantOp::create(builder, loc,
                                    DenseElementsAttr::get(typeOf({}), 0.0f));
    return create<SelectOp>(shape, kept, x, zero);
  }
  case 18: {
    Shape mask = shape;
    for (int64_t &size : mask)
      if (chance(30))
        size = 1;
    Value condition = argument(typeOf(mask, builder.getI1Type()));
    return create<SelectOp>(shape, condition, x, operandFor(shape));
  }
  default: {
    if (shape.empty())
      return near(x);
    int64_t dim = pick(0, shape.size() - 1);
    auto type = typeOf(shape, builder.getI64Type());
    Value iota = IotaOp::create(builder, loc, type, dim);
    Value bound = ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(typeOf({}, builder.getI64Type()), pick(0, 4)));
    Value mask =
        CompareOp::create(builder, loc, typeOf(shape, builder.getI1Type()),
                          Compare::le, iota, bound);
    covered.insert({"iota", "compare"});
    return create<SelectOp>(shape, mask, x, operandFor(shape));
  }
  }
}

Value Generator::move(Value x) {
  Shape shape = shapeOf(x);
  int64_t rank = shape.size(),
          total = cast<RankedTensorType>(x.getType()).getNumElements();
  if (rank == 0)
    return create<BroadcastOp>({pick(1, 4), pick(1, 4)}, x);
  int64_t dim = pick(0, rank - 1);
  switch (pick(0, 7)) {
  case 0: { // reshape: regroup the prime factors of the size
    Shape factors;
    for (int64_t rest = total, f = 2; rest > 1;)
      if (rest % f == 0) {
        factors.push_back(f);
        rest /= f;
      } else {
        ++f;
      }
    std::shuffle(factors.begin(), factors.end(), random);
    Shape result(pick(1, 4), 1);
    for (int64_t factor : factors)
      result[pick(0, result.size() - 1)] *= factor;
    return create<ReshapeOp>(result, x);
  }
  case 1: {
    SmallVector<int64_t> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    Shape result;
    for (int64_t d : perm)
      result.push_back(shape[d]);
    return create<TransposeOp>(result, x, perm);
  }
  case 2: {
    Shape result = shape;
    for (int64_t &size : result)
      if (size == 1 && chance(70))
        size = pick(1, 5);
    if (rank < 4 && total < 200 && chance(50))
      result.insert(result.begin(), pick(1, 3));
    return create<BroadcastOp>(result, x);
  }
  case 3: {
    int64_t step = pick(1, 2) * (chance(30) ? -1 : 1),
            start = pick(0, shape[dim] - 1);
    int64_t room =
        step > 0 ? (shape[dim] - 1 - start) / step + 1 : start / -step + 1;
    Shape result = shape;
    result[dim] = pick(1, room);
    return create<StridedSliceOp>(result, x, dim, start, step);
  }
  case 4:
  case 5: {
    Shape other = shape;
    other[dim] = pick(0, 3);
    Value y = chance(50) ? x : argument(typeOf(other));
    SmallVector<Value> parts{x, y};
    if (chance(50))
      std::swap(parts[0], parts[1]);
    Shape result = shape;
    result[dim] += shapeOf(y)[dim];
    return create<ConcatOp>(result, dim, ValueRange(parts));
  }
  case 6: {
    SmallVector<int64_t> low(rank, 0), high(rank, 0);
    Shape result = shape;
    for (int64_t d = 0; d < rank; ++d)
      if (chance(40)) {
        low[d] = pick(0, 2), high[d] = pick(0, 2);
        result[d] += low[d] + high[d];
      }
    return create<PadOp>(result, x, builder.getF64FloatAttr(0.5),
                         builder.getDenseI64ArrayAttr(low),
                         builder.getDenseI64ArrayAttr(high));
  }
  default: {
    int64_t half = pick(1, std::max<int64_t>(1, shape.back() / 2));
    if (rank < 2 || 2 * half > shape.back())
      return create<NegOp>(shape, x);
    Shape angle = shape;
    angle.back() = half;
    if (rank > 1)
      angle[0] = 1;
    Value c = argument(typeOf(angle)), s = argument(typeOf(angle));
    return near(create<RotaryOp>(
        shape, x, c, s, chance(50) ? builder.getUnitAttr() : UnitAttr()));
  }
  }
}

Value Generator::look(Value x) {
  Shape shape = shapeOf(x);
  if (shape.empty())
    return near(x);
  int64_t dim = pick(0, shape.size() - 1);
  if (chance(50)) {
    Shape indices(pick(0, 2));
    for (int64_t &size : indices)
      size = pick(1, 3);
    Shape result(shape.begin(), shape.begin() + dim);
    result.append(indices);
    result.append(shape.begin() + dim + 1, shape.end());
    return create<GatherOp>(
        result, x, argument(typeOf(indices, builder.getI64Type()), shape[dim]),
        dim);
  }
  Shape result = shape;
  result[dim] = pick(1, 4);
  return create<GatherElementsOp>(
      result, x, argument(typeOf(result, builder.getI64Type()), shape[dim]),
      dim);
}

Value Generator::row(Value x) {
  Shape shape = shapeOf(x);
  int64_t rank = shape.size();
  if (rank == 0)
    return near(x);
  auto epsilon = builder.getF64FloatAttr(0.01);
  // A cotangent: something of the same shape.
  auto cotangent = [&]() -> Value {
    Value candidate = any();
    return shapeOf(candidate) == shape ? candidate : argument(typeOf(shape));
  };
  int64_t dim = chance(70) ? rank - 1 : pick(0, rank - 1);
  switch (pick(0, 9)) {
  case 4:
    return near(create<SoftmaxGradientOp>(shape, x, cotangent(), dim));
  case 5:
    return near(create<LogSoftmaxGradientOp>(shape, near(x), cotangent(), dim));
  case 6: {
    auto type = typeOf(ArrayRef<int64_t>(shape).take_back(pick(1, rank)));
    return near(create<LayerNormGradientOp>(shape, x, argument(type),
                                            cotangent(), epsilon));
  }
  case 7:
    return near(create<RmsNormGradientOp>(
        shape, x, argument(typeOf({shape.back()})), cotangent(), epsilon));
  case 0:
    return create<SoftmaxOp>(shape, x, dim);
  case 1:
    return create<LogSoftmaxOp>(shape, x, dim);
  case 2: {
    int64_t k = pick(1, rank);
    auto type = typeOf(ArrayRef<int64_t>(shape).take_back(k));
    Value scale = argument(type), bias = chance(50) ? argument(type) : Value();
    return create<LayerNormOp>(shape, x, scale, bias, epsilon);
  }
  case 3:
    return create<RmsNormOp>(shape, x, argument(typeOf({shape.back()})),
                             epsilon);
  default: {
    SmallVector<int64_t> dims;
    for (int64_t d = 0; d < rank; ++d)
      if (d == rank - 1 ? chance(70) : chance(30))
        dims.push_back(d);
    if (dims.empty())
      dims.push_back(rank - 1);
    UnitAttr keep = chance(50) ? builder.getUnitAttr() : UnitAttr();
    Shape result;
    for (int64_t d = 0; d < rank; ++d) {
      if (!llvm::is_contained(dims, d))
        result.push_back(shape[d]);
      else if (keep)
        result.push_back(1);
    }
    auto attr = builder.getDenseI64ArrayAttr(dims);
    switch (pick(0, 3)) {
    case 0:
      return near(create<ReduceSumOp>(result, x, attr, keep));
    case 1:
      return create<ReduceMaxOp>(result, x, attr, keep);
    case 2:
      return create<ReduceMinOp>(result, x, attr, keep);
    default:
      return create<ReduceProdOp>(result, near(x), attr, keep);
    }
  }
  }
}

Value Generator::block(Value x) {
  Shape shape = shapeOf(x);
  if (shape.empty())
    return near(x);
  int64_t dim = pick(0, shape.size() - 1);
  Shape result = shape;
  switch (pick(0, 3)) {
  case 0:
    return create<spmd::MaskTailOp>(shape, x, scalar(shape[dim] + 1),
                                    builder.getI64IntegerAttr(dim),
                                    builder.getF32FloatAttr(0.5));
  case 1:
    result[dim] = pick(1, shape[dim]);
    return create<spmd::TakeBlockOp>(result, x, scalar(shape[dim] + 2),
                                     builder.getI64IntegerAttr(dim));
  case 2:
    result[dim] = shape[dim] + pick(0, 4);
    return create<spmd::PlaceBlockOp>(
        result, x, scalar(result[dim] - shape[dim] + 1), scalar(shape[dim] + 1),
        builder.getI64IntegerAttr(dim));
  default:
    return create<spmd::KeepOnRootOp>(shape, x, scalar(2));
  }
}

void Generator::run(int ops, bool several) {
  Shape shape(pick(1, 4));
  for (int64_t &size : shape)
    size = pick(1, 7);
  values.push_back(argument(typeOf(shape)));
  for (int i = 0; i < ops; ++i) {
    Value x = any(), y;
    int64_t kind = pick(0, 99);
    y = kind < 40   ? elementwise(x)
        : kind < 70 ? move(x)
        : kind < 78 ? look(x)
        : kind < 92 ? row(x)
                    : block(x);
    if (cast<RankedTensorType>(y.getType()).getNumElements() <= 4096)
      values.push_back(y);
  }
  SmallVector<Value> results;
  if (several) {
    for (Value value : values)
      if (value.getDefiningOp() && (value.use_empty() || chance(20)))
        results.push_back(value);
  } else {
    results.push_back(values.back());
    for (Value value : values)
      if (value.getDefiningOp() && value != values.back() &&
          shapeOf(value) == shapeOf(values.back()) && chance(40))
        results.push_back(value);
  }
  if (results.empty() || !results.back().getDefiningOp())
    results = {near(values.back())};
  func::ReturnOp::create(builder, loc, results);
  func.setFunctionType(builder.getFunctionType(
      func.getBody().getArgumentTypes(), ValueRange(results).getTypes()));
}

} // namespace

func::FuncOp mtp::test::randomRegion(ModuleOp module, const std::string &name,
                                     uint64_t seed, int ops, bool several,
                                     std::set<std::string> &covered) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto func = func::FuncOp::create(builder, module.getLoc(), name,
                                   builder.getFunctionType({}, {}));
  Generator(func, seed, covered).run(ops, several);
  return func;
}
