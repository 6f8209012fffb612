// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Terminal.h - messages and progress on standard error ---------------===//
#ifndef MTP_TOOLS_COMMON_TERMINAL_H
#define MTP_TOOLS_COMMON_TERMINAL_H

#include "runtime/support/Error.h"

#include <functional>
#include <string>

namespace mtp {

/// "mtp-run: error: MESSAGE", then the nodes that the message doesn't name.
void printError(const char *tool, const Error &error);
void printWarning(const char *tool, const std::string &text);

/// A line on standard error that is overwritten as work goes on. Nothing where
/// standard error is no terminal or `quiet` is set.
class Progress {
public:
  explicit Progress(bool quiet);
  ~Progress() { clear(); }
  void show(const std::string &what, double fraction);
  void clear();

private:
  bool active, shown = false;
};

/// Runs `body`; what it throws becomes an internal error (exit 5) with how to
/// report it, or exit 1 where memory ran out.
void catchFailures(const char *tool, Error &error,
                   const std::function<void()> &body);

/// Before any rank runs a signal ends the process at once with 128 + signal;
/// files are renamed into place when complete, so nothing half written stays.
void exitOnSignals();

} // namespace mtp

#endif // MTP_TOOLS_COMMON_TERMINAL_H
