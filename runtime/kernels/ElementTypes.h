// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ElementTypes.h - from a DType to a C++ type ------------------------===//
#ifndef MTP_RUNTIME_KERNELS_ELEMENTTYPES_H
#define MTP_RUNTIME_KERNELS_ELEMENTTYPES_H

#include "runtime/kernels/Convert.h"
#include <type_traits>

namespace mtp {

struct Half {
  uint16_t bits;
  Half() = default;
  Half(float value) : bits(floatToHalf(value)) {}
  operator float() const { return halfToFloat(bits); }
};
struct BFloat {
  uint16_t bits;
  BFloat() = default;
  BFloat(float value) : bits(floatToBf16(value)) {}
  operator float() const { return bf16ToFloat(bits); }
};

/// The type that sums of T are taken in: float for 16 bit floats, the unsigned
/// type for integers (overflow wraps around), else T.
template <typename T, typename = void> struct Accumulator { using Type = T; };
template <> struct Accumulator<Half> { using Type = float; };
template <> struct Accumulator<BFloat> { using Type = float; };
template <typename T>
struct Accumulator<
    T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  // Narrow unsigned types would be promoted to int.
  using Type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

template <typename T> struct TypeTag { using Type = T; };

/// Calls body(TypeTag<T>{}) with the C++ type of `type`; bool is uint8_t.
template <typename Body> auto withElementType(DType type, Body &&body) {
  switch (type) {
  case DType::F64:
    return body(TypeTag<double>{});
  case DType::F32:
    return body(TypeTag<float>{});
  case DType::F16:
    return body(TypeTag<Half>{});
  case DType::BF16:
    return body(TypeTag<BFloat>{});
  case DType::I64:
    return body(TypeTag<int64_t>{});
  case DType::I32:
    return body(TypeTag<int32_t>{});
  case DType::I16:
    return body(TypeTag<int16_t>{});
  case DType::I8:
    return body(TypeTag<int8_t>{});
  case DType::U64:
    return body(TypeTag<uint64_t>{});
  case DType::U32:
    return body(TypeTag<uint32_t>{});
  case DType::U16:
    return body(TypeTag<uint16_t>{});
  case DType::U8:
  case DType::Bool:
    break;
  }
  return body(TypeTag<uint8_t>{});
}

/// A tensor seen as [outer, extent, inner] around one axis.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
  AxisView(const std::vector<int64_t> &shape, int axis) : extent(shape[axis]) {
    for (int i = 0; i < int(shape.size()); ++i)
      (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
  }
  int64_t rows() const { return outer * inner; }
  /// Offset of the first element of row `row` where the axis has `length`
  /// elements; the next ones are `inner` apart.
  int64_t start(int64_t row, int64_t length) const {
    return row / inner * length * inner + row % inner;
  }
};

} // namespace mtp

#endif // MTP_RUNTIME_KERNELS_ELEMENTTYPES_H
