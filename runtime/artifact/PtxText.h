// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PtxText.h - what is read of a PTX module ---------------------------===//
#ifndef MTP_RUNTIME_ARTIFACT_PTXTEXT_H
#define MTP_RUNTIME_ARTIFACT_PTXTEXT_H

#include <cctype>
#include <map>
#include <string>

namespace mtp {

/// The `.entry` names of a PTX module, each with its number of parameters.
///
///   .visible .entry add(
///       .param .u64 .ptr add_param_0,      ->  {"add", 2}
///       .param .u64 .ptr add_param_1)
///
/// Everything else is the driver's.
inline std::map<std::string, int> ptxEntries(const std::string &ptx) {
  static const std::string keyword = ".entry", parameter = ".param";
  std::map<std::string, int> entries;
  auto isName = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           c == '$' || c == '%';
  };
  for (size_t at = ptx.find(keyword); at != std::string::npos;
       at = ptx.find(keyword, at)) {
    at += keyword.size();
    size_t begin = at;
    while (begin < ptx.size() &&
           std::isspace(static_cast<unsigned char>(ptx[begin])))
      ++begin;
    size_t end = begin;
    while (end < ptx.size() && isName(ptx[end]))
      ++end;
    if (begin == at || begin == end)
      continue;
    int parameters = 0;
    size_t list = end;
    while (list < ptx.size() &&
           std::isspace(static_cast<unsigned char>(ptx[list])))
      ++list;
    if (list < ptx.size() && ptx[list] == '(') {
      size_t close = ptx.find(')', list);
      for (size_t p = ptx.find(parameter, list); p < close;
           p = ptx.find(parameter, p + parameter.size()))
        ++parameters;
    }
    entries[ptx.substr(begin, end - begin)] = parameters;
  }
  return entries;
}

} // namespace mtp

#endif // MTP_RUNTIME_ARTIFACT_PTXTEXT_H
