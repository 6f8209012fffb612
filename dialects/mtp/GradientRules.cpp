// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GradientRules.cpp - rules of training's ops: gradients, state ------===//

#include "dialects/mtp/RuleSupport.h"

using namespace mlir;
using namespace mtp;

//===----------------------------------------------------------------------===//
// Stored tensors
//===----------------------------------------------------------------------===//

FailureOr<ShardingRule> StateOp::buildShardingRule() {
  auto rule = sourceRule(*this, FactorKind::Parallel);
  if (succeeded(rule))
    rule->mayBePartial = true;
  return rule;
}

/// Element by element, whatever the state: nothing is contracted, and padding
/// may hold anything.
FailureOr<ShardingRule> StoreOp::buildShardingRule() {
  RuleBuilder builder(*this);
  for (int64_t dim = 0, rank = typeOf(getValue()).getRank(); dim < rank;
       ++dim) {
    int factor = builder.factor();
    builder[factor].indexed = true;
    builder.operand(0, dim, factor);
    builder.operand(1, dim, factor);
  }
  builder.rule.linear = {0b11u};
  return builder.build();
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

LogicalResult PhiloxOp::verify() {
  for (Value value : {getIndex(), getSeed(), getStep(), getResult()})
    if (!typeOf(value).getElementType().isInteger(64))
      return emitOpError() << "has elements of type "
                           << typeOf(value).getElementType()
                           << ", expected i64";
  if (typeOf(getSeed()).getRank() != 0 || typeOf(getStep()).getRank() != 0)
    return emitOpError() << "seed and step are scalars";
  return success();
}

LogicalResult DropoutOp::verify() {
  double ratio = getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio < 1))
    return emitOpError() << "has ratio " << ratio
                         << ", expected at least 0 and below 1";
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

FailureOr<ShardingRule> WeightGradientOp::buildShardingRule() {
  int64_t rank = typeOf(getLhs()).getRank();
  if (rank < 1)
    return emitOpError() << "operands are scalars, expected rank 1 or more";
  if (failed(checkRank(*this, getRhs(), rank, "the second operand")) ||
      failed(checkShape(*this, getResult(),
                        {typeOf(getLhs()).getShape().back(),
                         typeOf(getRhs()).getShape().back()},
                        "the result")))
    return failure();
  if (typeOf(getLhs()).getShape().drop_back() !=
      typeOf(getRhs()).getShape().drop_back())
    return emitOpError() << "leading sizes of the operands differ";
  RuleBuilder builder(*this);
  for (int64_t dim = 0; dim + 1 < rank; ++dim) {
    int contracted = builder.factor();
    builder.operand(0, dim, contracted);
    builder.operand(1, dim, contracted);
  }
  builder.same(0, rank - 1, 0, 0);
  builder.same(1, rank - 1, 0, 1);
  builder.rule.linear = {0b01u, 0b10u};
  return builder.build();
}

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t all = 1;
  for (int64_t size : sizes)
    all *= size;
  return all;
}

int64_t WeightGradientOp::getFlops(ArrayRef<SmallVector<int64_t>> operands,
                                   ArrayRef<SmallVector<int64_t>>) {
  return 2 * product(operands[0]) * operands[1].back();
}

/// Leading dimensions are contiguous in a local block: one product.
SmallVector<Value> WeightGradientOp::localize(Localizer &localizer,
                                              ValueRange operands,
                                              TypeRange results) {
  OpBuilder &builder = localizer.builder();
  SmallVector<Value> flat;
  for (Value operand : operands) {
    auto type = typeOf(operand);
    int64_t last = type.getShape().back();
    auto two = RankedTensorType::get(
        {product(type.getShape().drop_back()), last}, type.getElementType());
    flat.push_back(operand.getType() == two
                       ? operand
                       : ReshapeOp::create(builder, getLoc(), two, operand));
  }
  return {MatMulOp::create(builder, getLoc(), results[0], flat[0], flat[1],
                           /*transpose_lhs=*/true, /*transpose_rhs=*/false)};
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

namespace {
/// Factors of a convolution: batch, output and input channels, spatial and
/// window dimensions. With several groups channels are whole.
struct ConvolutionFactors {
  ConvolutionFactors(RuleBuilder &builder, int64_t rank, bool grouped) {
    FactorKind channels = grouped ? FactorKind::Whole : FactorKind::Parallel;
    n = builder.factor();
    o = builder.factor(channels);
    c = builder.factor(channels);
    groupC = grouped ? builder.factor(FactorKind::Whole) : c;
    for (int64_t dim = 2; dim < rank; ++dim) {
      in.push_back({builder.factor(FactorKind::Whole)});
      window.push_back({builder.factor(FactorKind::Whole)});
      out.push_back({builder.factor(FactorKind::Whole)});
    }
  }
  using Dims = SmallVector<SmallVector<int, 2>>;
  static Dims join(int first, int second, const Dims &rest) {
    Dims dims{{first}, {second}};
    dims.append(rest.begin(), rest.end());
    return dims;
  }
  Dims input() const { return join(n, c, in); }
  Dims filter() const { return join(o, groupC, window); }
  Dims output() const { return join(n, o, out); }
  int n, o, c, groupC;
  Dims in, window, out;
};
} // namespace

template <typename Op>
static FailureOr<ShardingRule> convolutionGradientRule(Op op, bool ofInput) {
  int64_t rank = typeOf(op.getLhs()).getRank();
  if (rank < 3)
    return op.emitOpError()
           << "operand has rank " << rank << ", expected 3 or more";
  if (failed(checkRank(op, op.getCotangent(), rank, "the cotangent")) ||
      failed(checkRank(op, op.getResult(), rank, "the result")))
    return failure();
  RuleBuilder builder(op);
  ConvolutionFactors factors(builder, rank, op.getGroups() != 1);
  placeOperand(builder, 0, ofInput ? factors.filter() : factors.input());
  placeOperand(builder, 1, factors.output());
  placeResult(builder, 0, ofInput ? factors.input() : factors.filter());
  builder.rule.linear = {0b01u, 0b10u};
  return builder.build();
}

FailureOr<ShardingRule> ConvolutionInputGradientOp::buildShardingRule() {
  return convolutionGradientRule(*this, true);
}
FailureOr<ShardingRule> ConvolutionFilterGradientOp::buildShardingRule() {
  return convolutionGradientRule(*this, false);
}
int64_t
ConvolutionInputGradientOp::getFlops(ArrayRef<SmallVector<int64_t>> operands,
                                     ArrayRef<SmallVector<int64_t>>) {
  return 2 * product(operands[1]) *
         product(ArrayRef<int64_t>(operands[0]).drop_front());
}
int64_t
ConvolutionFilterGradientOp::getFlops(ArrayRef<SmallVector<int64_t>> operands,
                                      ArrayRef<SmallVector<int64_t>> results) {
  return 2 * product(operands[1]) *
         product(ArrayRef<int64_t>(results[0]).drop_front());
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

LogicalResult AttentionGradientOp::verify() {
  for (auto [value, gradient] :
       {std::pair<Value, Value>{getQuery(), getQueryGradient()},
        {getKey(), getKeyGradient()},
        {getValue(), getValueGradient()}})
    if (failed(checkShape(*this, gradient, typeOf(value).getShape(),
                          "a cotangent")))
      return failure();
  ArrayRef<int64_t> mask;
  if (getMask() && isFloat(getMask()))
    mask = typeOf(getMask()).getShape();
  if (getQueryStart() && typeOf(getQueryStart()).getRank() != 0)
    return emitOpError() << "query_start is a scalar";
  return checkShape(*this, getMaskGradient(), mask, "the mask's cotangent");
}

FailureOr<ShardingRule> AttentionGradientOp::buildShardingRule() {
  for (Value value :
       {getQuery(), getKey(), getValue(), getOutput(), getCotangent()})
    if (failed(checkRank(*this, value, 4, "a tensor")))
      return failure();
  if (failed(checkRank(*this, getLogsumexp(), 3, "the logsumexp")))
    return failure();
  int64_t heads = typeOf(getQuery()).getDimSize(1),
          keyHeads = typeOf(getKey()).getDimSize(1);
  if (keyHeads < 1 || heads % keyHeads != 0)
    return emitOpError() << heads << " query heads are not a multiple of "
                         << keyHeads << " key heads";
  RuleBuilder builder(*this);
  int b = builder.factor(), hk = builder.factor(), g = builder.factor(),
      s = builder.factor();
  int t = builder.factor(FactorKind::Whole),
      d = builder.factor(FactorKind::Whole),
      e = builder.factor(FactorKind::Whole);
  StringRef names[] = {"b", "hk", "g", "s", "t", "d", "e"};
  for (auto [index, name] : llvm::enumerate(names))
    builder[index].name = name.str();
  builder[hk].size = keyHeads;
  builder[g].size = heads / keyHeads;
  using Dims = SmallVector<SmallVector<int, 2>>;
  Dims query{{b}, {hk, g}, {s}, {d}}, key{{b}, {hk}, {t}, {d}},
      value{{b}, {hk}, {t}, {e}}, output{{b}, {hk, g}, {s}, {e}},
      rows{{b}, {hk, g}, {s}}, scores{{b}, {hk, g}, {s}, {t}};
  unsigned operand = 0;
  placeOperand(builder, operand++, query);
  placeOperand(builder, operand++, key);
  placeOperand(builder, operand++, value);
  placeResult(builder, 0, query);
  placeResult(builder, 1, key);
  placeResult(builder, 2, value);
  if (Value mask = getMask()) {
    int64_t rank = typeOf(mask).getRank();
    if (rank > 4)
      return emitOpError() << "the mask has rank " << rank
                           << ", expected at most 4";
    Dims dims(scores.end() - rank, scores.end());
    placeOperand(builder, operand++, dims);
    // What the mask was broadcast in is summed.
    for (auto [dim, size] : llvm::enumerate(typeOf(mask).getShape()))
      if (isFloat(mask) && size != 1)
        builder.result(3, dim, dims[dim]);
  }
  if (getQueryStart())
    ++operand;
  placeOperand(builder, operand++, output);
  placeOperand(builder, operand++, rows);
  placeOperand(builder, operand, output);
  builder.rule.linear = {1u << operand};
  builder.rule.eachContracts = true;
  return builder.build();
}

/// Five products of the scores' size where the forward has two.
int64_t AttentionGradientOp::getFlops(ArrayRef<SmallVector<int64_t>> operands,
                                      ArrayRef<SmallVector<int64_t>>) {
  ArrayRef<int64_t> q = operands[0], v = operands[2];
  return 2 * q[0] * q[1] * q[2] * v[2] * (3 * q[3] + 2 * v[3]);
}

SmallVector<Value> AttentionGradientOp::localize(Localizer &localizer,
                                                 ValueRange operands,
                                                 TypeRange results) {
  OpBuilder &builder = localizer.builder();
  OpOperand &query = (*this)->getOpOperand(0);
  Value mask = getMask() ? operands[3] : Value();
  Value start = getQueryStart() ? operands[3 + (mask != nullptr)] : Value();
  if (getCausal() && localizer.isSharded(query, 2)) {
    Value offset = localizer.blockOffset(query, 2);
    start = start ? Value(AddOp::create(builder, getLoc(), start.getType(),
                                        start, offset))
                  : offset;
  }
  auto tail = operands.take_back(3);
  auto local = AttentionGradientOp::create(
      builder, getLoc(), results, operands[0], operands[1], operands[2], mask,
      start, tail[0], tail[1], tail[2], getScaleAttr(), getCausalAttr(),
      getCausalOffsetAttr(), getSoftcapAttr(), getMaskedRowZeroAttr(),
      getMaskedRowUniformAttr());
  return SmallVector<Value>(local->getResults());
}

//===----------------------------------------------------------------------===//
// Softmax and norms
//===----------------------------------------------------------------------===//

/// Result and both operands alike; `dim` is whole; linear in operand 1.
static FailureOr<ShardingRule> softmaxGradientRule(Operation *op, int64_t dim) {
  Value output = op->getOperand(0);
  if (failed(checkDim(op, output, dim)) ||
      failed(checkShape(op, op->getOperand(1), typeOf(output).getShape(),
                        "the cotangent")) ||
      failed(checkShape(op, op->getResult(0), typeOf(output).getShape(),
                        "the result")))
    return failure();
  RuleBuilder builder(op);
  for (int64_t d = 0, rank = typeOf(output).getRank(); d < rank; ++d) {
    int factor =
        builder.factor(d == dim ? FactorKind::Whole : FactorKind::Parallel);
    builder.operand(0, d, factor);
    builder.operand(1, d, factor);
    builder.result(0, d, factor);
  }
  builder.rule.linear = {0b10u};
  return builder.build();
}

FailureOr<ShardingRule> SoftmaxGradientOp::buildShardingRule() {
  return softmaxGradientRule(*this, getDim());
}
FailureOr<ShardingRule> LogSoftmaxGradientOp::buildShardingRule() {
  return softmaxGradientRule(*this, getDim());
}

/// Operands x, scale, g; the dimensions of the scale are whole.
static FailureOr<ShardingRule> normGradientRule(Operation *op) {
  ArrayRef<int64_t> shape = typeOf(op->getOperand(0)).getShape(),
                    scale = typeOf(op->getOperand(1)).getShape();
  int64_t rank = shape.size(), normed = scale.size();
  if (normed > rank || normed < 1 || shape.take_back(normed) != scale)
    return op->emitOpError()
           << "scale of shape [" << scale
           << "] does not fit an input of shape [" << shape << "]";
  if (failed(checkShape(op, op->getOperand(2), shape, "the cotangent")) ||
      failed(checkShape(op, op->getResult(0), shape, "the result")))
    return failure();
  RuleBuilder builder(op);
  for (int64_t dim = 0; dim < rank; ++dim) {
    bool whole = dim >= rank - normed;
    int factor =
        builder.factor(whole ? FactorKind::Whole : FactorKind::Parallel);
    builder.operand(0, dim, factor);
    builder.operand(2, dim, factor);
    builder.result(0, dim, factor);
    if (whole)
      builder.operand(1, dim - (rank - normed), factor);
  }
  builder.rule.linear = {0b100u};
  return builder.build();
}

FailureOr<ShardingRule> LayerNormGradientOp::buildShardingRule() {
  return normGradientRule(*this);
}
FailureOr<ShardingRule> RmsNormGradientOp::buildShardingRule() {
  return normGradientRule(*this);
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

FailureOr<ShardingRule> GatherGradientOp::buildShardingRule() {
  int64_t indexRank = typeOf(getIndices()).getRank(),
          rank = typeOf(getResult()).getRank(), dim = getDim();
  if (failed(checkDim(*this, getResult(), dim)) ||
      failed(checkRank(*this, getCotangent(), rank + indexRank - 1,
                       "the cotangent")))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t d = 0; d < dim; ++d)
    builder.same(1, d, 0, d);
  builder.result(0, dim, builder.factor());
  for (int64_t d = 0; d < indexRank; ++d) {
    int summed = builder.factor();
    builder.operand(0, d, summed);
    builder.operand(1, dim + d, summed);
  }
  for (int64_t d = dim + 1; d < rank; ++d)
    builder.same(1, d - 1 + indexRank, 0, d);
  builder.rule.linear = {0b10u};
  return builder.build();
}

/// Rows that another rank holds are sent to index `rows held`, which the local
/// op leaves out. Padded indices carry a cotangent of zero.
SmallVector<Value> GatherGradientOp::localize(Localizer &localizer,
                                              ValueRange operands,
                                              TypeRange results) {
  OpBuilder &builder = localizer.builder();
  Location loc = getLoc();
  auto result = cast<OpResult>(getResult());
  int64_t dim = getDim();
  Value indices = operands[0];
  if (localizer.isSharded(result, dim)) {
    auto type = typeOf(indices);
    auto scalarType = RankedTensorType::get({}, type.getElementType());
    auto splat = [&](int64_t value) -> Value {
      return ConstantOp::create(
          builder, loc,
          DenseElementsAttr::get(type, Attribute(builder.getIntegerAttr(
                                           type.getElementType(), value))));
    };
    auto test = RankedTensorType::get(type.getShape(), builder.getI1Type());
    Value rows = splat(typeOf(getResult()).getDimSize(dim)), zero = splat(0);
    Value offset = localizer.blockOffset(result, dim);
    if (offset.getType() != scalarType)
      offset = ConvertOp::create(builder, loc, scalarType, offset);
    Value negative =
        CompareOp::create(builder, loc, test, Compare::lt, indices, zero);
    Value counted = SelectOp::create(
        builder, loc, type, negative,
        AddOp::create(builder, loc, type, indices, rows), indices);
    Value local = SubOp::create(builder, loc, type, counted, offset);
    Value before =
        CompareOp::create(builder, loc, test, Compare::lt, local, zero);
    int64_t held = cast<RankedTensorType>(results[0]).getDimSize(dim);
    indices = SelectOp::create(builder, loc, type, before, splat(held), local);
  }
  return {GatherGradientOp::create(builder, loc, results[0], indices,
                                   operands[1], dim)};
}
