// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Checked.h - arithmetic on untrusted sizes --------------------------===//
#ifndef MTP_RUNTIME_SUPPORT_CHECKED_H
#define MTP_RUNTIME_SUPPORT_CHECKED_H

#include <cstdint>
#include <vector>

namespace mtp {

/// result = a * b; false if it leaves int64 or an operand is negative.
inline bool checkedMul(int64_t a, int64_t b, int64_t &result) {
  return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, &result);
}
/// result = a + b; false if it leaves int64 or an operand is negative.
inline bool checkedAdd(int64_t a, int64_t b, int64_t &result) {
  return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, &result);
}
/// Product of the extents. A zero extent doesn't hide an overflow of the
/// others.
inline bool checkedProduct(const std::vector<int64_t> &shape, int64_t &result) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent == 0)
      empty = true;
    else if (!checkedMul(product, extent, product))
      return false;
  }
  result = empty ? 0 : product;
  return true;
}
/// a / b rounded up, a >= 0, b >= 1, without overflow.
inline int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// Product of the extents of a shape that has been checked.
inline int64_t elementCount(const std::vector<int64_t> &shape) {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent;
  return product;
}

} // namespace mtp

#endif // MTP_RUNTIME_SUPPORT_CHECKED_H
