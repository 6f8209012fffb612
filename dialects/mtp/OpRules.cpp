// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpRules.cpp - sharding rules that depend on attributes or shapes ---===//

#include "dialects/mtp/RuleSupport.h"
#include "dialects/mtp/Strategy.h"

using namespace mlir;
using namespace mtp;

/// Moves elements only: linear in operand 0, and maxima and minima pass.
static void setMoves(ShardingRule &rule) {
  rule.linear = {1u};
  rule.passesMax = rule.passesMin = true;
}

//===----------------------------------------------------------------------===//
// Module ops
//===----------------------------------------------------------------------===//

FailureOr<ShardingRule> ParameterOp::buildShardingRule() {
  return sourceRule(*this, FactorKind::Parallel);
}

FailureOr<ShardingRule> ConstantOp::buildShardingRule() {
  bool splat = isa<SplatElementsAttr>(getValue());
  return sourceRule(*this, splat ? FactorKind::Parallel : FactorKind::Whole);
}

FailureOr<ShardingRule> IotaOp::buildShardingRule() {
  if (failed(checkDim(*this, getResult(), getDim())))
    return failure();
  return sourceRule(*this, FactorKind::Parallel);
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

FailureOr<ShardingRule> MaxOp::buildShardingRule() {
  auto rule = elementwiseRule(*this, "");
  if (succeeded(rule))
    rule->passesMax = true;
  return rule;
}

FailureOr<ShardingRule> MinOp::buildShardingRule() {
  auto rule = elementwiseRule(*this, "");
  if (succeeded(rule))
    rule->passesMin = true;
  return rule;
}

/// A widening float conversion keeps every value, hence sums of them.
static bool widens(Type from, Type to) {
  auto a = dyn_cast<FloatType>(from), b = dyn_cast<FloatType>(to);
  return a && b && b.getFPMantissaWidth() >= a.getFPMantissaWidth() &&
         b.getWidth() >= a.getWidth();
}

FailureOr<ShardingRule> ConvertOp::buildShardingRule() {
  Type from = typeOf(getInput()).getElementType(),
       to = typeOf(getResult()).getElementType();
  bool linear = widens(from, to) || (getTerms() && isa<FloatType>(from));
  return elementwiseRule(*this, linear ? "0" : "");
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

FailureOr<ShardingRule> ReshapeOp::buildShardingRule() {
  ShardingRule rule;
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (from.getNumElements() != to.getNumElements())
    return emitOpError() << "cannot turn " << from.getNumElements()
                         << " elements into " << to.getNumElements();
  reshapeFactors(from.getShape(), to.getShape(), rule.factors,
                 rule.operands.emplace_back(), rule.results.emplace_back());
  setMoves(rule);
  return rule;
}

FailureOr<ShardingRule> TransposeOp::buildShardingRule() {
  int64_t rank = typeOf(getInput()).getRank();
  SmallVector<bool> seen(rank, false);
  for (int64_t dim : getPerm()) {
    if (dim < 0 || dim >= rank || seen[dim])
      return emitOpError() << "perm is not a permutation of " << rank
                           << " dimensions";
    seen[dim] = true;
  }
  if (static_cast<int64_t>(getPerm().size()) != rank ||
      typeOf(getResult()).getRank() != rank)
    return emitOpError() << "perm has " << getPerm().size()
                         << " entries for rank " << rank;
  RuleBuilder builder(*this);
  for (auto [dim, source] : llvm::enumerate(getPerm()))
    builder.same(0, source, 0, dim);
  setMoves(builder.rule);
  return builder.build();
}

FailureOr<ShardingRule> BroadcastOp::buildShardingRule() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  int64_t extra = to.getRank() - from.getRank();
  if (extra < 0)
    return emitOpError() << "cannot broadcast rank " << from.getRank()
                         << " to rank " << to.getRank();
  RuleBuilder builder(*this);
  for (int64_t dim = 0; dim < to.getRank(); ++dim) {
    int factor = builder.factor();
    builder.result(0, dim, factor);
    if (dim >= extra)
      builder.operand(0, dim - extra, factor);
  }
  setMoves(builder.rule);
  return builder.build();
}

/// All dimensions but `whole` pass through; `whole` is whole on both sides,
/// with a factor of its own on each, as its size may change.
static FailureOr<ShardingRule> allBut(Operation *op, unsigned operand,
                                      unsigned result, int64_t whole,
                                      RuleBuilder &builder) {
  for (int64_t dim = 0, rank = typeOf(op->getResult(result)).getRank();
       dim < rank; ++dim) {
    if (dim != whole) {
      builder.same(operand, dim, result, dim);
      continue;
    }
    builder.operand(operand, dim, builder.factor(FactorKind::Whole));
    builder.result(result, dim, builder.factor(FactorKind::Whole));
  }
  return builder.build();
}

FailureOr<ShardingRule> StridedSliceOp::buildShardingRule() {
  if (failed(checkDim(*this, getInput(), getDim())) ||
      failed(checkRank(*this, getResult(), typeOf(getInput()).getRank(),
                       "the result")))
    return failure();
  RuleBuilder builder(*this);
  setMoves(builder.rule);
  return allBut(*this, 0, 0, getDim(), builder);
}

FailureOr<ShardingRule> ConcatOp::buildShardingRule() {
  if (getInputs().empty())
    return emitOpError() << "needs an operand";
  if (failed(checkDim(*this, getResult(), getDim())))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t dim = 0, rank = typeOf(getResult()).getRank(); dim < rank;
       ++dim) {
    bool joined = dim == static_cast<int64_t>(getDim());
    int factor =
        builder.factor(joined ? FactorKind::Whole : FactorKind::Parallel);
    builder.result(0, dim, factor);
    for (auto [index, input] : llvm::enumerate(getInputs())) {
      if (failed(checkRank(*this, input, rank, "an operand")))
        return failure();
      builder.operand(index, dim,
                      joined ? builder.factor(FactorKind::Whole) : factor);
    }
  }
  if (getInputs().size() <= 32)
    builder.rule.linear = {
        static_cast<uint32_t>((uint64_t(1) << getInputs().size()) - 1)};
  builder.rule.passesMax = builder.rule.passesMin = true;
  return builder.build();
}

FailureOr<ShardingRule> PadOp::buildShardingRule() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (failed(checkRank(*this, getResult(), from.getRank(), "the result")))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t dim = 0; dim < from.getRank(); ++dim) {
    if (from.getDimSize(dim) == to.getDimSize(dim)) {
      builder.same(0, dim, 0, dim);
      continue;
    }
    builder.operand(0, dim, builder.factor(FactorKind::Whole));
    builder.result(0, dim, builder.factor(FactorKind::Whole));
  }
  if (getValue().isZero())
    builder.rule.linear = {1u};
  return builder.build();
}

FailureOr<ShardingRule> GatherOp::buildShardingRule() {
  auto data = typeOf(getData()), indices = typeOf(getIndices());
  int64_t dim = getDim(), rank = data.getRank() + indices.getRank() - 1;
  if (failed(checkDim(*this, getData(), dim)) ||
      failed(checkRank(*this, getResult(), rank, "the result")))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t d = 0; d < dim; ++d)
    builder.same(0, d, 0, d);
  // Sums of one-hot rows; booleans and extrema have no such sum.
  int rows = builder.factor(isBool(getData()) ? FactorKind::Whole
                                              : FactorKind::Parallel);
  builder[rows].indexed = true;
  builder.operand(0, dim, rows);
  for (int64_t d = 0; d < indices.getRank(); ++d)
    builder.same(1, d, 0, dim + d);
  for (int64_t d = dim + 1; d < data.getRank(); ++d)
    builder.same(0, d, 0, d - 1 + indices.getRank());
  builder.rule.linear = {1u};
  builder.rule.positions = 0b10u;
  return builder.build();
}

FailureOr<ShardingRule> GatherElementsOp::buildShardingRule() {
  int64_t rank = typeOf(getData()).getRank();
  if (failed(checkDim(*this, getData(), getDim())) ||
      failed(checkRank(*this, getIndices(), rank, "the index tensor")) ||
      failed(checkRank(*this, getResult(), rank, "the result")))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t dim = 0; dim < rank; ++dim) {
    // ONNX lets the indices cover only a part of the other dimensions.
    bool covered = dim != static_cast<int64_t>(getDim()) &&
                   typeOf(getData()).getDimSize(dim) ==
                       typeOf(getIndices()).getDimSize(dim);
    int factor =
        builder.factor(covered ? FactorKind::Parallel : FactorKind::Whole);
    builder.operand(1, dim, factor);
    builder.result(0, dim, factor);
    builder.operand(0, dim,
                    covered ? factor : builder.factor(FactorKind::Whole));
  }
  builder.rule.linear = {1u};
  builder.rule.positions = 0b10u;
  return builder.build();
}

FailureOr<ShardingRule> GatherNdOp::buildShardingRule() {
  auto data = typeOf(getData()), indices = typeOf(getIndices());
  int64_t batch = getBatchDims(), tupleDim = indices.getRank() - 1;
  if (tupleDim < 0 || batch < 0 || batch > tupleDim || batch > data.getRank())
    return emitOpError() << "batch_dims " << batch
                         << " do not fit indices of rank " << indices.getRank();
  int64_t tuple = indices.getDimSize(tupleDim), slice = batch + tuple;
  if (tuple < 1 || slice > data.getRank())
    return emitOpError() << "index tuples of size " << tuple
                         << " do not fit data of rank " << data.getRank();
  if (failed(checkRank(*this, getResult(), tupleDim + data.getRank() - slice,
                       "the result")))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t dim = 0; dim < tupleDim; ++dim) {
    // Their gradient writes into each batch by index, which is whole.
    int factor = builder.factor(
        batch > 0 && dim >= batch ? FactorKind::Whole : FactorKind::Parallel);
    builder.operand(1, dim, factor);
    builder.result(0, dim, factor);
    if (dim < batch)
      builder.operand(0, dim, factor);
  }
  builder.operand(1, tupleDim, builder.factor(FactorKind::Whole));
  for (int64_t dim = batch; dim < slice; ++dim)
    builder.operand(0, dim, builder.factor(FactorKind::Whole));
  for (int64_t dim = slice; dim < data.getRank(); ++dim)
    builder.same(0, dim, 0, tupleDim + dim - slice);
  builder.rule.linear = {1u};
  builder.rule.positions = 0b10u;
  return builder.build();
}

/// Writes by index are whole in the indexed dimensions. They are jointly linear
/// in data and updates when they replace or add.
static void setScatterLinear(ShardingRule &rule, Combine combine) {
  rule.positions = 0b010u;
  if (combine == Combine::none || combine == Combine::add)
    rule.linear = {0b101u};
}

FailureOr<ShardingRule> ScatterElementsOp::buildShardingRule() {
  int64_t rank = typeOf(getData()).getRank();
  for (Value value : {getIndices(), getUpdates(), getResult()})
    if (failed(checkRank(*this, value, rank, "a tensor")))
      return failure();
  if (failed(checkDim(*this, getData(), getDim())))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t dim = 0; dim < rank; ++dim) {
    bool covered = dim != static_cast<int64_t>(getDim()) &&
                   typeOf(getData()).getDimSize(dim) ==
                       typeOf(getIndices()).getDimSize(dim);
    FactorKind kind = covered ? FactorKind::Parallel : FactorKind::Whole;
    int factor = builder.factor(kind),
        update = covered ? factor : builder.factor(kind);
    builder.operand(0, dim, factor);
    builder.result(0, dim, factor);
    builder.operand(1, dim, update);
    builder.operand(2, dim, update);
  }
  setScatterLinear(builder.rule, getCombine());
  return builder.build();
}

FailureOr<ShardingRule> ScatterNdOp::buildShardingRule() {
  auto data = typeOf(getData()), indices = typeOf(getIndices());
  int64_t tupleDim = indices.getRank() - 1;
  int64_t tuple = tupleDim < 0 ? 0 : indices.getDimSize(tupleDim);
  if (tuple < 1 || tuple > data.getRank())
    return emitOpError() << "index tuples of size " << tuple
                         << " do not fit data of rank " << data.getRank();
  if (failed(checkRank(*this, getUpdates(), tupleDim + data.getRank() - tuple,
                       "the update")) ||
      failed(checkRank(*this, getResult(), data.getRank(), "the result")))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t dim = 0; dim < tupleDim; ++dim) {
    int factor = builder.factor(FactorKind::Whole);
    builder.operand(1, dim, factor);
    builder.operand(2, dim, factor);
  }
  builder.operand(1, tupleDim, builder.factor(FactorKind::Whole));
  for (int64_t dim = 0; dim < data.getRank(); ++dim) {
    int factor =
        builder.factor(dim < tuple ? FactorKind::Whole : FactorKind::Parallel);
    builder.operand(0, dim, factor);
    builder.result(0, dim, factor);
    if (dim >= tuple)
      builder.operand(2, tupleDim + dim - tuple, factor);
  }
  setScatterLinear(builder.rule, getCombine());
  return builder.build();
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

FailureOr<ShardingRule> MatMulOp::buildShardingRule() {
  static const RuleText texts[] = {
      RuleText::parse("(...,m,k),(...,k,n)->(...,m,n)", "0|1"),
      RuleText::parse("(...,m,k),(...,n,k)->(...,m,n)", "0|1"),
      RuleText::parse("(...,k,m),(...,k,n)->(...,m,n)", "0|1"),
      RuleText::parse("(...,k,m),(...,n,k)->(...,m,n)", "0|1")};
  if (typeOf(getLhs()).getRank() < 2 || typeOf(getRhs()).getRank() < 2)
    return emitOpError() << "operands have rank " << typeOf(getLhs()).getRank()
                         << " and " << typeOf(getRhs()).getRank()
                         << ", expected 2 or more";
  auto rule =
      instantiateRule(texts[2 * getTransposeLhs() + getTransposeRhs()], *this);
  if (failed(rule))
    return failure();
  // A contracted size of 1 against k is not a broadcast.
  int64_t k = typeOf(getLhs()).getShape().rbegin()[getTransposeLhs() ? 1 : 0];
  int64_t otherK =
      typeOf(getRhs()).getShape().rbegin()[getTransposeRhs() ? 0 : 1];
  if (k != otherK)
    return emitOpError() << "contracted sizes are " << k << " and " << otherK;
  return rule;
}

FailureOr<ShardingRule> ConvolutionOp::buildShardingRule() {
  int64_t rank = typeOf(getInput()).getRank();
  if (rank < 3)
    return emitOpError() << "input has rank " << rank << ", expected 3 or more";
  if (failed(checkRank(*this, getFilter(), rank, "the filter")) ||
      failed(checkRank(*this, getResult(), rank, "the result")))
    return failure();
  RuleBuilder builder(*this);
  builder.same(0, 0, 0, 0);
  bool grouped = getGroups() != 1;
  int out = builder.factor(grouped ? FactorKind::Whole : FactorKind::Parallel);
  builder.operand(1, 0, out);
  builder.result(0, 1, out);
  int in = builder.factor(grouped ? FactorKind::Whole : FactorKind::Parallel);
  builder.operand(0, 1, in);
  builder.operand(1, 1, grouped ? builder.factor(FactorKind::Whole) : in);
  for (int64_t dim = 2; dim < rank; ++dim) {
    builder.operand(0, dim, builder.factor(FactorKind::Whole));
    builder.operand(1, dim, builder.factor(FactorKind::Whole));
    builder.result(0, dim, builder.factor(FactorKind::Whole));
  }
  builder.rule.linear = {0b01u, 0b10u};
  return builder.build();
}

FailureOr<ShardingRule> AttentionOp::buildShardingRule() {
  for (Value value : {getQuery(), getKey(), getValue(), getResult()})
    if (failed(checkRank(*this, value, 4, "a tensor")))
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
  auto place = [&](unsigned operand,
                   std::initializer_list<SmallVector<int, 2>> dims) {
    for (auto [dim, factors] : llvm::enumerate(dims))
      builder.operand(operand, dim, factors);
  };
  place(0, {{b}, {hk, g}, {s}, {d}});
  place(1, {{b}, {hk}, {t}, {d}});
  place(2, {{b}, {hk}, {t}, {e}});
  for (auto [dim, factors] : llvm::enumerate(
           std::initializer_list<SmallVector<int, 2>>{{b}, {hk, g}, {s}, {e}}))
    builder.result(0, dim, factors);
  builder.result(1, 0, b);
  builder.result(1, 1, ArrayRef<int>{hk, g});
  builder.result(1, 2, s);
  if (Value mask = getMask()) {
    SmallVector<SmallVector<int, 2>> dims{{b}, {hk, g}, {s}, {t}};
    int64_t rank = typeOf(mask).getRank();
    if (rank > 4)
      return emitOpError() << "the mask has rank " << rank
                           << ", expected at most 4";
    for (int64_t dim = 0; dim < rank; ++dim)
      builder.operand(3, dim, dims[4 - rank + dim]);
  }
  return builder.build();
}

//===----------------------------------------------------------------------===//
// Reductions, softmax, norms
//===----------------------------------------------------------------------===//

static FailureOr<ShardingRule> reduceRule(Operation *op, ArrayRef<int64_t> dims,
                                          bool keep, Kind reduction,
                                          FactorKind reduced) {
  Value input = op->getOperand(0), result = op->getResult(0);
  int64_t rank = typeOf(input).getRank();
  for (auto [index, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= rank || (index && dims[index - 1] >= dim))
      return op->emitOpError() << "dims are not distinct ascending dimensions "
                                  "of a tensor of rank "
                               << rank;
  int64_t left = keep ? rank : rank - static_cast<int64_t>(dims.size());
  if (failed(checkRank(op, result, left, "the result")))
    return failure();
  RuleBuilder builder(op);
  int64_t to = 0;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (!llvm::is_contained(dims, dim)) {
      builder.same(0, dim, 0, to++);
      continue;
    }
    builder.operand(0, dim, builder.factor(reduced, reduction));
    to += keep;
  }
  if (reduction == Kind::PSum && reduced == FactorKind::Parallel)
    builder.rule.linear = {1u};
  builder.rule.passesMax = reduction == Kind::PMax;
  builder.rule.passesMin = reduction == Kind::PMin;
  return builder.build();
}

FailureOr<ShardingRule> ReduceSumOp::buildShardingRule() {
  return reduceRule(*this, getDims(), getKeep(), Kind::PSum,
                    FactorKind::Parallel);
}

/// A maximum on a gradient path is whole: its gradient needs the whole row.
/// Integers, booleans and values behind a stop_gradient have no gradient.
static FactorKind extremumFactor(Value input) {
  return isFloat(input) && !hasNoCotangent(input) ? FactorKind::Whole
                                                  : FactorKind::Parallel;
}
FailureOr<ShardingRule> ReduceMaxOp::buildShardingRule() {
  return reduceRule(*this, getDims(), getKeep(), Kind::PMax,
                    extremumFactor(getInput()));
}
FailureOr<ShardingRule> ReduceMinOp::buildShardingRule() {
  return reduceRule(*this, getDims(), getKeep(), Kind::PMin,
                    extremumFactor(getInput()));
}
FailureOr<ShardingRule> ReduceProdOp::buildShardingRule() {
  return reduceRule(*this, getDims(), getKeep(), Kind::PSum, FactorKind::Whole);
}

/// Indices of partial maxima have no maximum that means anything.
static FailureOr<ShardingRule> argRule(Operation *op, int64_t dim) {
  return reduceRule(op, {dim}, false, Kind::PSum, FactorKind::Whole);
}
FailureOr<ShardingRule> ArgMaxOp::buildShardingRule() {
  return argRule(*this, getDim());
}
FailureOr<ShardingRule> ArgMinOp::buildShardingRule() {
  return argRule(*this, getDim());
}

FailureOr<ShardingRule> TopKOp::buildShardingRule() {
  int64_t rank = typeOf(getInput()).getRank(), dim = getDim();
  if (failed(checkDim(*this, getInput(), dim)) ||
      failed(checkRank(*this, getValues(), rank, "the first result")) ||
      failed(checkRank(*this, getIndices(), rank, "the second result")))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t d = 0; d < rank; ++d) {
    int factor =
        builder.factor(d == dim ? FactorKind::Whole : FactorKind::Parallel);
    builder.operand(0, d, factor);
    int taken = d == dim ? builder.factor(FactorKind::Whole) : factor;
    builder.result(0, d, taken);
    builder.result(1, d, taken);
  }
  return builder.build();
}

/// Result like operand 0; `dim` is whole.
static FailureOr<ShardingRule> alongRule(Operation *op, int64_t dim,
                                         uint32_t linear) {
  Value input = op->getOperand(0);
  if (failed(checkDim(op, input, dim)) ||
      failed(checkRank(op, op->getResult(0), typeOf(input).getRank(),
                       "the result")))
    return failure();
  RuleBuilder builder(op);
  for (int64_t d = 0, rank = typeOf(input).getRank(); d < rank; ++d)
    builder.same(0, d, 0, d,
                 d == dim ? FactorKind::Whole : FactorKind::Parallel);
  if (linear)
    builder.rule.linear = {linear};
  return builder.build();
}

FailureOr<ShardingRule> CumsumOp::buildShardingRule() {
  return alongRule(*this, getDim(), 1u);
}
FailureOr<ShardingRule> SoftmaxOp::buildShardingRule() {
  return alongRule(*this, getDim(), 0);
}
FailureOr<ShardingRule> LogSoftmaxOp::buildShardingRule() {
  return alongRule(*this, getDim(), 0);
}

FailureOr<ShardingRule> LayerNormOp::buildShardingRule() {
  int64_t rank = typeOf(getInput()).getRank(),
          normed = typeOf(getScale()).getRank();
  if (normed > rank || normed < 1)
    return emitOpError() << "scale of rank " << normed
                         << " does not fit an input of rank " << rank;
  if (getBias() &&
      typeOf(getBias()).getShape() != typeOf(getScale()).getShape())
    return emitOpError() << "scale and bias have different shapes";
  if (failed(checkRank(*this, getResult(), rank, "the result")))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t dim = 0; dim < rank; ++dim) {
    bool whole = dim >= rank - normed;
    int factor =
        builder.factor(whole ? FactorKind::Whole : FactorKind::Parallel);
    builder.operand(0, dim, factor);
    builder.result(0, dim, factor);
    for (unsigned operand = 1; whole && operand < getNumOperands(); ++operand)
      builder.operand(operand, dim - (rank - normed), factor);
  }
  return builder.build();
}

FailureOr<ShardingRule> RotaryOp::buildShardingRule() {
  int64_t rank = typeOf(getInput()).getRank();
  if (rank < 2)
    return emitOpError() << "input has rank " << rank << ", expected 2 or more";
  if (failed(checkRank(*this, getResult(), rank, "the result")))
    return failure();
  RuleBuilder builder(*this);
  for (int64_t dim = 0; dim + 1 < rank; ++dim) {
    int factor = builder.factor();
    builder.operand(0, dim, factor);
    builder.result(0, dim, factor);
    for (unsigned table = 1; table < 3; ++table) {
      int64_t tableDim = dim - (rank - typeOf(getOperand(table)).getRank());
      if (tableDim >= 0)
        builder.operand(table, tableDim, factor);
    }
  }
  builder.same(0, rank - 1, 0, rank - 1, FactorKind::Whole);
  int half = builder.factor(FactorKind::Whole);
  for (unsigned table = 1; table < 3; ++table) {
    int64_t tableRank = typeOf(getOperand(table)).getRank();
    if (tableRank < 1 || tableRank > rank)
      return emitOpError() << "cos and sin have rank " << tableRank
                           << ", expected 1 to " << rank;
    builder.operand(table, tableRank - 1, half);
  }
  builder.rule.linear = {1u};
  return builder.build();
}
