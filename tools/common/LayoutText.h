// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LayoutText.h - layouts as pins and plan files have them ------------===//
//
//   layout := entry (',' entry)*     entry := axis ('.' number)? '=' state
//   state  := 'I' | 'R' | 'P(' sum|max|min ')'
//           | 'S(' number (',' 'unit' number)? ')'
//
// with any spaces between: "dp = S(0), tp.0 = S(2, unit 64)".
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_COMMON_LAYOUTTEXT_H
#define MTP_TOOLS_COMMON_LAYOUTTEXT_H

#include <optional>
#include <string>
#include <vector>

namespace mtp {

/// The axes that a layout names, in order, without the number of a part:
/// "tp.0 = R" names tp. Nothing if `text` isn't a layout; the empty text is
/// none.
std::optional<std::vector<std::string>> axesOfLayout(const std::string &text);

/// True if `text` is what a pin may ask for: a layout, one on all axes
/// ("<dp = S(0)>"), or a strategy ("<tp = R>, * -> <tp = S(1)>").
bool isPinText(const std::string &text);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_LAYOUTTEXT_H
