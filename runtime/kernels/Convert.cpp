// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Convert.cpp --------------------------------------------------------===//
#include "runtime/kernels/Convert.h"
#include <cmath>
#include <type_traits>

namespace mtp {

float halfToFloat(uint16_t x) {
  uint32_t sign = uint32_t(x & 0x8000) << 16;
  uint32_t exponent = (x >> 10) & 31, mantissa = x & 1023;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    float value = float(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                              (mantissa << 13));
}

uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = uint16_t((bits >> 16) & 0x8000);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u)
    return uint16_t(sign | 0x7e00);
  if (bits >= 0x477ff000u) // rounds to 65536 or more
    return uint16_t(sign | 0x7c00);
  if (bits < 0x38800000u) // below the normal numbers of f16
    return uint16_t(
        sign | uint16_t(std::nearbyintf(std::bit_cast<float>(bits) * 0x1p24f)));
  return uint16_t(sign |
                  ((bits + 0xfff + ((bits >> 13) & 1) - 0x38000000u) >> 13));
}

namespace {
template <typename To, typename From>
void load(const char *from, int64_t fromStride, To *to, int64_t toStride,
          int64_t count) {
  const From *source = reinterpret_cast<const From *>(from);
  if (fromStride == 1 && toStride == 1) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = To(source[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    to[i * toStride] = To(source[i * fromStride]);
}
template <typename To, typename From>
void store(const From *from, char *to, int64_t toStride, int64_t count) {
  To *target = reinterpret_cast<To *>(to);
  for (int64_t i = 0; i < count; ++i)
    target[i * toStride] = To(from[i]);
}
} // namespace

template <typename T>
void loadRow(DType type, const char *from, int64_t fromStride, T *to,
             int64_t toStride, int64_t count, bool roundToBf16) {
  const uint16_t *half = reinterpret_cast<const uint16_t *>(from);
  switch (type) {
  case DType::F64:
    return load<T, double>(from, fromStride, to, toStride, count);
  case DType::F32:
    if (roundToBf16) {
      const float *source = reinterpret_cast<const float *>(from);
      for (int64_t i = 0; i < count; ++i)
        to[i * toStride] = T(bf16ToFloat(floatToBf16(source[i * fromStride])));
      return;
    }
    return load<T, float>(from, fromStride, to, toStride, count);
  case DType::BF16:
    for (int64_t i = 0; i < count; ++i)
      to[i * toStride] = T(bf16ToFloat(half[i * fromStride]));
    return;
  case DType::F16:
    for (int64_t i = 0; i < count; ++i) {
      float value = halfToFloat(half[i * fromStride]);
      to[i * toStride] =
          T(roundToBf16 ? bf16ToFloat(floatToBf16(value)) : value);
    }
    return;
  case DType::I64:
    return load<T, int64_t>(from, fromStride, to, toStride, count);
  case DType::I32:
    return load<T, int32_t>(from, fromStride, to, toStride, count);
  case DType::I16:
    return load<T, int16_t>(from, fromStride, to, toStride, count);
  case DType::I8:
    return load<T, int8_t>(from, fromStride, to, toStride, count);
  case DType::U64:
    return load<T, uint64_t>(from, fromStride, to, toStride, count);
  case DType::U32:
    return load<T, uint32_t>(from, fromStride, to, toStride, count);
  case DType::U16:
    return load<T, uint16_t>(from, fromStride, to, toStride, count);
  case DType::U8:
  case DType::Bool:
    return load<T, uint8_t>(from, fromStride, to, toStride, count);
  }
}

template <typename T>
void storeRow(DType type, const T *from, char *to, int64_t toStride,
              int64_t count) {
  if constexpr (std::is_floating_point_v<T>) {
    uint16_t *half = reinterpret_cast<uint16_t *>(to);
    if (type == DType::F64)
      return store<double>(from, to, toStride, count);
    if (type == DType::F32)
      return store<float>(from, to, toStride, count);
    for (int64_t i = 0; i < count; ++i)
      half[i * toStride] = type == DType::BF16 ? floatToBf16(float(from[i]))
                                               : floatToHalf(float(from[i]));
  } else if (sizeof(T) == 4 && (type == DType::I32 || type == DType::U32)) {
    store<uint32_t>(from, to, toStride, count);
  } else {
    store<uint64_t>(from, to, toStride, count);
  }
}

#define MTP_INSTANTIATE(T)                                                     \
  template void loadRow<T>(DType, const char *, int64_t, T *, int64_t,         \
                           int64_t, bool);                                     \
  template void storeRow<T>(DType, const T *, char *, int64_t, int64_t);
MTP_INSTANTIATE(float)
MTP_INSTANTIATE(double)
MTP_INSTANTIATE(uint32_t)
MTP_INSTANTIATE(uint64_t)
#undef MTP_INSTANTIATE

} // namespace mtp
