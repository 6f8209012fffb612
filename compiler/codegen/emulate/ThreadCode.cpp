// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emulate/ThreadCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cstddef>

using namespace mlir;
using namespace mtp;

Value ThreadCode::number(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, builder.getI64Type(),
                                      value);
}

Value ThreadCode::at(Value base, int64_t offset) {
  return LLVM::GEPOp::create(
      builder, loc, LLVM::LLVMPointerType::get(builder.getContext()),
      builder.getI8Type(), base,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

/// Nothing that a kernel writes is a field of the thread.
Value ThreadCode::field(int64_t offset, Type type) {
  auto load = LLVM::LoadOp::create(builder, loc, type,
                                   at(function.getArgument(0), offset));
  load.setInvariant(true);
  return load;
}

Value ThreadCode::indexField(int64_t offset) {
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    field(offset, builder.getI64Type()));
}

Value ThreadCode::shared(int64_t offset) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  return at(field(offsetof(MtpEmulatedThread, shared), pointer), offset);
}

void ThreadCode::call(int64_t offset, ValueRange arguments) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                  SmallVector<Type>(arguments.getTypes()));
  SmallVector<Value> all{field(offset, pointer)};
  llvm::append_range(all, arguments);
  LLVM::CallOp::create(builder, loc, type, all);
}

void ThreadCode::access(int64_t site, Value address) {
  call(offsetof(MtpEmulatedThread, access),
       {function.getArgument(0), number(site), address});
}

void ThreadCode::barrier(int64_t site) {
  call(offsetof(MtpEmulatedThread, barrier),
       {function.getArgument(0), number(site)});
}

/// Memory of the thread that has the operands.
Value ThreadCode::keep(ValueRange operands) {
  Value memory;
  {
    // In the entry: a loop must not take stack again and again.
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    memory = LLVM::AllocaOp::create(
        builder, loc, LLVM::LLVMPointerType::get(builder.getContext()),
        builder.getI64Type(), number(static_cast<int64_t>(operands.size())));
  }
  for (auto [i, operand] : llvm::enumerate(operands))
    LLVM::StoreOp::create(builder, loc, operand,
                          at(memory, 8 * static_cast<int64_t>(i)));
  return memory;
}

SmallVector<Value> ThreadCode::warp(int64_t site, ValueRange operands) {
  Value memory = keep(operands);
  call(offsetof(MtpEmulatedThread, warp),
       {function.getArgument(0), number(site), memory});
  SmallVector<Value> results;
  for (size_t i = 0; i < operands.size(); ++i)
    results.push_back(
        LLVM::LoadOp::create(builder, loc, builder.getI64Type(),
                             at(memory, 8 * static_cast<int64_t>(i))));
  return results;
}

void ThreadCode::async(int64_t site, ValueRange operands) {
  Value memory = keep(operands);
  call(offsetof(MtpEmulatedThread, async),
       {function.getArgument(0), number(site), memory});
}

Value ThreadCode::callMath(int index, Type type, ValueRange operands) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  int64_t offset = index * static_cast<int64_t>(sizeof(void *));
  if (type.isF32())
    offset += offsetof(MtpMath, expf);
  Value table = field(offsetof(MtpEmulatedThread, math), pointer);
  auto function =
      LLVM::LoadOp::create(builder, loc, pointer, at(table, offset));
  function.setInvariant(true);
  auto signature =
      LLVM::LLVMFunctionType::get(type, SmallVector<Type>(operands.getTypes()));
  SmallVector<Value> all{function};
  llvm::append_range(all, operands);
  return LLVM::CallOp::create(builder, loc, signature, all).getResult();
}

Value ThreadCode::widen(Value integer) {
  Type i64 = builder.getI64Type();
  if (integer.getType() == i64)
    return integer;
  return arith::ExtUIOp::create(builder, loc, i64, integer);
}

static IntegerType integerOf(Type type) {
  int64_t width = 0;
  if (auto vector = dyn_cast<VectorType>(type))
    width = vector.getNumElements() * vector.getElementTypeBitWidth();
  else
    width = type.getIntOrFloatBitWidth();
  return IntegerType::get(type.getContext(), static_cast<unsigned>(width));
}

Value ThreadCode::toBits(Value value) {
  Type type = value.getType(), integer = integerOf(type);
  if (type != integer)
    value = LLVM::BitcastOp::create(builder, loc, integer, value);
  return widen(value);
}

Value ThreadCode::fromBits(Value bits, Type type) {
  IntegerType integer = integerOf(type);
  if (integer.getWidth() < 64)
    bits = arith::TruncIOp::create(builder, loc, integer, bits);
  if (type != integer)
    bits = LLVM::BitcastOp::create(builder, loc, type, bits);
  return bits;
}

Value ThreadCode::isSet(Value bits) {
  return fromBits(bits, builder.getI1Type());
}

Value ThreadCode::structOf(ValueRange bits, Type type) {
  Value all = LLVM::PoisonOp::create(builder, loc, type);
  for (auto [i, field] :
       llvm::enumerate(cast<LLVM::LLVMStructType>(type).getBody()))
    all = LLVM::InsertValueOp::create(builder, loc, all,
                                      fromBits(bits[i], field), i);
  return all;
}

Value ThreadCode::addressBits(Value pointer) {
  return LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(), pointer);
}

Value ThreadCode::word(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, builder.getI32Type(),
                                      value);
}

Value ThreadCode::roundToTf32(Value number) {
  using Predicate = arith::CmpIPredicate;
  Value bits =
      LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), number);
  auto both = [&](Value a, int64_t b) -> Value {
    return arith::AndIOp::create(builder, loc, a, word(b));
  };
  Value magnitude = both(bits, 0x7fffffff);
  // Half of the last bit that stays: a carry into the exponent is right.
  Value rounded =
      both(arith::AddIOp::create(builder, loc, bits, word(0x1000)), -0x2000);
  Value isFinite = arith::CmpIOp::create(builder, loc, Predicate::ult,
                                         magnitude, word(0x7f800000));
  Value isNan = arith::CmpIOp::create(builder, loc, Predicate::ugt, magnitude,
                                      word(0x7f800000));
  Value special =
      arith::SelectOp::create(builder, loc, isNan, word(0x7fffffff), bits);
  return arith::SelectOp::create(builder, loc, isFinite, rounded, special);
}
