// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/OpMaker.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::training;

RankedTensorType OpMaker::broadcast(ArrayRef<Value> operands, Type element) {
  SmallVector<int64_t> shape;
  for (Value operand : operands) {
    ArrayRef<int64_t> mine = typeOf(operand).getShape();
    if (mine.size() > shape.size())
      shape.insert(shape.begin(), mine.size() - shape.size(), 1);
    for (size_t i = 0; i < mine.size(); ++i) {
      int64_t &extent = shape[shape.size() - 1 - i];
      extent = extent == 1 ? mine[mine.size() - 1 - i] : extent;
    }
  }
  Attribute encoding = invariant;
  if (invariant)
    for (Value operand : operands)
      if (!shape.empty() &&
          typeOf(operand).getShape() == ArrayRef<int64_t>(shape)) {
        encoding = typeOf(operand).getEncoding();
        break;
      }
  return RankedTensorType::get(shape, element, encoding);
}

Value OpMaker::compare(Compare predicate, Value a, Value b) {
  return CompareOp::create(builder, loc, broadcast({a, b}, builder.getI1Type()),
                           predicate, a, b);
}

Value OpMaker::select(Value condition, Value a, Value b) {
  return SelectOp::create(
      builder, loc, broadcast({a, b, condition}, typeOf(a).getElementType()),
      condition, a, b);
}

Value OpMaker::convert(Value x, Type element) {
  RankedTensorType type = typeOf(x);
  if (type.getElementType() == element)
    return x;
  return ConvertOp::create(
      builder, loc,
      RankedTensorType::get(type.getShape(), element, type.getEncoding()), x);
}

Value OpMaker::reshape(Value x, ArrayRef<int64_t> shape) {
  if (typeOf(x).getShape() == shape)
    return x;
  return ReshapeOp::create(
      builder, loc, RankedTensorType::get(shape, typeOf(x).getElementType()),
      x);
}

Value OpMaker::iota(ArrayRef<int64_t> shape, int64_t dim, Type element) {
  return IotaOp::create(builder, loc, RankedTensorType::get(shape, element),
                        dim);
}

/// A constant's attribute has no layout, its result has.
static Value constant(OpMaker &make, Type element, Attribute value) {
  auto type = RankedTensorType::get({}, element);
  auto constant = ConstantOp::create(make.builder, make.loc,
                                     DenseElementsAttr::get(type, value));
  if (make.invariant)
    constant.getResult().setType(withLayout(type, make.invariant));
  return constant;
}

Value OpMaker::scalar(Type element, double value) {
  return constant(*this, element, builder.getFloatAttr(element, value));
}

Value OpMaker::integer(Type element, int64_t value) {
  return constant(*this, element, builder.getIntegerAttr(element, value));
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

func::FuncOp training::mainOf(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (main && !main.isExternal() && main.getBody().hasOneBlock())
    return main;
  module.emitError() << "there is no func.func @main of one block to train";
  return {};
}

static StringRef nameIn(DictionaryAttr attrs) {
  auto name = attrs ? attrs.getAs<StringAttr>(spmd::names::name) : StringAttr();
  return name ? name.getValue() : StringRef();
}

StringRef training::argumentName(func::FuncOp function, unsigned index) {
  return nameIn(function.getArgAttrDict(index));
}
StringRef training::resultName(func::FuncOp function, unsigned index) {
  return nameIn(function.getResultAttrDict(index));
}

BlockArgument training::findArgument(func::FuncOp function, StringRef name) {
  for (BlockArgument argument : function.getArguments())
    if (argumentName(function, argument.getArgNumber()) == name)
      return argument;
  return {};
}

BlockArgument training::argument(func::FuncOp function, StringRef name,
                                 RankedTensorType type) {
  if (BlockArgument known = findArgument(function, name))
    return known;
  Builder builder(function.getContext());
  unsigned index = function.getNumArguments();
  auto attrs = builder.getDictionaryAttr(
      builder.getNamedAttr(spmd::names::name, builder.getStringAttr(name)));
  (void)function.insertArgument(index, type, attrs, function.getLoc());
  return function.getArgument(index);
}

Value training::scalarArgument(OpMaker &make, func::FuncOp function,
                               StringRef name, Type element) {
  auto type = RankedTensorType::get({}, element, make.invariant);
  Value value = argument(function, name, type);
  return isa<FloatType>(element) ? make.unary<StopGradientOp>(value) : value;
}

void training::setResults(func::FuncOp function, ArrayRef<Value> values,
                          ArrayRef<DictionaryAttr> attrs) {
  Operation *terminator = function.getBody().front().getTerminator();
  terminator->setOperands(values);
  auto types =
      llvm::map_to_vector(values, [](Value value) { return value.getType(); });
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.getArgumentTypes(), types));
  function.setAllResultAttrs(attrs);
}
