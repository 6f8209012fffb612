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

static Value addressOf(KernelCode &code, Type type, Value base, Value at) {
  return LLVM::GEPOp::create(code.builder, code.loc, base.getType(), type, base,
                             ValueRange{at});
}

Value MatrixTile::loadStored(Value base, Value at) {
  return LLVM::LoadOp::create(code.builder, code.loc, stored(),
                              addressOf(code, stored(), base, at));
}

Value MatrixTile::loadRounded(Value base, Type from, Value at) {
  return from == element ? loadStored(base, at)
                         : round(code.load(base, from, at));
}

void MatrixTile::store(Value base, Value at, Value number) {
  LLVM::StoreOp::create(code.builder, code.loc, number,
                        addressOf(code, stored(), base, at));
}

Value MatrixTile::zero() {
  return arith::ConstantOp::create(code.builder, code.loc,
                                   code.builder.getZeroAttr(stored()));
}

Value MatrixTile::round(Value value) {
  if (element.isF16())
    return arith::TruncFOp::create(code.builder, code.loc, element, value);
  return element.isBF16() ? roundToBF16Bits(code.emit, value) : value;
}

Value MatrixTile::pack(Value low, Value high) {
  OpBuilder &builder = code.builder;
  Type i32 = builder.getI32Type();
  if (element.isBF16()) {
    Value sixteen = arith::ConstantIntOp::create(builder, code.loc, i32, 16);
    Value upper = arith::ShLIOp::create(
        builder, code.loc, arith::ExtUIOp::create(builder, code.loc, i32, high),
        sixteen);
    return arith::OrIOp::create(
        builder, code.loc, arith::ExtUIOp::create(builder, code.loc, i32, low),
        upper);
  }
  Value pair =
      LLVM::PoisonOp::create(builder, code.loc, VectorType::get({2}, element));
  for (auto [position, value] : llvm::enumerate(ArrayRef<Value>{low, high})) {
    Value at = arith::ConstantIntOp::create(builder, code.loc, i32, position);
    pair = LLVM::InsertElementOp::create(builder, code.loc, pair, value, at);
  }
  return pair;
}

Value MatrixTile::asTf32(Value value) {
  return NVVM::ConvertFloatToTF32Op::create(
      code.builder, code.loc, code.builder.getI32Type(), value,
      NVVM::FPRoundingMode::RNA, NVVM::SaturationMode::NONE, /*relu=*/false);
}

MatrixTile::Fragment MatrixTile::fragmentA(ArrayRef<Value> numbers) {
  if (element.isF32())
    return {asTf32(numbers[0]), asTf32(numbers[2]), asTf32(numbers[1]),
            asTf32(numbers[3])};
  return {pack(numbers[0], numbers[1]), pack(numbers[2], numbers[3])};
}

MatrixTile::Fragment MatrixTile::fragmentB(ArrayRef<Value> numbers) {
  if (element.isF32())
    return {asTf32(numbers[0]), asTf32(numbers[1])};
  return {pack(numbers[0], numbers[1])};
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
