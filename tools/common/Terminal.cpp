// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/Terminal.h"

#include "tools/common/Text.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <unistd.h>

using namespace mtp;

void mtp::printError(const char *tool, const Error &error) {
  fprintf(stderr, "%s: error: %s\n", tool, error.message.c_str());
  size_t shown = 0;
  for (const std::string &node : error.nodes) {
    if (error.message.find(node) != std::string::npos)
      continue;
    if (++shown > 20) {
      fprintf(stderr, "  ... (%zu nodes in all)\n", error.nodes.size());
      break;
    }
    fprintf(stderr, "  node %s\n", node.c_str());
  }
}

void mtp::printWarning(const char *tool, const std::string &text) {
  fprintf(stderr, "%s: warning: %s\n", tool, text.c_str());
}

Progress::Progress(bool quiet) : active(!quiet && isatty(STDERR_FILENO)) {}

void Progress::show(const std::string &what, double fraction) {
  if (!active)
    return;
  fprintf(stderr, "\r\033[K%3.0f%% %s", 100 * fraction,
          shortened(what, 60).c_str());
  fflush(stderr);
  shown = true;
}

void Progress::clear() {
  if (shown)
    fprintf(stderr, "\r\033[K");
  shown = false;
}

static Error internalError(const char *tool, const std::string &what) {
  return {exits::Internal,
          "internal",
          "internal error: " + what +
              "; this is a fault of mtp: please file an issue with the command "
              "line, the model if it can be shared, and the output of '" +
              tool + " --version'",
          {}};
}

void mtp::catchFailures(const char *tool, Error &error,
                        const std::function<void()> &body) {
  try {
    body();
  } catch (const std::bad_alloc &) {
    error = {exits::BadInput,
             "memory",
             "the machine has not enough memory for this",
             {}};
  } catch (const std::exception &failure) {
    error = internalError(tool, failure.what());
  } catch (...) {
    error = internalError(tool, "an exception of unknown type");
  }
}

static void exitNow(int signal) { _exit(128 + signal); }

void mtp::exitOnSignals() {
  std::signal(SIGINT, exitNow);
  std::signal(SIGTERM, exitNow);
}
