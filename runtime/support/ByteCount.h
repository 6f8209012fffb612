// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ByteCount.h - "2G" as a number of bytes ----------------------------===//
#ifndef MTP_RUNTIME_SUPPORT_BYTECOUNT_H
#define MTP_RUNTIME_SUPPORT_BYTECOUNT_H

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mtp {

/// BYTES[K|M|G], powers of 1024; nothing if the text is no whole number, or is
/// negative or more than 2^63 - 1 bytes.
inline std::optional<int64_t> parseByteCount(std::string_view text) {
  constexpr std::string_view units = "KMG";
  int64_t factor = 1, count = 0, bytes = 0;
  size_t unit = text.empty() ? units.npos : units.find(text.back());
  if (unit != units.npos) {
    factor = int64_t(1) << (10 * (unit + 1));
    text.remove_suffix(1);
  }
  const char *end = text.data() + text.size();
  auto [stop, code] = std::from_chars(text.data(), end, count);
  if (text.empty() || code != std::errc() || stop != end || count < 0 ||
      __builtin_mul_overflow(count, factor, &bytes))
    return std::nullopt;
  return bytes;
}

} // namespace mtp

#endif // MTP_RUNTIME_SUPPORT_BYTECOUNT_H
