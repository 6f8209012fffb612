// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Localize.cpp - ops whose values are global positions ---------------===//

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {
/// Emits small integer arithmetic on tensors of one type.
class Arithmetic {
public:
  Arithmetic(Localizer &localizer, Location loc)
      : builder(localizer.builder()), loc(loc) {}

  Value splat(RankedTensorType type, int64_t value) {
    Type element = type.getElementType();
    Attribute attr = isa<FloatType>(element)
                         ? Attribute(builder.getFloatAttr(element, value))
                         : Attribute(builder.getIntegerAttr(element, value));
    return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, attr));
  }
  /// A scalar of rank values as a scalar of `element`.
  Value scalar(Value value, Type element) {
    auto type = RankedTensorType::get({}, element);
    return value.getType() == type
               ? value
               : ConvertOp::create(builder, loc, type, value);
  }
  template <typename Op> Value binary(Value a, Value b) {
    return Op::create(builder, loc, a.getType(), a, b);
  }
  Value compare(Compare predicate, Value a, Value b) {
    auto type = cast<RankedTensorType>(a.getType());
    return CompareOp::create(
        builder, loc,
        RankedTensorType::get(type.getShape(), builder.getI1Type()), predicate,
        a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return SelectOp::create(builder, loc, a.getType(), condition, a, b);
  }

  OpBuilder &builder;
  Location loc;
};
} // namespace

SmallVector<Value> ParameterOp::localize(Localizer &localizer, ValueRange,
                                         TypeRange) {
  return {localizer.loadBlock(cast<OpResult>(getResult()), getSourceAttr(),
                              getRecipe())};
}

SmallVector<Value> StateOp::localize(Localizer &localizer, ValueRange,
                                     TypeRange) {
  return {localizer.loadBlock(cast<OpResult>(getResult()), getSourceAttr(),
                              getRecipe(), getNameAttr())};
}

SmallVector<Value> StoreOp::localize(Localizer &localizer, ValueRange operands,
                                     TypeRange) {
  localizer.storeBlock(getLoc(), operands[0], operands[1]);
  return {};
}

SmallVector<Value> ConstantOp::localize(Localizer &localizer, ValueRange,
                                        TypeRange results) {
  ElementsAttr value = getValue();
  if (auto splat = dyn_cast<SplatElementsAttr>(value))
    value = splat.resizeSplat(cast<ShapedType>(results[0]));
  return {ConstantOp::create(localizer.builder(), getLoc(), value)};
}

SmallVector<Value> IotaOp::localize(Localizer &localizer, ValueRange,
                                    TypeRange results) {
  Arithmetic make(localizer, getLoc());
  Value local = IotaOp::create(make.builder, getLoc(), results[0], getDim());
  auto result = cast<OpResult>(getResult());
  if (!localizer.isSharded(result, getDim()))
    return {local};
  Type element = cast<RankedTensorType>(results[0]).getElementType();
  return {make.binary<AddOp>(
      local, make.scalar(localizer.blockOffset(result, getDim()), element))};
}

/// Rows of a sharded table: a rank looks up the rows it holds and gives zero
/// for the others; an index outside of the whole table stays outside of the
/// block.
SmallVector<Value> GatherOp::localize(Localizer &localizer, ValueRange operands,
                                      TypeRange results) {
  Arithmetic make(localizer, getLoc());
  OpOperand &table = (*this)->getOpOperand(0);
  int64_t dim = getDim();
  if (!localizer.isSharded(table, dim))
    return {GatherOp::create(make.builder, getLoc(), results[0], operands[0],
                             operands[1], dim)};
  auto type = cast<RankedTensorType>(operands[1].getType());
  int64_t rows = cast<RankedTensorType>(getData().getType()).getDimSize(dim);
  int64_t held = cast<RankedTensorType>(operands[0].getType()).getDimSize(dim);
  Value zero = make.splat(type, 0), all = make.splat(type, rows);
  Value id = make.select(make.compare(Compare::lt, operands[1], zero),
                         make.binary<AddOp>(operands[1], all), operands[1]);
  Value inTable = make.binary<AndOp>(make.compare(Compare::ge, id, zero),
                                     make.compare(Compare::lt, id, all));
  Value local =
      make.binary<SubOp>(id, make.scalar(localizer.blockOffset(table, dim),
                                         type.getElementType()));
  Value valid =
      make.scalar(localizer.blockValid(table, dim), type.getElementType());
  Value held01 = make.binary<AndOp>(make.compare(Compare::ge, local, zero),
                                    make.compare(Compare::lt, local, valid));
  Value safe = make.select(inTable, make.select(held01, local, zero),
                           make.splat(type, held));
  Value rowsOut = GatherOp::create(make.builder, getLoc(), results[0],
                                   operands[0], safe, dim);
  // The mask covers the index dimensions of the result.
  auto resultType = cast<RankedTensorType>(results[0]);
  SmallVector<int64_t> maskShape(resultType.getRank(), 1);
  for (int64_t d = 0; d < type.getRank(); ++d)
    maskShape[dim + d] = type.getDimSize(d);
  Value mask = ReshapeOp::create(
      make.builder, getLoc(),
      RankedTensorType::get(maskShape, make.builder.getI1Type()), held01);
  return {make.select(mask, rowsOut, make.splat(resultType, 0))};
}

/// A block of queries starts where its rank's block starts.
SmallVector<Value> AttentionOp::localize(Localizer &localizer,
                                         ValueRange operands,
                                         TypeRange results) {
  OpBuilder &builder = localizer.builder();
  OpOperand &query = (*this)->getOpOperand(0);
  Value mask = getMask() ? operands[3] : Value();
  Value start = getQueryStart() ? operands.back() : Value();
  if (getCausal() && localizer.isSharded(query, 2)) {
    Value offset = localizer.blockOffset(query, 2);
    start = start ? Value(AddOp::create(builder, getLoc(), start.getType(),
                                        start, offset))
                  : offset;
  }
  auto local = AttentionOp::create(
      builder, getLoc(), results, operands[0], operands[1], operands[2], mask,
      start, getScaleAttr(), getCausalAttr(), getCausalOffsetAttr(),
      getSoftcapAttr(), getMaskedRowZeroAttr(), getMaskedRowUniformAttr());
  return SmallVector<Value>(local->getResults());
}
