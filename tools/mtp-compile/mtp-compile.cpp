// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-compile.cpp - a model becomes an artifact ----------------------===//
#include "runtime/io/Npz.h"
#include "runtime/loader/WeightFiles.h"
#include "tools/common/ArtifactFile.h"
#include "tools/common/Compile.h"
#include "tools/common/PlanTable.h"
#include "tools/common/Terminal.h"
#include "tools/common/Text.h"
#include "tools/report/ReportPage.h"

#include <cstdio>

using namespace mtp;

static const char *const tool = "mtp-compile";

/// More programs than this in one file is taken for a mistake.
static const size_t maxPrograms = 64;

/// Compiles for one combination of sizes.
static bool compileOne(const Options &options, CompilerLibrary &compiler,
                       const std::map<std::string, int64_t> &dims,
                       CompileResult &result, Report &report, Error &error) {
  CompileRequest request = options.compile;
  request.dims = dims;
  request.explain = options.wantsReasons();
  return compileModel(tool, options, compiler, request, result, report, error);
}

static bool compileArtifact(const Options &options, Report &report,
                            Error &error) {
  auto combinations = dimCombinations(options.dims);
  if (combinations.size() > maxPrograms) {
    error = {kUsage,
             "usage",
             "--dim asks for " + std::to_string(combinations.size()) +
                 " programs; at most " + std::to_string(maxPrograms) +
                 " go into one artifact",
             {}};
    return false;
  }
  if (options.compile.train && combinations.size() > 1) {
    error = {kUsage,
             "usage",
             "--dim gives several sizes, but a training step has its own "
             "parameters: compile one of them",
             {}};
    return false;
  }
  CompilerLibrary compiler;
  CompileResult first;
  std::vector<Artifact> artifacts;
  for (auto &dims : combinations) {
    CompileResult result;
    if (!compileOne(options, compiler, dims, result, report, error))
      return false;
    artifacts.push_back(std::move(result.artifact));
    if (artifacts.size() == 1)
      first = std::move(result);
  }
  report.addArtifact(artifacts[0]);
  report.setPeakMemory();
  if (!hashSources(artifacts, error))
    return false;
  std::string bytes = serializeArtifacts(artifacts);
  if (!deliverExplanation(options, first, error) ||
      !report::deliverReports(options, artifacts[0], first.explainJson,
                              error) ||
      !writeFileAtomically(options.artifactFile, bytes, error))
    return false;
  if (!options.quiet)
    printf("%s%s: %s, %zu program%s, compiled in %s\n",
           planTable(artifacts[0], &first).c_str(),
           options.artifactFile.c_str(),
           bytesText(int64_t(bytes.size())).c_str(), artifacts.size(),
           artifacts.size() > 1 ? "s (the first is shown)" : "",
           timeText(report.value()["compile_ms"]["total"]).c_str());
  return true;
}

static int runCompile(int argc, const char *const *argv) {
  Options options;
  Error error;
  bool parsed = parseCommandLine(Tool::Compile, argc, argv, options, error);
  if (parsed && (options.help || options.version)) {
    puts(options.help ? options.helpText.c_str() : versionText(tool).c_str());
    return kOk;
  }
  exitOnSignals();
  Report report(options);
  if (parsed)
    catchFailures(tool, error, [&] {
      if (canWriteResults(options, error))
        compileArtifact(options, report, error);
    });
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
  return error.exitCode;
}

int main(int argc, char **argv) {
  int code = kOk;
  Error error;
  catchFailures(tool, error, [&] { code = runCompile(argc, argv); });
  if (!error)
    return code;
  printError(tool, error);
  return error.exitCode;
}
