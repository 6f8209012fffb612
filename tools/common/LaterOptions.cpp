// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/LaterOptions.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace {
struct LaterOption {
  const char *name;
  const char *type; ///< "" for a flag, "[...]" for a flag with optional value
  const char *help;
  bool compileToo; ///< mtp-compile has it as well
};
} // namespace

static const LaterOption laterOptions[] = {
    {"--launch", "N", "Start N processes (MPI)", false},
    {"--trace", "FILE", "Write a Perfetto trace", false},
    {"--save", "DIR", "Write a checkpoint", false},
    {"--load", "DIR", "Start from a checkpoint", false},
    {"--checkpoint-every", "N", "Steps between checkpoints", false},
    {"--keep", "N", "Checkpoints kept", false},
};

void mtp::addLaterOptions(CLI::App &app, bool compileOnly) {
  for (const LaterOption &later : laterOptions) {
    if (compileOnly && !later.compileToo)
      continue;
    CLI::Option *option;
    if (*later.type == '\0' || *later.type == '[') {
      static std::string ignoredValue;
      option = app.add_flag(later.name, ignoredValue, later.help);
    } else {
      static std::vector<std::string> ignoredValues;
      option = app.add_option(later.name, ignoredValues, later.help);
      option->type_name(later.type)
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    option->group("Not in this build");
  }
}

bool mtp::isLaterOption(const std::string &name) {
  return std::any_of(
      std::begin(laterOptions), std::end(laterOptions),
      [&](const LaterOption &later) { return name == later.name; });
}
