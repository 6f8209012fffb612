// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/Compile.h"

#include "runtime/io/Npz.h"
#include "tools/common/Terminal.h"
#include "tools/common/Text.h"
#include "tools/common/UserCalibration.h"

#include <chrono>

using namespace mtp;

bool mtp::compileModel(const char *tool, const Options &options,
                       CompilerLibrary &compiler, const CompileRequest &request,
                       CompileResult &result, Report &report, Error &error) {
  if (!compiler.open(error))
    return false;
  CompileRequest shown = request;
  std::string warning;
  if (auto calibration = userCalibration(warning))
    shown.calibration = toJson(*calibration).dump();
  if (!warning.empty()) {
    report.addWarning(warning);
    if (!options.quiet)
      printWarning(tool, warning);
  }
  Progress progress(options.quiet);
  shown.progress = [&](const std::string &stage, double fraction) {
    progress.show("compile: " + stage, fraction);
  };
  auto start = std::chrono::steady_clock::now();
  bool compiled = compiler.compile(shown, result, error);
  std::chrono::duration<double, std::milli> time =
      std::chrono::steady_clock::now() - start;
  progress.clear();
  report.addCompile(result, time.count());
  if (!options.quiet)
    for (const std::string &warning : result.warnings)
      printWarning(tool, warning);
  if (options.verbose)
    for (auto &[stage, milliseconds] : result.stageMs)
      fprintf(stderr, "%s: %s %s\n", tool, stage.c_str(),
              timeText(milliseconds).c_str());
  return compiled;
}

bool mtp::deliverExplanation(const Options &options,
                             const CompileResult &result, Error &error) {
  if (options.compile.explain && !options.quiet)
    printf("%s\n", result.explain.c_str());
  return options.explainJson.empty() ||
         writeFileAtomically(options.explainJson,
                             result.explainJson.dump(1) + "\n", error);
}

std::string mtp::versionText(const char *tool) {
  return std::string(tool) + " " MTP_VERSION;
}
