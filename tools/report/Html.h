// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Html.h - text, numbers and colours of a report ---------------------===//
#ifndef MTP_TOOLS_REPORT_HTML_H
#define MTP_TOOLS_REPORT_HTML_H

#include <cstdint>
#include <string>
#include <vector>

namespace mtp::report {

/// `text` as content or attribute value of HTML and of XML: markup, quotes and
/// control characters are escaped, bytes that are no UTF-8 become U+FFFD.
std::string escaped(const std::string &text);

/// A coordinate with at most one digit behind the point.
std::string number(double value);

/// "12.3 us", "4.56 ms".
std::string microsText(double microseconds);

/// Class of the colour of a layout's state on one axis: "S(1)" is "s1".
std::string stateClass(const std::string &state);
/// What a state means, for the legend: "cut in dimension 1".
std::string stateMeaning(const std::string &state);
/// The states that have a colour of their own, in the order of the legend.
const std::vector<std::string> &legendStates();

/// The style sheet of the page; the colours are those of Okabe and Ito, which
/// most people tell apart.
const char *styleSheet();

} // namespace mtp::report

#endif // MTP_TOOLS_REPORT_HTML_H
