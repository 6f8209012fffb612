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

SmallVector<Value> ThreadCode::warp(int64_t site, ValueRange operands) {
  Type i64 = builder.getI64Type();
  Value memory;
  {
    // In the entry: a loop must not take stack again and again.
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.getBody().front());
    memory = LLVM::AllocaOp::create(
        builder, loc, LLVM::LLVMPointerType::get(builder.getContext()), i64,
        number(static_cast<int64_t>(operands.size())));
  }
  for (auto [i, operand] : llvm::enumerate(operands))
    LLVM::StoreOp::create(builder, loc, operand,
                          at(memory, 8 * static_cast<int64_t>(i)));
  call(offsetof(MtpEmulatedThread, warp),
       {function.getArgument(0), number(site), memory});
  SmallVector<Value> results;
  for (size_t i = 0; i < operands.size(); ++i)
    results.push_back(LLVM::LoadOp::create(
        builder, loc, i64, at(memory, 8 * static_cast<int64_t>(i))));
  return results;
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

Value ThreadCode::toBits(Value value) {
  Type type = value.getType();
  if (isa<FloatType>(type))
    value = arith::BitcastOp::create(
        builder, loc, builder.getIntegerType(type.getIntOrFloatBitWidth()),
        value);
  return widen(value);
}

Value ThreadCode::fromBits(Value bits, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  if (width < 64)
    bits = arith::TruncIOp::create(builder, loc, builder.getIntegerType(width),
                                   bits);
  if (isa<FloatType>(type))
    bits = arith::BitcastOp::create(builder, loc, type, bits);
  return bits;
}

Value ThreadCode::isSet(Value bits) {
  return fromBits(bits, builder.getI1Type());
}
