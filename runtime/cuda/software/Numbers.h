// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Numbers.h - elements of every type, one at a time ------------------===//
#ifndef MTP_RUNTIME_CUDA_SOFTWARE_NUMBERS_H
#define MTP_RUNTIME_CUDA_SOFTWARE_NUMBERS_H

#include "runtime/cuda/api/CublasLtApi.h"
#include "runtime/cuda/api/NcclApi.h"
#include "runtime/support/Half.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace mtp::software {

template <typename T> T load(const char *address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}
template <typename T> void store(char *address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

/// Of a cudaDataType.
inline size_t sizeOfBlasType(int type) {
  return type == cuda::blas::TypeF64 ? 8 : type == cuda::blas::TypeF32 ? 4 : 2;
}
inline double loadBlas(int type, const char *address) {
  switch (type) {
  case cuda::blas::TypeF64:
    return load<double>(address);
  case cuda::blas::TypeF32:
    return load<float>(address);
  case cuda::blas::TypeF16:
    return f16ToFloat(load<uint16_t>(address));
  default:
    return bf16ToFloat(load<uint16_t>(address));
  }
}
inline void storeBlas(int type, char *address, double value) {
  auto narrow = static_cast<float>(value);
  switch (type) {
  case cuda::blas::TypeF64:
    return store(address, value);
  case cuda::blas::TypeF32:
    return store(address, narrow);
  case cuda::blas::TypeF16:
    return store(address, floatToF16(narrow));
  default:
    return store(address, floatToBf16(narrow));
  }
}

/// As NCCL's: a maximum or minimum drops NaN.
template <typename T> T combine(int op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return op == cuda::nccl::Sum   ? a + b
           : op == cuda::nccl::Max ? std::fmax(a, b)
                                   : std::fmin(a, b);
  } else {
    using U = std::make_unsigned_t<T>;
    return op == cuda::nccl::Sum   ? static_cast<T>(static_cast<U>(
                                         static_cast<U>(a) + static_cast<U>(b)))
           : op == cuda::nccl::Max ? (a > b ? a : b)
                                   : (a < b ? a : b);
  }
}

/// out[i] = out[i] op in[i] for one element of an ncclDataType_t; sums of
/// 16-bit floats are rounded after every step.
inline void combineNccl(int type, int op, char *out, const char *in) {
  auto as = [&](auto zero) {
    using T = decltype(zero);
    store(out, combine(op, load<T>(out), load<T>(in)));
  };
  switch (type) {
  case cuda::nccl::I8:
    return as(int8_t());
  case cuda::nccl::U8:
    return as(uint8_t());
  case cuda::nccl::I32:
    return as(int32_t());
  case cuda::nccl::U32:
    return as(uint32_t());
  case cuda::nccl::I64:
    return as(int64_t());
  case cuda::nccl::U64:
    return as(uint64_t());
  case cuda::nccl::F32:
    return as(float());
  case cuda::nccl::F64:
    return as(double());
  default: {
    int blasType =
        type == cuda::nccl::F16 ? cuda::blas::TypeF16 : cuda::blas::TypeBF16;
    auto a = static_cast<float>(loadBlas(blasType, out));
    auto b = static_cast<float>(loadBlas(blasType, in));
    storeBlas(blasType, out, combine(op, a, b));
  }
  }
}
inline size_t sizeOfNcclType(int type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

} // namespace mtp::software

#endif // MTP_RUNTIME_CUDA_SOFTWARE_NUMBERS_H
