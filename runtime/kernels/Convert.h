// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Convert.h - between storage types and computing types --------------===//
#ifndef MTP_RUNTIME_KERNELS_CONVERT_H
#define MTP_RUNTIME_KERNELS_CONVERT_H

#include "runtime/artifact/Artifact.h"
#include <bit>
#include <cstdint>

namespace mtp {

inline float bf16ToFloat(uint16_t x) {
  return std::bit_cast<float>(uint32_t(x) << 16);
}
/// Nearest even; NaN stays NaN.
inline uint16_t floatToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
float halfToFloat(uint16_t x);
uint16_t floatToHalf(float x); ///< nearest even

/// Copies `count` elements that lie `fromStride` apart, as type `type`, to T
/// elements `toStride` apart. T: float, double, uint32_t, uint64_t; integers
/// are sign extended or cut. With `roundToBf16` (T float) values are rounded to
/// bf16.
template <typename T>
void loadRow(DType type, const char *from, int64_t fromStride, T *to,
             int64_t toStride, int64_t count, bool roundToBf16 = false);

/// Copies `count` contiguous elements to type `type`, `toStride` apart.
template <typename T>
void storeRow(DType type, const T *from, char *to, int64_t toStride,
              int64_t count);

} // namespace mtp

#endif // MTP_RUNTIME_KERNELS_CONVERT_H
