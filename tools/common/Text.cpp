// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/Text.h"

#include <charconv>
#include <cmath>
#include <cstdio>

using namespace mtp;

std::vector<std::string> mtp::split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos)
      return parts;
    begin = end + 1;
  }
}

template <typename T>
static std::optional<T> parseAll(const std::string &text) {
  T value{};
  const char *end = text.data() + text.size();
  auto [stop, code] = std::from_chars(text.data(), end, value);
  if (text.empty() || code != std::errc() || stop != end)
    return std::nullopt;
  return value;
}

std::optional<int64_t> mtp::parseInteger(const std::string &text) {
  return parseAll<int64_t>(text);
}

std::optional<double> mtp::parseNumber(const std::string &text) {
  std::optional<double> value = parseAll<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string mtp::numberText(double value, int digits) {
  char buffer[64];
  snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  return buffer;
}

std::string mtp::bytesText(int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = double(bytes);
  int unit = 0;
  while (value >= 1000 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  return numberText(value) + " " + units[unit];
}

std::string mtp::timeText(double milliseconds) {
  if (milliseconds >= 10000)
    return numberText(milliseconds / 1000) + " s";
  return numberText(milliseconds, milliseconds >= 1000 ? 4 : 3) + " ms";
}

size_t mtp::displayWidth(const std::string &text) {
  size_t width = 0;
  for (unsigned char c : text)
    width += (c & 0xC0) != 0x80;
  return width;
}

std::string mtp::shortened(const std::string &text, size_t width) {
  if (displayWidth(text) <= width)
    return text;
  // Bytes of the code points kept in front and at the end.
  size_t front = (width - 1) / 2, back = width - 1 - front;
  std::vector<size_t> starts;
  for (size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80)
      starts.push_back(i);
  return text.substr(0, starts[front]) + "…" +
         text.substr(starts[starts.size() - back]);
}
