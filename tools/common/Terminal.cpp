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

static int reportInternal(const char *tool, const char *what) {
  fprintf(stderr,
          "%s: internal error: %s\n%s: this is a fault of mtp; please file an "
          "issue with the command line, the model if it can be shared, and "
          "the output of '%s --version'\n",
          tool, what, tool, tool);
  return exits::Internal;
}

int mtp::runTool(const char *tool, const std::function<int()> &body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    fprintf(stderr, "%s: error: the machine has not enough memory for this\n",
            tool);
    return exits::BadInput;
  } catch (const std::exception &failure) {
    return reportInternal(tool, failure.what());
  } catch (...) {
    return reportInternal(tool, "an exception of unknown type");
  }
}

static void exitNow(int signal) { _exit(128 + signal); }

void mtp::exitOnSignals() {
  std::signal(SIGINT, exitNow);
  std::signal(SIGTERM, exitNow);
}
