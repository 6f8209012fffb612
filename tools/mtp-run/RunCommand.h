// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RunCommand.h - one run of mtp-run ----------------------------------===//
#ifndef MTP_TOOLS_MTP_RUN_RUNCOMMAND_H
#define MTP_TOOLS_MTP_RUN_RUNCOMMAND_H

#include "tools/common/Compile.h"
#include "tools/mtp-run/Trainer.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace mtp {

/// Who speaks, in messages.
inline constexpr const char *kTool = "mtp-run";

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
  bool makeArtifact(Error &error);
  bool shareArtifact(Error &error);
  bool loadArtifact(Error &error);
  bool compile(Error &error);
  bool startSession(Error &error);
  bool chooseInputs(Error &error);
  bool runOnce(Error &error);
  bool measure(Error &error);
  bool writeResults(Error &error);
  bool compareWithReference(Error &error);
  bool reportDifferences(Error &error);
  bool startReference(std::unique_ptr<Session> &whole, Error &error);

  // Training (TrainRun.cpp).
  bool train(Error &error);
  bool runSteps(Trainer &trainer, Error &error);
  bool writeTraining(Trainer &trainer, Error &error);
  bool compareTraining(Error &error);
  void addRandomBatch();
  void printTraining(const Trainer &trainer) const;
  /// Shapes and types of the inputs, for the compiler.
  void describeBatch(CompileRequest &request) const;
  bool runReference(TensorMap &reference, Error &error);
  bool interrupted(Error &error) const;
  /// Where ranks are processes, one writes and compares.
  bool isFirst() const {
    return !options.session.processes || options.session.processes->isFirst();
  }
  bool addPeakMemory(Error &error);
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

  TensorMap given; ///< by --input and --inputs
  BatchSource batches;
  TrainingFacts facts;
  TensorMap gradients, trained; ///< of the first step; after the last
};

/// Name, largest difference and verdict of every tensor.
std::string checkTable(const std::vector<Difference> &differences, double rtol,
                       double atol);

} // namespace mtp

#endif // MTP_TOOLS_MTP_RUN_RUNCOMMAND_H
