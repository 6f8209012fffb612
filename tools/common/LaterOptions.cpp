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
  const char *name, *type, *help;
};
} // namespace

static const LaterOption laterOptions[] = {
    {"--trace", "FILE", "Write a Perfetto trace"},
    {"--save", "DIR", "Write a checkpoint"},
    {"--load", "DIR", "Start from a checkpoint"},
    {"--checkpoint-every", "N", "Steps between checkpoints"},
    {"--keep", "N", "Checkpoints kept"},
};

void mtp::addLaterOptions(CLI::App &app) {
  static std::vector<std::string> ignoredValues;
  for (const LaterOption &later : laterOptions)
    app.add_option(later.name, ignoredValues, later.help)
        ->type_name(later.type)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group("Not in this build");
}

bool mtp::isLaterOption(const std::string &name) {
  return std::any_of(
      std::begin(laterOptions), std::end(laterOptions),
      [&](const LaterOption &later) { return name == later.name; });
}
