// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-compile.cpp - a model becomes an artifact
//-----------------------===//
#include "runtime/io/Npz.h"
#include "tools/common/Compile.h"
#include "tools/common/PlanTable.h"
#include "tools/common/Terminal.h"
#include "tools/common/Text.h"

#include <cstdio>

using namespace mtp;

static const char *const tool = "mtp-compile";

/// The one value of each --dim.
static bool bindDims(Options &options, Error &error) {
  for (auto &[name, values] : options.dims) {
    if (values.size() > 1) {
      error = {kNotPresent,
               "not-present",
               "--dim " + name +
                   " with several sizes in one artifact: not in this build",
               {}};
      return false;
    }
    options.compile.dims[name] = values[0];
  }
  return true;
}

static bool compileArtifact(Options &options, Report &report, Error &error) {
  if (!bindDims(options, error))
    return false;
  // --explain-json needs the reasons as well.
  CompileRequest request = options.compile;
  request.explain |= !options.explainJson.empty();
  CompilerLibrary compiler;
  CompileResult result;
  if (!compileModel(tool, options, compiler, request, result, report, error))
    return false;
  report.addArtifact(result.artifact);
  report.setPeakMemory();
  std::string bytes = result.artifact.serialize();
  if (!deliverExplanation(options, result, error) ||
      !writeFileAtomically(options.artifactFile, bytes, error))
    return false;
  if (!options.quiet)
    printf("%s\n%s: %s, compiled in %s\n",
           planTable(result.artifact, &result).c_str(),
           options.artifactFile.c_str(),
           bytesText(int64_t(bytes.size())).c_str(),
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
    catchFailures(tool, error,
                  [&] { compileArtifact(options, report, error); });
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
