// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/Table.h"

#include "tools/common/Text.h"

#include <algorithm>
#include <map>
#include <set>

using namespace mtp;

namespace {
/// A name without its numbers, and where they stood: "h.0.w_1" is "h.w" with
/// ".0" at 1 and "_1" at 3. A separator belongs to the number behind it, since
/// exporters leave both out at the first of many ("o_proj", "o_proj_1").
struct CutName {
  struct Number {
    std::string separator, digits;
  };
  std::string text;
  /// By offset into `text`, then by order there.
  std::map<std::pair<size_t, int>, Number> numbers;
};
} // namespace

static CutName cutAtNumbers(const std::string &name) {
  auto isDigit = [&](size_t i) {
    return i < name.size() && name[i] >= '0' && name[i] <= '9';
  };
  CutName cut;
  size_t i = 0;
  while (i < name.size()) {
    bool separated = (name[i] == '_' || name[i] == '.') && isDigit(i + 1);
    if (!separated && !isDigit(i)) {
      cut.text += name[i++];
      continue;
    }
    CutName::Number number;
    if (separated)
      number.separator = name[i++];
    while (isDigit(i))
      number.digits += name[i++];
    int order = 0;
    while (cut.numbers.count({cut.text.size(), order}))
      ++order;
    cut.numbers[{cut.text.size(), order}] = number;
  }
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

/// What stands at one place of the folded name, given the number that each name
/// has there (null where it has none).
static std::string
foldNumber(const std::vector<const CutName::Number *> &numbers) {
  std::set<std::string> texts;
  std::set<int64_t> values;
  std::string separator;
  bool optional = false;
  for (const CutName::Number *number : numbers) {
    optional |= !number;
    if (!number)
      continue;
    separator = number->separator;
    texts.insert(separator + number->digits);
    if (std::optional<int64_t> value = parseInteger(number->digits))
      values.insert(*value);
  }
  std::string text = *texts.begin();
  if (texts.size() > 1)
    text = separator + (values.empty() ? "…" : numbersText(values));
  return optional ? "[" + text + "]" : text;
}

std::string mtp::foldNames(const std::vector<std::string> &names) {
  std::vector<CutName> cuts;
  std::set<std::pair<size_t, int>> places;
  for (const std::string &name : names) {
    cuts.push_back(cutAtNumbers(name));
    for (auto &[place, number] : cuts.back().numbers)
      places.insert(place);
  }
  std::string folded;
  size_t end = 0;
  for (auto place : places) {
    folded += cuts[0].text.substr(end, place.first - end);
    end = place.first;
    std::vector<const CutName::Number *> numbers;
    for (const CutName &cut : cuts) {
      auto found = cut.numbers.find(place);
      numbers.push_back(found == cut.numbers.end() ? nullptr : &found->second);
    }
    folded += foldNumber(numbers);
  }
  return folded + cuts[0].text.substr(end);
}

std::vector<std::vector<std::string>> Table::folded() const {
  std::map<std::string, size_t> indexOf;
  std::vector<std::vector<size_t>> groups;
  for (size_t row = 0; row < rows.size(); ++row) {
    std::string key;
    for (size_t i = 0; i < rows[row].size(); ++i)
      key +=
          (columns[i].folds ? cutAtNumbers(rows[row][i]).text : rows[row][i]) +
          '\1';
    auto [found, isNew] = indexOf.insert({key, groups.size()});
    if (isNew)
      groups.emplace_back();
    groups[found->second].push_back(row);
  }
  std::vector<std::vector<std::string>> result;
  for (const std::vector<size_t> &group : groups) {
    std::vector<std::string> cells = rows[group[0]];
    for (size_t i = 0; i < cells.size(); ++i) {
      std::vector<std::string> texts;
      for (size_t row : group)
        texts.push_back(rows[row][i]);
      if (columns[i].folds)
        cells[i] = foldNames(texts);
    }
    cells.insert(cells.begin() + 1,
                 group.size() > 1 ? "x" + std::to_string(group.size()) : "");
    result.push_back(cells);
  }
  return result;
}

std::string Table::text(size_t nameWidth) const {
  std::vector<std::vector<std::string>> lines = folded();
  std::vector<std::string> top;
  std::vector<bool> right;
  for (const Column &column : columns) {
    top.push_back(column.header);
    right.push_back(column.rightAligned);
  }
  top.insert(top.begin() + 1, "");
  right.insert(right.begin() + 1, true);
  lines.insert(lines.begin(), top);

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
