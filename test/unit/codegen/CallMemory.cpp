// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/codegen/CallMemory.h"

#include "mlir/IR/BuiltinTypes.h"

#include <cstring>
#include <stdexcept>

using namespace mlir;
using namespace mtp::test;

namespace {

int64_t bytesOf(Type type) {
  return std::max(1u, type.getIntOrFloatBitWidth() / 8);
}

const llvm::fltSemantics &semanticsOf(Type type) {
  return cast<FloatType>(type).getFloatSemantics();
}

void store(char *at, Type type, double value) {
  if (isa<FloatType>(type)) {
    APFloat number(value);
    bool lost;
    number.convert(semanticsOf(type), APFloat::rmNearestTiesToEven, &lost);
    uint64_t bits = number.bitcastToAPInt().getZExtValue();
    std::memcpy(at, &bits, bytesOf(type));
    return;
  }
  int64_t bits = type.isUnsignedInteger()
                     ? static_cast<int64_t>(static_cast<uint64_t>(value))
                     : static_cast<int64_t>(value);
  std::memcpy(at, &bits, bytesOf(type));
}
double load(const char *at, Type type) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, bytesOf(type));
  if (isa<FloatType>(type))
    return APFloat(semanticsOf(type), APInt(type.getIntOrFloatBitWidth(), bits))
        .convertToDouble();
  APInt integer(bytesOf(type) * 8, bits);
  return type.isUnsignedInteger() || type.isInteger(1)
             ? double(integer.getZExtValue())
             : double(integer.getSExtValue());
}

Type elementOf(Type tensor) {
  return cast<RankedTensorType>(tensor).getElementType();
}
int64_t elementsOf(Type tensor) {
  return cast<RankedTensorType>(tensor).getNumElements();
}

} // namespace

void CallMemory::allocate(Type type, char fill) {
  sizes.push_back(elementsOf(type) * bytesOf(elementOf(type)));
  memory.push_back(std::make_unique<char[]>(sizes.back() + 2 * kGuard + 64));
  std::memset(memory.back().get(), fill, sizes.back() + 2 * kGuard + 64);
  auto address = reinterpret_cast<uintptr_t>(memory.back().get());
  buffers.push_back(reinterpret_cast<char *>((address + 63) / 64 * 64));
}

void CallMemory::add(Type type, const Tensor &contents) {
  allocate(type, 0x7f);
  for (int64_t i = 0; i < elementsOf(type); ++i)
    store(buffers.back() + i * bytesOf(elementOf(type)), elementOf(type),
          contents.data[i]);
}

void CallMemory::add(Type type) { allocate(type, 0x5a); }

Tensor CallMemory::read(size_t buffer, Type type) const {
  Tensor tensor{cast<RankedTensorType>(type).getShape().vec(), {}};
  for (int64_t i = 0; i < elementsOf(type); ++i)
    tensor.data.push_back(
        load(buffers[buffer] + i * bytesOf(elementOf(type)), elementOf(type)));
  return tensor;
}

void CallMemory::checkGuards() const {
  for (size_t i = 0; i < buffers.size(); ++i)
    for (int64_t k = 1; k < kGuard; ++k)
      if (buffers[i][sizes[i] + k] != buffers[i][sizes[i]])
        throw std::runtime_error("buffer " + std::to_string(i) +
                                 " was written past its end");
}
