// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MicroKernels.cpp - choice of the instruction set -------------------===//
#include "runtime/kernels/MicroKernels.h"

namespace mtp {

#define MTP_DECLARE(ISA)                                                       \
  namespace ISA {                                                              \
  extern const MicroKernels<float> *const f32;                                 \
  extern const MicroKernels<double> *const f64;                                \
  extern const MicroKernels<uint32_t> *const u32;                              \
  extern const MicroKernels<uint64_t> *const u64;                              \
  }
MTP_DECLARE(baseline)
#if defined(__x86_64__)
MTP_DECLARE(avx2)
MTP_DECLARE(avx512)
static bool hasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
static bool hasAvx512() {
  return hasAvx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}
#endif
#undef MTP_DECLARE

#if defined(__x86_64__)
#define MTP_TABLES(T, FIELD)                                                   \
  template <> int microKernelTables<T>(const MicroKernels<T> *tables[3]) {     \
    int count = 0;                                                             \
    if (hasAvx512())                                                           \
      tables[count++] = avx512::FIELD;                                         \
    if (hasAvx2())                                                             \
      tables[count++] = avx2::FIELD;                                           \
    tables[count++] = baseline::FIELD;                                         \
    return count;                                                              \
  }
#else
#define MTP_TABLES(T, FIELD)                                                   \
  template <> int microKernelTables<T>(const MicroKernels<T> *tables[3]) {     \
    tables[0] = baseline::FIELD;                                               \
    return 1;                                                                  \
  }
#endif
MTP_TABLES(float, f32)
MTP_TABLES(double, f64)
MTP_TABLES(uint32_t, u32)
MTP_TABLES(uint64_t, u64)
#undef MTP_TABLES

template <typename T> const MicroKernels<T> &microKernels() {
  static const MicroKernels<T> &best = []() -> const MicroKernels<T> & {
    const MicroKernels<T> *tables[3];
    microKernelTables<T>(tables);
    return *tables[0];
  }();
  return best;
}
template const MicroKernels<float> &microKernels<float>();
template const MicroKernels<double> &microKernels<double>();
template const MicroKernels<uint32_t> &microKernels<uint32_t>();
template const MicroKernels<uint64_t> &microKernels<uint64_t>();

} // namespace mtp
