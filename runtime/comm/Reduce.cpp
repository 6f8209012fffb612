// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Reduce.h"
#include "runtime/support/Half.h"

#include <algorithm>
#include <type_traits>

using namespace mtp;
using Reduction = CollectiveSite::Reduction;

namespace {

/// Elements that are accumulated at once; they stay in the first-level cache.
constexpr int64_t kBlock = 1024;

/// How an element is stored and in what it is accumulated.
template <typename T> struct Plain {
  using Stored = T;
  using Sum = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};
struct Bf16 {
  using Stored = uint16_t;
  using Sum = float;
  static float load(uint16_t value) { return bf16ToFloat(value); }
  static uint16_t store(float value) { return floatToBf16(value); }
};
struct F16 {
  using Stored = uint16_t;
  using Sum = float;
  static float load(uint16_t value) { return f16ToFloat(value); }
  static uint16_t store(float value) { return floatToF16(value); }
};

template <Reduction R, typename T> T combine(T a, T b) {
  if constexpr (R == Reduction::Sum) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  } else if constexpr (R == Reduction::Max) {
    return b > a || b != b ? b : a;
  } else {
    return b < a || b != b ? b : a;
  }
}

template <Reduction R, typename Element>
void reduceAs(const char *const *in, int64_t members, char *out,
              int64_t elements) {
  using Stored = typename Element::Stored;
  auto source = [&](int64_t member) {
    return reinterpret_cast<const Stored *>(in[member]);
  };
  auto *target = reinterpret_cast<Stored *>(out);
  if (members == 2) { // without the detour over `sum`
    const Stored *a = source(0), *b = source(1);
    for (int64_t i = 0; i < elements; ++i)
      target[i] =
          Element::store(combine<R>(Element::load(a[i]), Element::load(b[i])));
    return;
  }
  typename Element::Sum sum[kBlock];
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    int64_t count = std::min(kBlock, elements - begin);
    for (int64_t i = 0; i < count; ++i)
      sum[i] = Element::load(source(0)[begin + i]);
    for (int64_t m = 1; m < members; ++m)
      for (int64_t i = 0; i < count; ++i)
        sum[i] = combine<R>(sum[i], Element::load(source(m)[begin + i]));
    for (int64_t i = 0; i < count; ++i)
      target[begin + i] = Element::store(sum[i]);
  }
}

template <typename Element>
void reduceElement(Reduction reduction, const char *const *in, int64_t members,
                   char *out, int64_t elements) {
  switch (reduction) {
  case Reduction::Sum:
    return reduceAs<Reduction::Sum, Element>(in, members, out, elements);
  case Reduction::Max:
    return reduceAs<Reduction::Max, Element>(in, members, out, elements);
  case Reduction::Min:
    return reduceAs<Reduction::Min, Element>(in, members, out, elements);
  }
}

} // namespace

void mtp::reduceMembers(DType type, Reduction reduction, const char *const *in,
                        int64_t members, char *out, int64_t elements) {
  auto as = [&](auto element) {
    reduceElement<decltype(element)>(reduction, in, members, out, elements);
  };
  switch (type) {
  case DType::F64:
    return as(Plain<double>());
  case DType::F32:
    return as(Plain<float>());
  case DType::F16:
    return as(F16());
  case DType::BF16:
    return as(Bf16());
  case DType::I64:
    return as(Plain<int64_t>());
  case DType::I32:
    return as(Plain<int32_t>());
  case DType::I16:
    return as(Plain<int16_t>());
  case DType::I8:
    return as(Plain<int8_t>());
  case DType::U64:
    return as(Plain<uint64_t>());
  case DType::U32:
    return as(Plain<uint32_t>());
  case DType::U16:
    return as(Plain<uint16_t>());
  case DType::U8:
    return as(Plain<uint8_t>());
  case DType::Bool:
    if (reduction == Reduction::Sum)
      reduction = Reduction::Max;
    return as(Plain<uint8_t>());
  }
}
