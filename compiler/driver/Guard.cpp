// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Guard.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"

#include <exception>
#include <mutex>
#include <new>

using namespace llvm;

namespace {

/// Set by the handler of fatal errors, which doesn't return.
std::string fatalMessage;

void onFatalError(void *, const char *reason, bool) {
  fatalMessage = reason ? reason : "";
  if (CrashRecoveryContext *context = CrashRecoveryContext::GetCurrent())
    context->HandleExit(1);
}

std::string runCatching(const std::function<void()> &body) {
  try {
    body();
    return "";
  } catch (const std::bad_alloc &) {
    return "there is not enough memory to compile";
  } catch (const std::exception &exception) {
    return std::string("an exception was not handled: ") + exception.what();
  } catch (...) {
    return "an exception of an unknown type was not handled";
  }
}

/// Installs the handlers for the time of one body.
struct Handlers {
  Handlers() : fatal(onFatalError) { CrashRecoveryContext::Enable(); }
  ~Handlers() { CrashRecoveryContext::Disable(); }
  ScopedFatalErrorHandler fatal;
};

} // namespace

/// Deep enough for parsing nested regions and recursive walks.
static constexpr unsigned kStackBytes = 64u << 20;

bool mtp::runGuarded(const std::function<void()> &body, std::string &error) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  fatalMessage.clear();
  Handlers handlers;
  CrashRecoveryContext context;
  bool returned = context.RunSafelyOnThread([&] { error = runCatching(body); },
                                            kStackBytes);
  if (!returned) {
    error = fatalMessage.empty() ? "the compiler crashed"
                                 : "the compiler gave up: " + fatalMessage;
    if (fatalMessage.empty() && context.RetCode > 128)
      error += " (signal " + std::to_string(context.RetCode - 128) + ")";
  }
  return error.empty();
}
