// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Text.h - numbers and lists as text ---------------------------------===//
#ifndef MTP_TOOLS_COMMON_TEXT_H
#define MTP_TOOLS_COMMON_TEXT_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtp {

/// The parts of `text` between separators, empty ones included: "a,,b" has 3.
std::vector<std::string> split(const std::string &text, char separator);

/// A whole decimal number with nothing before or after it, in int64.
std::optional<int64_t> parseInteger(const std::string &text);
/// A finite number with nothing before or after it.
std::optional<double> parseNumber(const std::string &text);

/// Bytes for people: "812 B", "1.21 MiB".
std::string bytesText(int64_t bytes);
/// Milliseconds for people, three digits: "0.0312 ms", "1.43 ms", "12.1 s".
std::string timeText(double milliseconds);
/// printf's %.{digits}g.
std::string numberText(double value, int digits = 3);

/// `text` in at most `width` characters, the middle left out ("…").
std::string shortened(const std::string &text, size_t width);

/// Characters of UTF-8 text as a terminal counts them (one a code point).
size_t displayWidth(const std::string &text);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_TEXT_H
