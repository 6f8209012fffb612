// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/LayoutText.h"

#include <string_view>

using namespace mtp;

namespace {

/// Reads from the front of a text; a failed read leaves it as it was, but for
/// spaces.
class Reader {
public:
  explicit Reader(std::string_view text) : rest(text) {}

  bool atEnd() {
    skipSpaces();
    return rest.empty();
  }
  bool word(std::string_view expected) {
    skipSpaces();
    if (rest.substr(0, expected.size()) != expected)
      return false;
    rest.remove_prefix(expected.size());
    return true;
  }
  bool number() {
    skipSpaces();
    size_t size = 0;
    while (size < rest.size() && isDigit(rest[size]))
      ++size;
    rest.remove_prefix(size);
    return size > 0;
  }
  bool name(std::string &name) {
    skipSpaces();
    size_t size = 0;
    while (size < rest.size() &&
           (isLetter(rest[size]) || (size && isDigit(rest[size]))))
      ++size;
    name = rest.substr(0, size);
    rest.remove_prefix(size);
    return size > 0;
  }

private:
  static bool isDigit(char c) { return c >= '0' && c <= '9'; }
  static bool isLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  void skipSpaces() {
    size_t begin = rest.find_first_not_of(" \t\n\r\f\v");
    rest.remove_prefix(begin == rest.npos ? rest.size() : begin);
  }
  std::string_view rest;
};

bool readState(Reader &reader) {
  if (reader.word("I") || reader.word("R"))
    return true;
  if (reader.word("P("))
    return (reader.word("sum") || reader.word("max") || reader.word("min")) &&
           reader.word(")");
  return reader.word("S(") && reader.number() &&
         (!reader.word(",") || (reader.word("unit") && reader.number())) &&
         reader.word(")");
}

/// "tp = S(1), dp = R"; the axes.
std::optional<std::vector<std::string>> readLayout(Reader &reader) {
  std::vector<std::string> axes;
  do {
    if (!reader.name(axes.emplace_back()) ||
        (reader.word(".") && !reader.number()) || !reader.word("=") ||
        !readState(reader))
      return std::nullopt;
  } while (reader.word(","));
  return axes;
}

/// "<tp = R>", "<>".
bool readWholeLayout(Reader &reader) {
  return reader.word("<") &&
         (reader.word(">") || (readLayout(reader) && reader.word(">")));
}

/// "<tp = R>, *": what a strategy reads, or gives.
bool readSide(Reader &reader) {
  do {
    if (!reader.word("*") && !readWholeLayout(reader))
      return false;
  } while (reader.word(","));
  return true;
}

} // namespace

std::optional<std::vector<std::string>>
mtp::axesOfLayout(const std::string &text) {
  Reader reader(text);
  auto axes = readLayout(reader);
  return reader.atEnd() ? axes : std::nullopt;
}

bool mtp::isPinText(const std::string &text) {
  Reader layout(text), whole(text), strategy(text);
  return (readLayout(layout) && layout.atEnd()) ||
         (readWholeLayout(whole) && whole.atEnd()) ||
         (readSide(strategy) && strategy.word("->") && readSide(strategy) &&
          strategy.atEnd());
}
