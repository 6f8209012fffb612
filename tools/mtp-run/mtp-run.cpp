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
#include "tools/mtp-run/Launch.h"
#include "tools/mtp-run/RunCommand.h"
#include "tools/mtp-run/SimulateCommand.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

using namespace mtp;

static int printCapabilities() {
  CompilerLibrary compiler;
  Error error;
  if (!compiler.open(error)) {
    printError(kTool, error);
    return error.exitCode;
  }
  nlohmann::json capabilities = {{"devices", {"cpu", "cuda", "cuda-emulated"}},
                                 {"communicators", availableCommunicators()},
                                 {"ops", compiler.operators()}};
  printf("%s\n", capabilities.dump(1).c_str());
  return kOk;
}

/// What a run has come to: the signal that ended it, or the loss of another
/// rank, whatever failed of that.
static Error verdictOn(Error error) {
  if (otherRankGone())
    return {exits::RankFailure,
            "communication",
            "another rank has ended without a word",
            {}};
  int signal = stopRequested();
  return signal ? endedBySignal(signal) : error;
}

/// Prints what went wrong, writes --json; the exit code.
static int finish(const Options &options, Report &report, Error error) {
  error = verdictOn(std::move(error));
  if (error) {
    report.setError(error);
    if (!otherRankGone()) // its launcher knows more
      printError(kTool, error);
  }
  Error jsonError;
  if (!report.write(options.json, jsonError)) {
    printError(kTool, jsonError);
    if (!error)
      error = jsonError;
  }
  return error.exitCode;
}

/// The same where each rank is a process: process 0 speaks for all.
static int finishProcesses(const Options &options, Report &report,
                           Error error) {
  Processes &processes = *options.session.processes;
  error = verdictOn(std::move(error));
  if (processes.isFirst())
    error.exitCode = finish(options, report, error);
  // From here on the launcher may end whoever is last.
  std::signal(SIGTERM, SIG_IGN);
  double patience = stopRequested() || otherRankGone()
                        ? 2
                        : std::max(2.0, options.session.collectiveTimeout);
  int code = processes.conclude(
      error, patience, [](const Error &said) { printError(kTool, said); });
  if (code) {
    fflush(nullptr);
    std::_Exit(code);
  }
  return code;
}

/// Rank r of the mesh is process r; all were given the same command line.
static bool join(Options &options, int argc, const char *const *argv,
                 Error &error) {
  auto processes = joinProcesses(error);
  if (!processes)
    return false;
  options.session.processes = processes;
  options.quiet |= !processes->isFirst();
  if (!options.isArtifact &&
      (error = checkWorld(processes->size(), options.mesh,
                          options.compile.mesh.empty() ? "tp=1"
                                                       : options.compile.mesh)))
    return false;
  std::string words;
  for (int i = 1; i < argc; ++i)
    words += std::string(argv[i]) + '\n';
  std::vector<size_t> all;
  if (!processes->exchange(std::hash<std::string>()(words), all,
                           options.session.collectiveTimeout,
                           "to begin the run", error))
    return false;
  auto other = std::find_if(all.begin(), all.end(),
                            [&](size_t hash) { return hash != all[0]; });
  if (other != all.end())
    error = {exits::Usage,
             "usage",
             "process " + std::to_string(other - all.begin()) +
                 " was given other options than process 0",
             {}};
  return !error;
}

/// Processes that a launcher has started don't become ranks by themselves.
static void warnOfRepetition(const Options &options, Report &report) {
  if (launchedProcesses() == 1 || launchedRank() > 0)
    return;
  std::string warning = "each of the " + std::to_string(launchedProcesses()) +
                        " processes that were started runs all ranks and "
                        "writes all files; with --comm mpi each is a rank";
  report.addWarning(warning);
  if (!options.quiet)
    printWarning(kTool, warning);
}

static void execute(Options &options, Report &report, Error &error) {
  if (options.predict.simulate)
    simulateCommand(options, report, error);
  else if (options.predict.calibrate)
    calibrateCommand(options, report, error);
  else
    RunCommand(options, report).execute(error);
}

static int run(int argc, const char *const *argv) {
  Options options;
  Error error;
  bool parsed = parseCommandLine(Tool::Run, argc, argv, options, error);
  if (parsed && (options.help || options.version)) {
    puts(options.help ? options.helpText.c_str() : versionText(kTool).c_str());
    return kOk;
  }
  if (parsed && options.capabilities)
    return printCapabilities();
  if (parsed && options.launch && !isLaunched()) {
    int code = launchProcesses(options, argc, argv, error);
    if (error)
      printError(kTool, error);
    return code;
  }
  if (!parsed && launchedRank() > 0)
    return error.exitCode; // process 0 says it
  exitOnSignals();
  if (isLaunched())
    exitOnLauncherSignals();
  bool several = parsed && !options.predict.wanted() && options.inProcesses();
  if (several)
    parsed = join(options, argc, argv, error);
  Report report(options);
  if (parsed && !several && !options.predict.wanted())
    warnOfRepetition(options, report);
  if (parsed)
    catchFailures(kTool, error, [&] {
      // Process 0 writes; the others may be on hosts without its folders.
      if (launchedRank() > 0 || canWriteResults(options, error))
        execute(options, report, error);
    });
  if (options.session.processes)
    return finishProcesses(options, report, error);
  return several && launchedRank() > 0 ? error.exitCode
                                       : finish(options, report, error);
}

int main(int argc, char **argv) {
  limitSpinning(argv);
  int code = kOk;
  Error error;
  catchFailures(kTool, error, [&] { code = run(argc, argv); });
  if (!error)
    return code;
  printError(kTool, error);
  return error.exitCode;
}
