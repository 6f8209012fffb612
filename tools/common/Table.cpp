// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/Table.h"

#include "tools/common/Text.h"

#include <algorithm>
#include <map>
#include <set>

using namespace mtp;

namespace {
/// A name cut at its numbers: texts[0] numbers[0] texts[1] ... texts[n].
struct CutName {
  std::vector<std::string> texts{""}, numbers;
};
} // namespace

static CutName cutAtNumbers(const std::string &name) {
  CutName cut;
  bool inNumber = false;
  for (char c : name) {
    bool digit = c >= '0' && c <= '9';
    if (digit && !inNumber)
      cut.numbers.emplace_back();
    if (!digit && inNumber)
      cut.texts.emplace_back();
    inNumber = digit;
    (digit ? cut.numbers : cut.texts).back() += c;
  }
  if (inNumber)
    cut.texts.emplace_back();
  return cut;
}

/// "0..3", "0,3,7", "0…90", or the one number.
static std::string numbersText(const std::set<int64_t> &numbers) {
  int64_t first = *numbers.begin(), last = *numbers.rbegin();
  if (numbers.size() == 1)
    return std::to_string(first);
  if (last - first + 1 == int64_t(numbers.size()))
    return "{" + std::to_string(first) + ".." + std::to_string(last) + "}";
  if (numbers.size() > 4)
    return "{" + std::to_string(first) + "…" + std::to_string(last) + "}";
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "{" : ",") + std::to_string(number);
  return text + "}";
}

std::string mtp::foldNames(const std::vector<std::string> &names) {
  CutName first = cutAtNumbers(names[0]);
  std::string folded = first.texts[0];
  std::vector<CutName> cuts;
  for (const std::string &name : names)
    cuts.push_back(cutAtNumbers(name));
  for (size_t i = 0; i < first.numbers.size(); ++i) {
    std::set<int64_t> values;
    bool same = true;
    for (const CutName &cut : cuts) {
      same &= cut.numbers[i] == first.numbers[i];
      if (std::optional<int64_t> value = parseInteger(cut.numbers[i]))
        values.insert(*value);
    }
    folded += same || values.empty() ? first.numbers[i] : numbersText(values);
    folded += first.texts[i + 1];
  }
  return folded;
}

/// Rows with equal keys, in the order of their first.
static std::vector<std::vector<std::string>>
foldRows(const std::vector<std::vector<std::string>> &rows) {
  std::map<std::string, size_t> indexOf;
  std::vector<std::vector<size_t>> groups;
  for (size_t row = 0; row < rows.size(); ++row) {
    std::string key;
    for (const std::string &text : cutAtNumbers(rows[row][0]).texts)
      key += text + '\1';
    for (size_t column = 1; column < rows[row].size(); ++column)
      key += rows[row][column] + '\2';
    auto [found, isNew] = indexOf.insert({key, groups.size()});
    if (isNew)
      groups.emplace_back();
    groups[found->second].push_back(row);
  }
  std::vector<std::vector<std::string>> folded;
  for (const std::vector<size_t> &group : groups) {
    std::vector<std::string> names;
    for (size_t row : group)
      names.push_back(rows[row][0]);
    std::vector<std::string> cells = rows[group[0]];
    cells[0] = foldNames(names);
    cells.insert(cells.begin() + 1,
                 group.size() > 1 ? "x" + std::to_string(group.size()) : "");
    folded.push_back(cells);
  }
  return folded;
}

std::string Table::text(size_t nameWidth) const {
  std::vector<std::vector<std::string>> lines = foldRows(rows);
  std::vector<std::string> top = header;
  top.insert(top.begin() + 1, "");
  lines.insert(lines.begin(), top);
  std::vector<bool> right = rightAligned;
  right.insert(right.begin() + 1, true);

  std::vector<size_t> widths(top.size(), 0);
  for (std::vector<std::string> &cells : lines) {
    cells[0] = shortened(cells[0], nameWidth);
    for (size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], displayWidth(cells[i]));
  }
  std::string text;
  for (const std::vector<std::string> &cells : lines) {
    std::string line = " ";
    for (size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] == 0)
        continue;
      std::string space(widths[i] - displayWidth(cells[i]), ' ');
      line += (i == 1 ? " " : i ? "  " : " ");
      line += right[i] ? space + cells[i] : cells[i] + space;
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}
