// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cuda/MatrixTile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mtp;

Type MatrixTile::computeType(Type element, int capability,
                             StringRef precision) {
  Builder builder(element.getContext());
  Type type = element;
  if (element.isF32())
    type = precision == "f16"    ? Type(builder.getF16Type())
           : precision == "bf16" ? Type(builder.getBF16Type())
           : precision == "tf32" ? Type(builder.getF32Type())
                                 : Type();
  if (!type || type.isF64() || (capability < 80 && !type.isF16()))
    return {};
  return type;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value MatrixTile::zero() {
  return arith::ConstantOp::create(code.builder, code.loc,
                                   code.builder.getZeroAttr(stored()));
}

Value MatrixTile::round(Value value) {
  OpBuilder &builder = code.builder;
  if (element.isF16())
    return arith::TruncFOp::create(builder, code.loc, element, value);
  if (element.isBF16())
    return roundToBF16Bits(code.emit, value);
  Value bits = NVVM::ConvertFloatToTF32Op::create(
      builder, code.loc, builder.getI32Type(), value, NVVM::FPRoundingMode::RNA,
      NVVM::SaturationMode::NONE, /*relu=*/false);
  return arith::BitcastOp::create(builder, code.loc, element, bits);
}

Value MatrixTile::roundTrip(Value value) {
  OpBuilder &builder = code.builder;
  Value number = round(value);
  if (element.isF16())
    return arith::ExtFOp::create(builder, code.loc, builder.getF32Type(),
                                 number);
  if (element.isF32())
    return number;
  Type i32 = builder.getI32Type();
  Value bits = arith::ShLIOp::create(
      builder, code.loc, arith::ExtUIOp::create(builder, code.loc, i32, number),
      arith::ConstantIntOp::create(builder, code.loc, i32, 16));
  return arith::BitcastOp::create(builder, code.loc, builder.getF32Type(),
                                  bits);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Value addressOf(KernelCode &code, Type type, Value base, Value at) {
  return LLVM::GEPOp::create(code.builder, code.loc, base.getType(), type, base,
                             ValueRange{at});
}

static unsigned bytesOf(Type type, int64_t count) {
  return type.getIntOrFloatBitWidth() / 8 * count;
}

Value MatrixTile::loadStored(Value base, Value at) {
  return LLVM::LoadOp::create(code.builder, code.loc, stored(),
                              addressOf(code, stored(), base, at));
}

Value MatrixTile::loadVector(Value base, Type type, Value at, int64_t count) {
  return LLVM::LoadOp::create(
      code.builder, code.loc, VectorType::get({count}, type),
      addressOf(code, type, base, at), bytesOf(type, count));
}

SmallVector<Value> MatrixTile::elementsOf(Value vector) {
  SmallVector<Value> elements;
  for (int64_t i = 0; i < cast<VectorType>(vector.getType()).getNumElements();
       ++i) {
    Value at = arith::ConstantIntOp::create(code.builder, code.loc,
                                            code.builder.getI32Type(), i);
    elements.push_back(
        LLVM::ExtractElementOp::create(code.builder, code.loc, vector, at));
  }
  return elements;
}

Value MatrixTile::vectorOf(ArrayRef<Value> elements) {
  auto type =
      VectorType::get({int64_t(elements.size())}, elements[0].getType());
  Value vector = LLVM::PoisonOp::create(code.builder, code.loc, type);
  for (auto [i, element] : llvm::enumerate(elements)) {
    Value at = arith::ConstantIntOp::create(code.builder, code.loc,
                                            code.builder.getI32Type(), i);
    vector = LLVM::InsertElementOp::create(code.builder, code.loc, vector,
                                           element, at);
  }
  return vector;
}

SmallVector<Value> MatrixTile::loadRounded(Value base, Type from, Value at,
                                           int64_t count) {
  bool isExact = from == element && !element.isF32();
  if (count == 1)
    return {isExact ? loadStored(base, at) : round(code.load(base, from, at))};
  auto numbers =
      elementsOf(loadVector(base, RegionEmitter::storageType(from), at, count));
  if (!isExact)
    for (Value &number : numbers)
      number = round(number);
  return numbers;
}

void MatrixTile::store(Value base, Value at, ArrayRef<Value> numbers) {
  Value value = numbers.size() == 1 ? numbers[0] : vectorOf(numbers);
  LLVM::StoreOp::create(code.builder, code.loc, value,
                        addressOf(code, stored(), base, at),
                        bytesOf(stored(), numbers.size()));
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

Value MatrixTile::pack(Value low, Value high) {
  OpBuilder &builder = code.builder;
  Type i32 = builder.getI32Type();
  if (!element.isBF16())
    return vectorOf({low, high});
  Value sixteen = arith::ConstantIntOp::create(builder, code.loc, i32, 16);
  Value upper = arith::ShLIOp::create(
      builder, code.loc, arith::ExtUIOp::create(builder, code.loc, i32, high),
      sixteen);
  return arith::OrIOp::create(
      builder, code.loc, arith::ExtUIOp::create(builder, code.loc, i32, low),
      upper);
}

/// Of an f32, as products take it.
Value MatrixTile::bitsOf(Value number) {
  return arith::BitcastOp::create(code.builder, code.loc,
                                  code.builder.getI32Type(), number);
}

MatrixTile::Fragment MatrixTile::fragmentA(ArrayRef<Value> numbers) {
  if (element.isF32())
    return {bitsOf(numbers[0]), bitsOf(numbers[2]), bitsOf(numbers[1]),
            bitsOf(numbers[3])};
  return {pack(numbers[0], numbers[1]), pack(numbers[2], numbers[3])};
}

MatrixTile::Fragment MatrixTile::fragmentB(ArrayRef<Value> numbers) {
  if (element.isF32())
    return {bitsOf(numbers[0]), bitsOf(numbers[1])};
  return {pack(numbers[0], numbers[1])};
}

MatrixTile::Fragment MatrixTile::loadPair(Value base, Value at) {
  if (element.isF32())
    return fragmentB(elementsOf(loadVector(base, element, at, 2)));
  if (element.isF16())
    return {loadVector(base, element, at, 2)};
  return {LLVM::LoadOp::create(code.builder, code.loc,
                               code.builder.getI32Type(),
                               addressOf(code, stored(), base, at), 4)};
}

MatrixTile::Fragment MatrixTile::multiply(const Fragment &a, const Fragment &b,
                                          const Fragment &c) {
  OpBuilder &builder = code.builder;
  NVVM::MMATypes type = element.isF16()    ? NVVM::MMATypes::f16
                        : element.isBF16() ? NVVM::MMATypes::bf16
                                           : NVVM::MMATypes::tf32;
  auto sums = LLVM::LLVMStructType::getLiteral(
      builder.getContext(), SmallVector<Type>(4, builder.getF32Type()));
  Value product = NVVM::MmaOp::create(
      builder, code.loc, sums, a, b, c,
      ArrayRef<int64_t>{kRows, kColumns, kDepth}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  Fragment result;
  for (int64_t i = 0; i < 4; ++i)
    result.push_back(
        LLVM::ExtractValueOp::create(builder, code.loc, product, i));
  return result;
}
