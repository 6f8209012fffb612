// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RunCommand.h - one run of mtp-run
//-----------------------------------===//
#ifndef MTP_TOOLS_MTP_RUN_RUNCOMMAND_H
#define MTP_TOOLS_MTP_RUN_RUNCOMMAND_H

#include "tools/common/Compile.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace mtp {

/// Compiles or loads, runs, compares, writes. Each step returns false with
/// `error` set; a mismatch of --check is such an error, with exit 3, and comes
/// after everything is written.
class RunCommand {
public:
  RunCommand(Options &options, Report &report)
      : options(options), report(report) {}

  bool execute(Error &error);

private:
  bool obtainArtifact(Error &error);
  bool loadArtifact(Error &error);
  bool compile(Error &error);
  bool startSession(Error &error);
  bool chooseInputs(Error &error);
  bool runOnce(Error &error);
  bool measure(Error &error);
  bool writeResults(Error &error);
  bool compareWithReference(Error &error);
  bool runReference(TensorMap &reference, Error &error);
  bool interrupted(Error &error) const;
  bool explainOnly() const;
  void printSummary() const;

  Options &options;
  Report &report;
  CompilerLibrary compiler;
  CompileResult compiled; ///< of a model
  Artifact artifact;      ///< until the session owns it
  std::string planText;   ///< the plan's tables
  std::unique_ptr<Session> session;
  const Entry *entry = nullptr;
  TensorMap inputs, outputs;
  StepTimes times;
  std::vector<Difference> differences;
};

} // namespace mtp

#endif // MTP_TOOLS_MTP_RUN_RUNCOMMAND_H
