// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Emit.cpp - makes mtp ops with the types that follow ----------------===//

#include "compiler/frontend/onnx/import/Emit.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::onnx;

Type mtp::onnx::elementType(MLIRContext *context, DType type) {
  switch (type) {
  case DType::F64:
    return Float64Type::get(context);
  case DType::F32:
    return Float32Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::Bool:
    return IntegerType::get(context, 1);
  case DType::I64:
    return IntegerType::get(context, 64);
  case DType::I32:
    return IntegerType::get(context, 32);
  case DType::I16:
    return IntegerType::get(context, 16);
  case DType::I8:
    return IntegerType::get(context, 8);
  case DType::U64:
    return IntegerType::get(context, 64, IntegerType::Unsigned);
  case DType::U32:
    return IntegerType::get(context, 32, IntegerType::Unsigned);
  case DType::U16:
    return IntegerType::get(context, 16, IntegerType::Unsigned);
  case DType::U8:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  }
  return {};
}

DType mtp::onnx::dtypeOf(Type element) {
  if (element.isF64())
    return DType::F64;
  if (element.isF32())
    return DType::F32;
  if (element.isF16())
    return DType::F16;
  if (element.isBF16())
    return DType::BF16;
  auto integer = cast<IntegerType>(element);
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return DType::Bool;
  case 8:
    return isUnsigned ? DType::U8 : DType::I8;
  case 16:
    return isUnsigned ? DType::U16 : DType::I16;
  case 32:
    return isUnsigned ? DType::U32 : DType::I32;
  default:
    return isUnsigned ? DType::U64 : DType::I64;
  }
}

Shape mtp::onnx::broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  Shape shape;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    int64_t x = i < a.size() ? a.rbegin()[i] : 1,
            y = i < b.size() ? b.rbegin()[i] : 1;
    if (x != y && x != 1 && y != 1)
      throw ShapeMismatch{"shapes " + text(Shape(a.begin(), a.end())) +
                          " and " + text(Shape(b.begin(), b.end())) +
                          " do not broadcast"};
    shape.push_back(x == 1 ? y : x);
  }
  std::reverse(shape.begin(), shape.end());
  return shape;
}

Value Emit::compare(Compare predicate, Value a, Value b) {
  return CompareOp::create(
      *builder, loc,
      type(broadcastShapes(shapeOf(a), shapeOf(b)), builder->getI1Type()),
      predicate, a, b);
}

Value Emit::select(Value condition, Value a, Value b) {
  Shape shape = broadcastShapes(shapeOf(condition),
                                broadcastShapes(shapeOf(a), shapeOf(b)));
  return SelectOp::create(*builder, loc, type(shape, elementOf(a)), condition,
                          a, b);
}

Value Emit::convert(Value x, Type element) {
  return elementOf(x) == element
             ? x
             : ConvertOp::create(*builder, loc, type(shapeOf(x), element), x);
}

Value Emit::splat(ArrayRef<int64_t> shape, Type element, double value) {
  auto tensor = type(shape, element);
  if (auto floating = dyn_cast<FloatType>(element)) {
    APFloat number(value);
    bool lost;
    number.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &lost);
    return ConstantOp::create(*builder, loc,
                              DenseElementsAttr::get(tensor, number));
  }
  APInt number(element.getIntOrFloatBitWidth(),
               static_cast<uint64_t>(static_cast<int64_t>(value)), false, true);
  return ConstantOp::create(*builder, loc,
                            DenseElementsAttr::get(tensor, number));
}

Value Emit::scalar(Type element, double value) {
  return splat({}, element, value);
}

Value Emit::reshape(Value x, ArrayRef<int64_t> shape) {
  return shapeOf(x) == shape
             ? x
             : ReshapeOp::create(*builder, loc, type(shape, elementOf(x)), x);
}

Value Emit::transpose(Value x, ArrayRef<int64_t> perm) {
  Shape shape;
  for (int64_t dim : perm)
    shape.push_back(shapeOf(x)[dim]);
  if (llvm::equal(perm, llvm::seq<int64_t>(0, perm.size())))
    return x;
  return TransposeOp::create(*builder, loc, type(shape, elementOf(x)), x, perm);
}

Value Emit::broadcast(Value x, ArrayRef<int64_t> shape) {
  return shapeOf(x) == shape
             ? x
             : BroadcastOp::create(*builder, loc, type(shape, elementOf(x)), x);
}

Value Emit::slice(Value x, int64_t dim, int64_t start, int64_t size,
                  int64_t step) {
  Shape shape(shapeOf(x).begin(), shapeOf(x).end());
  if (start == 0 && step == 1 && size == shape[dim])
    return x;
  shape[dim] = size;
  return StridedSliceOp::create(*builder, loc, type(shape, elementOf(x)), x,
                                dim, start, step);
}

Value Emit::concat(int64_t dim, ArrayRef<Value> values) {
  if (values.size() == 1)
    return values[0];
  Shape shape(shapeOf(values[0]).begin(), shapeOf(values[0]).end());
  shape[dim] = 0;
  for (Value value : values)
    shape[dim] += shapeOf(value)[dim];
  return ConcatOp::create(*builder, loc, type(shape, elementOf(values[0])), dim,
                          ValueRange(values));
}

Value Emit::gather(Value data, Value indices, int64_t dim) {
  ArrayRef<int64_t> from = shapeOf(data), index = shapeOf(indices);
  Shape shape(from.begin(), from.begin() + dim);
  shape.insert(shape.end(), index.begin(), index.end());
  shape.insert(shape.end(), from.begin() + dim + 1, from.end());
  return GatherOp::create(*builder, loc, type(shape, elementOf(data)), data,
                          indices, dim);
}

Value Emit::iota(ArrayRef<int64_t> shape, int64_t dim, Type element) {
  return IotaOp::create(*builder, loc, type(shape, element), dim);
}

Value Emit::matmul(Value a, Value b, bool transposeA, bool transposeB) {
  ArrayRef<int64_t> x = shapeOf(a), y = shapeOf(b);
  int64_t m = x.rbegin()[transposeA ? 0 : 1],
          k = x.rbegin()[transposeA ? 1 : 0];
  int64_t otherK = y.rbegin()[transposeB ? 0 : 1],
          n = y.rbegin()[transposeB ? 1 : 0];
  if (k != otherK)
    throw ShapeMismatch{"contracted sizes " + std::to_string(k) + " and " +
                        std::to_string(otherK) + " differ"};
  Shape shape = broadcastShapes(x.drop_back(2), y.drop_back(2));
  shape.insert(shape.end(), {m, n});
  UnitAttr unit = builder->getUnitAttr();
  return MatMulOp::create(*builder, loc, type(shape, elementOf(a)), a, b,
                          transposeA ? unit : UnitAttr(),
                          transposeB ? unit : UnitAttr());
}

Value Emit::mean(Value x, ArrayRef<int64_t> dims, bool keep) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= shapeOf(x)[dim];
  Value sum = reduce<ReduceSumOp>(x, dims, keep);
  if (isa<FloatType>(elementOf(x)))
    return binary<MulOp>(
        sum, scalar(elementOf(x), 1.0 / static_cast<double>(count)));
  return binary<DivOp>(sum, scalar(elementOf(x), static_cast<double>(count)));
}

Value Emit::unsqueeze(Value x, ArrayRef<int64_t> dims) {
  Shape shape(shapeOf(x).begin(), shapeOf(x).end());
  for (int64_t dim : dims)
    shape.insert(shape.begin() + dim, 1);
  return reshape(x, shape);
}
