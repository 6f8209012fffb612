// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Half.h - floats of 16 bits, and tf32 -------------------------------===//
#ifndef MTP_RUNTIME_SUPPORT_HALF_H
#define MTP_RUNTIME_SUPPORT_HALF_H

#include <bit>
#include <cstdint>

namespace mtp {

inline float bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

/// Round to nearest, ties to even; NaN stays NaN.
inline uint16_t floatToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return uint16_t(bits >> 16) | 0x40;
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float f16ToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t exponent = (half >> 10) & 31, fraction = half & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  float magnitude = float(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

/// Round to nearest, ties to even; overflow becomes infinity, NaN stays NaN.
inline uint16_t floatToF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return sign | 0x7e00 | uint16_t(bits >> 13 & 0x3ff);
  if (bits >= 0x477ff000)
    return sign | 0x7c00;
  if (bits < 0x38800000) {
    // Subnormal: adding 0.5 lets the float unit round at 2^-24.
    float shifted = std::bit_cast<float>(bits) + 0.5f;
    return sign | uint16_t(std::bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  return sign | uint16_t((bits + 0xfff + (bits >> 13 & 1) - 0x38000000) >> 13);
}

/// To 10 bits of fraction, as cvt.rna.tf32.f32 does: ties away from zero; NaN
/// is 0x7fffffff.
inline float floatToTf32(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), size = bits & 0x7fffffff;
  if (size > 0x7f800000)
    return std::bit_cast<float>(0x7fffffffu);
  // A carry into the exponent is right, also that to infinity.
  return size == 0x7f800000
             ? value
             : std::bit_cast<float>((bits + 0x1000) & 0xffffe000);
}

} // namespace mtp

#endif // MTP_RUNTIME_SUPPORT_HALF_H
