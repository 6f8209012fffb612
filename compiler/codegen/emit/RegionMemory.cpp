// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RegionMemory.cpp - loads, stores, memory of a kernel's own ---------===//

#include "compiler/codegen/emit/RegionEmitter.h"
#include "compiler/codegen/emit/Scalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mtp;

Type RegionEmitter::registerType(Type type) {
  if (type.isF16() || type.isBF16())
    return Float32Type::get(type.getContext());
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

Type RegionEmitter::storageType(Type type) {
  if (type.isBF16())
    return IntegerType::get(type.getContext(), 16);
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(),
                            std::max(8u, integer.getWidth()));
  return type;
}

Value RegionEmitter::constant(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, builder.getI64Type(),
                                      value);
}

Value RegionEmitter::loadAt(Value base, Type elementType,
                            const IndexExpr &position) {
  return loadElement(base, elementType, materialize(position));
}

Value RegionEmitter::loadElement(Value base, Type elementType, Value at) {
  Type storage = storageType(elementType);
  Value address = LLVM::GEPOp::create(builder, loc, base.getType(), storage,
                                      base, ValueRange{at});
  Value raw = LLVM::LoadOp::create(builder, loc, storage, address);
  if (elementType.isInteger(1)) {
    Value zero =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(storage));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, raw,
                                 zero);
  }
  if (elementType.isF16())
    return arith::ExtFOp::create(builder, loc, builder.getF32Type(), raw);
  if (elementType.isBF16()) {
    // bf16 is the upper half of an f32.
    Value wide =
        arith::ExtUIOp::create(builder, loc, builder.getI32Type(), raw);
    Value sixteen =
        arith::ConstantIntOp::create(builder, loc, builder.getI32Type(), 16);
    wide = arith::ShLIOp::create(builder, loc, wide, sixteen);
    return arith::BitcastOp::create(builder, loc, builder.getF32Type(), wide);
  }
  return raw;
}

void RegionEmitter::storeAt(Value base, Type elementType,
                            const IndexExpr &position, Value value) {
  storeElement(base, elementType, materialize(position), value);
}

void RegionEmitter::storeElement(Value base, Type elementType, Value at,
                                 Value value) {
  Type storage = storageType(elementType);
  if (elementType.isInteger(1))
    value = arith::ExtUIOp::create(builder, loc, storage, value);
  else if (elementType.isF16())
    value = arith::TruncFOp::create(builder, loc, storage, value);
  else if (elementType.isBF16())
    value = roundToBF16Bits(*this, value);
  Value address = LLVM::GEPOp::create(builder, loc, base.getType(), storage,
                                      base, ValueRange{at});
  LLVM::StoreOp::create(builder, loc, value, address);
}

/// Bytes of a kernel's scratch memory. Stacks of threads have 2 MiB or more.
static constexpr int64_t kMaxScratch = 3 << 18;

static int64_t scratchSize(Type storage, int64_t elements) {
  return elements * std::max(1u, storage.getIntOrFloatBitWidth() / 8);
}

bool RegionEmitter::hasRoom(Type type, int64_t elements) const {
  return scratchBytes + scratchSize(storageType(type), elements) <= kMaxScratch;
}

Value RegionEmitter::scratch(Type type, int64_t elements) {
  scratchBytes += scratchSize(storageType(type), elements);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  Value size = constant(std::max<int64_t>(elements, 1));
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  return LLVM::AllocaOp::create(builder, loc, pointer, storageType(type), size,
                                64);
}

Value RegionEmitter::globalArray(DenseElementsAttr values) {
  // At memory width: booleans are bytes.
  Type element = values.getElementType(), storage = storageType(element);
  auto flat = RankedTensorType::get({values.getNumElements()}, storage);
  DenseElementsAttr bytes;
  if (element.isInteger(1)) {
    SmallVector<int8_t> wide;
    for (bool value : values.getValues<bool>())
      wide.push_back(value);
    bytes = DenseElementsAttr::get(flat, ArrayRef<int8_t>(wide));
  } else {
    bytes = values.bitcast(storage).reshape(flat);
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&target);
  std::string name =
      (function.getName() + "_constant" + Twine(globals.size())).str();
  auto type = LLVM::LLVMArrayType::get(storage, values.getNumElements());
  auto global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                                       LLVM::Linkage::Internal, name, bytes,
                                       /*alignment=*/64);
  globals.push_back(global);
  moveTo(*root);
  return LLVM::AddressOfOp::create(builder, loc, global);
}
