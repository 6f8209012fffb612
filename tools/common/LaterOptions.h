// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LaterOptions.h - options that this build refuses by name -----------===//
#ifndef MTP_TOOLS_COMMON_LATEROPTIONS_H
#define MTP_TOOLS_COMMON_LATEROPTIONS_H

#include <string>

namespace CLI {
class App;
}

namespace mtp {

/// Adds the options of mtp-run for checkpoints and the rest that is not in this
/// build, so that they are read, listed in --help, and refused.
void addLaterOptions(CLI::App &app);
/// `name` with its dashes.
bool isLaterOption(const std::string &name);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_LATEROPTIONS_H
