// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mtp-run/LauncherOutput.h"

#include <cstdio>
#include <regex>

using namespace mtp;

void LauncherOutput::take(const char *bytes, size_t size) {
  rest.append(bytes, size);
  size_t end;
  while ((end = rest.find('\n')) != std::string::npos) {
    line(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
}

void LauncherOutput::end() {
  if (!rest.empty())
    line(rest);
  rest.clear();
}

void LauncherOutput::line(const std::string &text) {
  bool border =
      text.size() > 60 && text.find_first_not_of('-') == std::string::npos;
  if (border)
    inside = !inside;
  if (border || inside || text.rfind("mpirun: ", 0) == 0) {
    if (!border)
      remarks += text + "\n";
    return;
  }
  spoke = true;
  fprintf(stderr, "%s\n", text.c_str());
}

std::string LauncherOutput::killed() const {
  static const std::regex remark(
      R"(process rank (\d+)[^\n]* exited on\s+signal (\d+))");
  std::smatch match;
  if (!std::regex_search(remarks, match, remark))
    return {};
  return "rank " + match[1].str() + " was ended by signal " + match[2].str() +
         ", and all others with it";
}
