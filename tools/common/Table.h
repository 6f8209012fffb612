// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Table.h - aligned text, alike rows folded
//---------------------------===//
#ifndef MTP_TOOLS_COMMON_TABLE_H
#define MTP_TOOLS_COMMON_TABLE_H

#include <string>
#include <vector>

namespace mtp {

/// A table whose first column is a name. Rows that differ only in the numbers
/// inside their names, as those of identical layers do, become one row:
///
///     h.0.mlp.weight  [4, 8]          h.{0..1}.mlp.weight  x2  [4, 8]
///     h.1.mlp.weight  [4, 8]    =>    wte                      [9, 4]
///     wte             [9, 4]
class Table {
public:
  /// `rightAligned`: which columns hold numbers.
  Table(std::vector<std::string> header, std::vector<bool> rightAligned)
      : header(std::move(header)), rightAligned(std::move(rightAligned)) {}

  void add(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  bool empty() const { return rows.empty(); }

  /// Lines indented by two spaces. Names are cut to `nameWidth`.
  std::string text(size_t nameWidth = 56) const;

private:
  std::vector<std::string> header;
  std::vector<bool> rightAligned;
  std::vector<std::vector<std::string>> rows;
};

/// One name for several that differ in their numbers: {"h.0.w", "h.1.w"} is
/// "h.{0..1}.w"; numbers that leave gaps are "{0,3,7}" or "{0…90}".
std::string foldNames(const std::vector<std::string> &names);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_TABLE_H
