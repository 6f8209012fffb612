// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/loader/Convert.h"
#include "runtime/support/Half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

using namespace mtp;

namespace {

constexpr int64_t kChunk = 512;

template <typename T> T loadAt(const char *source, int64_t i) {
  T value;
  std::memcpy(&value, source + i * int64_t(sizeof(T)), sizeof(T));
  return value;
}

struct Bf16Tag {};
struct F16Tag {};

/// Calls use(tag) with a value of the C++ type of `type`, or one of the tags.
template <typename Use> void withType(DType type, Use &&use) {
  switch (type) {
  case DType::F64:
    return use(double());
  case DType::F32:
    return use(float());
  case DType::F16:
    return use(F16Tag());
  case DType::BF16:
    return use(Bf16Tag());
  case DType::I64:
    return use(int64_t());
  case DType::I32:
    return use(int32_t());
  case DType::I16:
    return use(int16_t());
  case DType::I8:
    return use(int8_t());
  case DType::U64:
    return use(uint64_t());
  case DType::U32:
    return use(uint32_t());
  case DType::U16:
    return use(uint16_t());
  case DType::U8:
    return use(uint8_t());
  case DType::Bool:
    return use(bool());
  }
}

template <typename Wide, typename Tag>
Wide load(Tag, const char *source, int64_t i) {
  if constexpr (std::is_same_v<Tag, Bf16Tag>)
    return Wide(bf16ToFloat(loadAt<uint16_t>(source, i)));
  else if constexpr (std::is_same_v<Tag, F16Tag>)
    return Wide(f16ToFloat(loadAt<uint16_t>(source, i)));
  else if constexpr (std::is_same_v<Tag, bool>)
    return Wide(loadAt<uint8_t>(source, i) != 0);
  else
    return static_cast<Wide>(loadAt<Tag>(source, i));
}

template <typename T> T saturate(double value) {
  if (std::isnan(value))
    return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <typename Tag, typename Wide>
void store(Tag, char *target, int64_t i, Wide value) {
  auto put = [&](auto result) {
    std::memcpy(target + i * int64_t(sizeof(result)), &result, sizeof(result));
  };
  if constexpr (std::is_same_v<Tag, Bf16Tag>)
    put(floatToBf16(static_cast<float>(value)));
  else if constexpr (std::is_same_v<Tag, F16Tag>)
    put(floatToF16(static_cast<float>(value)));
  else if constexpr (std::is_same_v<Tag, bool>)
    put(uint8_t(value != 0));
  else if constexpr (std::is_integral_v<Tag> && std::is_floating_point_v<Wide>)
    put(saturate<Tag>(value));
  else
    put(static_cast<Tag>(value));
}

/// Through chunks of the wide type: two small loops for each type instead of
/// one for each pair.
template <typename Wide>
void convertThrough(DType from, const char *source, DType to, char *target,
                    int64_t count) {
  Wide chunk[kChunk];
  int64_t sourceBytes = byteSize(from), targetBytes = byteSize(to);
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    int64_t n = std::min(kChunk, count - begin);
    withType(from, [&](auto tag) {
      for (int64_t i = 0; i < n; ++i)
        chunk[i] = load<Wide>(tag, source + begin * sourceBytes, i);
    });
    withType(to, [&](auto tag) {
      for (int64_t i = 0; i < n; ++i)
        store(tag, target + begin * targetBytes, i, chunk[i]);
    });
  }
}

} // namespace

void mtp::convertElements(DType from, const char *source, DType to,
                          char *target, int64_t count) {
  if (from == to && from != DType::Bool) {
    if (count)
      std::memcpy(target, source, count * byteSize(from));
    return;
  }
  // Every float fits double; f64 to bf16 goes through f32, as frameworks do.
  if (isFloat(from) && from != DType::F64 && isFloat(to) && to != DType::F64)
    convertThrough<float>(from, source, to, target, count);
  else if (isFloat(from) || (isFloat(to) && from != DType::U64))
    convertThrough<double>(from, source, to, target, count);
  else if (from == DType::U64)
    convertThrough<uint64_t>(from, source, to, target, count);
  else
    convertThrough<int64_t>(from, source, to, target, count);
}
