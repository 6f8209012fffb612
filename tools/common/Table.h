// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Table.h - aligned text, alike rows folded --------------------------===//
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
  struct Column {
    std::string header;
    bool rightAligned = false;
    bool folds = false; ///< numbers in it may differ within a folded row
  };
  explicit Table(std::vector<Column> columns) : columns(std::move(columns)) {
    this->columns[0].folds = true;
  }

  void add(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  bool empty() const { return rows.empty(); }

  /// Lines indented by two spaces. Names are cut to `nameWidth`.
  std::string text(size_t nameWidth = 56) const;

private:
  /// One row for each group of rows that fold, in the order of their first,
  /// with the count as second cell.
  std::vector<std::vector<std::string>> folded() const;

  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

/// One name for several that differ in their numbers: {"h.0.w", "h.1.w"} is
/// "h.{0..1}.w"; numbers that leave gaps are "{0,3,7}" or "{0…90}"; one that
/// some names don't have stands in brackets: {"a/b", "a_1/b", "a_2/b"} is
/// "a[_{1..2}]/b". The names must be equal without their numbers.
std::string foldNames(const std::vector<std::string> &names);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_TABLE_H
