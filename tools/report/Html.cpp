// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/report/Html.h"

#include "tools/common/Text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace mtp::report {

/// Length of the UTF-8 character at `at`, 0 if there is none.
static size_t utf8Length(const std::string &text, size_t at) {
  auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  unsigned lead = byte(at);
  size_t length = lead < 0x80                    ? 1
                  : lead >= 0xc2 && lead <= 0xdf ? 2
                  : lead >= 0xe0 && lead <= 0xef ? 3
                  : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                 : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80)
      return 0;
  bool overlong = (lead == 0xe0 && byte(at + 1) < 0xa0) ||
                  (lead == 0xf0 && byte(at + 1) < 0x90);
  bool surrogate = lead == 0xed && byte(at + 1) > 0x9f;
  bool beyond = lead == 0xf4 && byte(at + 1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

std::string escaped(const std::string &text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t length = utf8Length(text, i);
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (length == 0 || (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f)
      result += "\xef\xbf\xbd";
    else if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (c == '\'')
      result += "&#39;";
    else
      result += text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return result;
}

std::string number(double value) {
  double rounded = std::round(value * 10) / 10;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", rounded == 0 ? 0.0 : rounded);
  std::string result = text;
  if (result.size() > 2 && result.compare(result.size() - 2, 2, ".0") == 0)
    result.resize(result.size() - 2);
  return result;
}

std::string microsText(double microseconds) {
  if (microseconds < 1000)
    return numberText(microseconds) + " µs";
  return timeText(microseconds / 1000);
}

std::string stateClass(const std::string &state) {
  if (state == "I" || state == "R")
    return state == "I" ? "i" : "r";
  if (state.rfind("P", 0) == 0)
    return "p";
  int dim = 0;
  for (char c : state)
    if (c >= '0' && c <= '9')
      dim = std::min(dim * 10 + (c - '0'), 4);
  return "s" + std::to_string(dim);
}

std::string stateMeaning(const std::string &state) {
  if (state == "I")
    return "I: whole, the same on all ranks";
  if (state == "R")
    return "R: whole, read for work that differs";
  if (state.rfind("P", 0) == 0)
    return "P: each rank has a part of a sum (or maximum)";
  std::string dim = state.substr(2, state.size() - 3);
  return "S(" + dim + "): cut in dimension " + dim +
         (dim == "4" ? " or a later one" : "");
}

const std::vector<std::string> &legendStates() {
  static const std::vector<std::string> states = {
      "I", "R", "S(0)", "S(1)", "S(2)", "S(3)", "S(4)", "P(sum)"};
  return states;
}

const char *styleSheet() {
  return R"css(
:root { --i: #9097a1; --r: #c3c8d0; --s0: #0072b2; --s1: #e69f00; --s2: #009e73;
  --s3: #cc79a7; --s4: #56b4e9; --p: #d55e00; --ink: #1d2430; --soft: #5d6776; --line: #dfe3e9;
  --paper: #ffffff; --ground: #f5f6f8; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 14px/1.45 "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 24px; margin: 0 0 2px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 34px 0 10px; }
h3 { font-size: 15px; margin: 18px 0 8px; }
p { margin: 6px 0; max-width: 80ch; }
.soft { color: var(--soft); }
.card { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px;
  margin: 10px 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(170px, 1fr)); gap: 10px; margin: 14px 0; }
.fact { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px; }
.fact b { display: block; font-size: 19px; font-weight: 600; }
.fact span { color: var(--soft); font-size: 12px; }
.legend { display: flex; flex-wrap: wrap; gap: 6px 18px; font-size: 12.5px; margin: 8px 0; }
.legend span.key { display: inline-flex; align-items: center; gap: 7px; }
.swatch { display: inline-block; width: 20px; height: 11px; border-radius: 3px; }
.chip { display: inline-block; padding: 0 7px; border-radius: 9px; color: #fff; font-size: 12px;
  margin-right: 4px; white-space: nowrap; }
.bi { background: var(--i); } .br { background: var(--r); color: var(--ink); }
.bs0 { background: var(--s0); } .bs1 { background: var(--s1); color: var(--ink); } .bs2 { background: var(--s2); }
.bs3 { background: var(--s3); color: var(--ink); } .bs4 { background: var(--s4); color: var(--ink); }
.bp { background: var(--p); }
details > summary { cursor: pointer; }
.segment { border-left: 4px solid var(--line); padding-left: 12px; margin: 6px 0; }
.segment.layer { border-left-color: #7a5cd6; background: #faf9fe; border-radius: 0 10px 10px 0; padding: 8px 12px; }
.segment summary { font-weight: 600; }
.times { background: #7a5cd6; color: #fff; border-radius: 10px; padding: 1px 9px; font-size: 12.5px; margin-left: 6px; }
.picture { overflow-x: auto; text-align: center; }
.picture svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th { text-align: left; color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line); padding: 5px 8px; }
td { border-bottom: 1px solid var(--line); padding: 5px 8px; vertical-align: top; overflow-wrap: anywhere; }
td.n, th.n { text-align: right; white-space: nowrap; overflow-wrap: normal; }
td.k { white-space: nowrap; }
td details { margin: 0; }
td ul { margin: 4px 0; padding-left: 18px; }
.scroll { overflow-x: auto; }
code { font-family: "SF Mono", Consolas, "DejaVu Sans Mono", monospace; font-size: 12.5px; }
svg text { font-family: "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; fill: var(--ink); }
svg .t { font-size: 12px; font-weight: 600; } svg .s { font-size: 10.5px; fill: var(--soft); }
svg .w { font-size: 10.5px; } svg .box { fill: #fff; stroke: #b8bfca; }
svg .io { fill: #eef1f5; stroke: #b8bfca; stroke-dasharray: 4 3; }
svg .moves { fill: #fff3e8; stroke: #d55e00; stroke-width: 1.4; } svg .quiet { fill: #f3f4f6; stroke: #b8bfca; }
svg .e { fill: none; stroke-width: 2.2; }
svg .ei { stroke: var(--i); } svg .er { stroke: var(--r); } svg .es0 { stroke: var(--s0); } svg .es1 { stroke: var(--s1); }
svg .es2 { stroke: var(--s2); } svg .es3 { stroke: var(--s3); } svg .es4 { stroke: var(--s4); }
svg .ep { stroke: var(--p); stroke-dasharray: 5 2.5; }
svg .fi { fill: var(--i); } svg .fr { fill: var(--r); } svg .fs0 { fill: var(--s0); } svg .fs1 { fill: var(--s1); }
svg .fs2 { fill: var(--s2); } svg .fs3 { fill: var(--s3); } svg .fs4 { fill: var(--s4); } svg .fp { fill: var(--p); }
svg .axis { stroke: #b8bfca; stroke-width: 1; } svg .grid { stroke: var(--line); stroke-width: 1; }
svg .hover { fill: transparent; } svg .hover:hover { fill: rgba(122, 92, 214, 0.18); }
svg g.node:hover > rect.box, svg g.node:hover > rect.moves { stroke: #7a5cd6; stroke-width: 2; }
@media print { body { background: #fff; } details:not([open]) > *:not(summary) { display: none; } }
)css";
}

} // namespace mtp::report
