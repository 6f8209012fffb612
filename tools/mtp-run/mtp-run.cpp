// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-run.cpp - runs a model on several ranks ------------------------===//
//
// Links the runtime only; the compiler is opened when the model is not compiled
// yet (tools/common/CompilerLibrary.h).
//
//===----------------------------------------------------------------------===//
#include "tools/common/Terminal.h"
#include "tools/common/WaitPolicy.h"
#include "tools/mtp-run/RunCommand.h"
#include "tools/mtp-run/SimulateCommand.h"

#include <cstdio>

using namespace mtp;

static const char *const tool = "mtp-run";

static int printCapabilities() {
  CompilerLibrary compiler;
  Error error;
  if (!compiler.open(error)) {
    printError(tool, error);
    return error.exitCode;
  }
  nlohmann::json capabilities = {{"devices", {"cpu", "cuda", "cuda-emulated"}},
                                 {"communicators", availableCommunicators()},
                                 {"ops", compiler.operators()}};
  printf("%s\n", capabilities.dump(1).c_str());
  return kOk;
}

static int finish(const Options &options, Report &report, Error error) {
  if (error) {
    report.setError(error);
    printError(tool, error);
  }
  Error jsonError;
  if (!report.write(options.json, jsonError)) {
    printError(tool, jsonError);
    if (!error)
      error = jsonError;
  }
  if (int signal = stopRequested())
    return 128 + signal;
  return error.exitCode;
}

static int run(int argc, const char *const *argv) {
  Options options;
  Error error;
  bool parsed = parseCommandLine(Tool::Run, argc, argv, options, error);
  if (parsed && (options.help || options.version)) {
    puts(options.help ? options.helpText.c_str() : versionText(tool).c_str());
    return kOk;
  }
  if (parsed && options.capabilities)
    return printCapabilities();
  exitOnSignals();
  Report report(options);
  if (parsed)
    catchFailures(tool, error, [&] {
      if (options.predict.simulate)
        simulateCommand(options, report, error);
      else if (options.predict.calibrate)
        calibrateCommand(options, report, error);
      else
        RunCommand(options, report).execute(error);
    });
  return finish(options, report, error);
}

int main(int argc, char **argv) {
  limitSpinning(argv);
  int code = kOk;
  Error error;
  catchFailures(tool, error, [&] { code = run(argc, argv); });
  if (!error)
    return code;
  printError(tool, error);
  return error.exitCode;
}
