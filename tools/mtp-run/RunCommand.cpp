// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mtp-run/RunCommand.h"

#include "runtime/io/Npz.h"
#include "runtime/loader/WeightFiles.h"
#include "tools/common/ArtifactFile.h"
#include "tools/common/PlanTable.h"
#include "tools/common/Table.h"
#include "tools/common/Terminal.h"
#include "tools/common/Text.h"
#include "tools/mtp-run/Inputs.h"
#include "tools/mtp-run/Launch.h"
#include "tools/report/ReportPage.h"

#include <algorithm>

using namespace mtp;

bool RunCommand::explainOnly() const {
  return !options.hasData() &&
         (options.wantsReasons() || !options.compile.savePlan.empty());
}

bool RunCommand::interrupted(Error &error) const {
  int signal = stopRequested();
  if (!signal)
    return false;
  error = endedBySignal(signal);
  return true;
}

bool RunCommand::execute(Error &error) {
  if (!readGivenInputs(options, given, error) ||
      !batches.open(options.training.data, given, error))
    return false;
  inputs = batches.first();
  if (!obtainArtifact(error))
    return false;
  if (explainOnly()) {
    if (!isFirst())
      return true;
    report.setPeakMemory();
    if (!options.quiet) {
      printf("%s", planText.c_str());
      fprintf(stderr, "%s: no inputs are given, so nothing is run\n", kTool);
    }
    return true;
  }
  if (options.training.train)
    return train(error);
  return startSession(error) && chooseInputs(error) && runOnce(error) &&
         measure(error) && writeResults(error) && compareWithReference(error);
}

/// Process 0 makes it, so that programs cannot differ.
bool RunCommand::obtainArtifact(Error &error) {
  if (isFirst() && !makeArtifact(error))
    return false;
  return !options.session.processes || explainOnly() || shareArtifact(error);
}

bool RunCommand::shareArtifact(Error &error) {
  Processes &processes = *options.session.processes;
  std::string bytes, reason;
  if (processes.isFirst()) {
    // Other hosts may have other files of that name.
    std::vector<Artifact> programs = {std::move(artifact)};
    if (!processes.oneHost() && !hashSources(programs, error))
      return false;
    artifact = std::move(programs[0]);
    bytes = artifact.serialize();
  }
  if (!processes.share(bytes, 0, "to share the program", error))
    return false;
  if (processes.isFirst())
    return true;
  if (Artifact::parse(bytes, artifact, reason)) {
    report.addArtifact(artifact);
    return true;
  }
  error = {kInternal,
           "internal",
           "rank " + std::to_string(processes.rank()) +
               " can't read the program of rank 0: " + reason,
           {}};
  return false;
}

bool RunCommand::makeArtifact(Error &error) {
  if (options.isArtifact ? !loadArtifact(error) : !compile(error))
    return false;
  report.addArtifact(artifact);
  if (!report::deliverReports(options, artifact, compiled.explainJson, error))
    return false;
  planText = planTable(artifact, options.isArtifact ? nullptr : &compiled);
  return true;
}

bool RunCommand::loadArtifact(Error &error) {
  std::string bytes, reason;
  std::vector<Artifact> programs;
  if (!readFile(options.model, bytes, error))
    return false;
  int chosen = -1;
  if (parseArtifacts(bytes, programs, reason))
    // The session explains what is wrong with inputs of a single program.
    chosen = programs.size() == 1 || options.training.train
                 ? 0
                 : chooseArtifact(programs, inputs, reason);
  if (chosen >= 0) {
    artifact = std::move(programs[size_t(chosen)]);
    bool trains =
        artifact.plan.is_object() && artifact.plan.contains("training");
    if (trains == options.training.train)
      return true;
    error = {kUsage,
             "usage",
             options.model + (trains ? " is a training step: give --train"
                                     : " was not compiled for training"),
             {}};
    return false;
  }
  error = {kBadInput, "artifact", options.model + ": " + reason, {}};
  return false;
}

bool RunCommand::compile(Error &error) {
  CompileRequest &request = options.compile;
  describeBatch(request);
  request.randomInputs = options.randomSeed.has_value() || explainOnly();
  // Of several sizes the inputs choose (checkDims); without inputs the first is
  // taken.
  for (auto &[name, values] : options.dims)
    if (values.size() == 1 || inputs.empty())
      request.dims[name] = values[0];
  CompileRequest asked = request;
  asked.explain = options.wantsReasons();
  if (!compileModel(kTool, options, compiler, asked, compiled, report, error) ||
      !deliverExplanation(options, compiled, error))
    return false;
  artifact = std::move(compiled.artifact);
  return true;
}

bool RunCommand::startSession(Error &error) {
  installSignalHandlers();
  if (isLaunched())
    installLauncherSignals();
  Progress progress(options.quiet);
  progress.show("load weights", 0);
  session = Session::create(std::move(artifact), options.session, error);
  progress.clear();
  if (session && options.verbose)
    fprintf(stderr,
            "%s: %d ranks of %d threads; each has %s of parameters, %s of "
            "arena, %s of packed weights and scratch\n",
            kTool, session->ranks(), session->threadsPerRank(),
            bytesText(session->parameterBytesPerRank()).c_str(),
            bytesText(session->arenaBytesPerRank()).c_str(),
            bytesText(session->libraryBytesPerRank()).c_str());
  return session != nullptr;
}

bool RunCommand::chooseInputs(Error &error) {
  const std::vector<Entry> &entries = session->artifact().entries;
  int index =
      options.randomSeed && inputs.empty() ? 0 : session->selectEntry(inputs);
  entry = &entries[index < 0 ? 0 : size_t(index)];
  if (!checkDims(options, *entry, error))
    return false;
  if (options.randomSeed)
    addRandomInputs(session->artifact(), *entry, *options.randomSeed, inputs);
  inputs = widened(inputs, *entry);
  return session->check(inputs, error);
}

bool RunCommand::runOnce(Error &error) {
  auto start = std::chrono::steady_clock::now();
  if (!session->run(inputs, outputs, error))
    return false;
  std::chrono::duration<double, std::milli> time =
      std::chrono::steady_clock::now() - start;
  times = {time.count(), time.count(), time.count(), 1};
  return true;
}

bool RunCommand::measure(Error &error) {
  Progress progress(options.quiet);
  if (options.benchSeconds) {
    progress.show("bench, " + numberText(*options.benchSeconds) + " s", 0);
    if (!session->bench(inputs, *options.benchSeconds, times, error))
      return false;
  }
  report.addTimes(times);
  report.addSession(*session);
  return addPeakMemory(error);
}

/// Of the process that has most.
bool RunCommand::addPeakMemory(Error &error) {
  std::vector<int64_t> all = {peakResidentBytes()};
  if (Processes *processes = options.session.processes.get())
    if (!processes->exchange(all[0], all, options.session.collectiveTimeout,
                             "to compare memory", error))
      return false;
  report.add("peak_rss_bytes", *std::max_element(all.begin(), all.end()));
  return true;
}

bool RunCommand::writeResults(Error &error) {
  if (interrupted(error))
    return false;
  if (!isFirst())
    return true;
  if (!options.saveInputs.empty() &&
      !writeNpz(options.saveInputs, inputs, error))
    return false;
  if (!options.outputs.empty() && !writeNpz(options.outputs, outputs, error))
    return false;
  return options.outputDirectory.empty() ||
         writeOutputDirectory(options.outputDirectory, outputs, error);
}

bool RunCommand::startReference(std::unique_ptr<Session> &whole, Error &error) {
  CompileRequest request = options.compile;
  request.mesh = "tp=1";
  request.precision = "f64";
  request.device = "cpu";
  request.plan = request.savePlan = request.dumpDir = "";
  request.pins.clear();
  request.explain = false;
  request.memoryBudget = 0;
  if (request.train) {
    request.train->zero = 0;
    request.train->sequenceParallel = false;
    request.train->recompute = "none";
    request.train->keepGradients = true;
  }
  describeBatch(request);
  Progress progress(options.quiet);
  progress.show("check: one rank in float64", 0);
  CompileResult result;
  if (!compiler.compile(request, result, error))
    return false;
  SessionOptions settings = options.session;
  settings.threadsPerRank = 0;
  settings.comm.clear();
  settings.processes = nullptr;
  settings.poison = false;
  whole = Session::create(std::move(result.artifact), settings, error);
  return whole != nullptr;
}

bool RunCommand::runReference(TensorMap &reference, Error &error) {
  std::unique_ptr<Session> whole;
  if (!startReference(whole, error))
    return false;
  TensorMap wide = widened(inputs, whole->artifact().entries[0]);
  return whole->run(wide, reference, error);
}

std::string mtp::checkTable(const std::vector<Difference> &differences,
                            double rtol, double atol) {
  Table table(
      {{"tensor"}, {"max|a-b|", true}, {"max|a-b|/max|b|", true}, {""}});
  for (const Difference &difference : differences) {
    Difference strict = difference;
    strict.slack = 0;
    table.add({difference.name, numberText(difference.maxAbs),
               numberText(difference.maxRel),
               !difference.problem.empty() ? difference.problem
               : strict.within(rtol, atol) ? "ok"
               : difference.within(rtol, atol)
                   ? "ok (where gradients are zero up to rounding)"
                   : "differs"});
  }
  return table.text();
}

bool RunCommand::compareWithReference(Error &error) {
  if (!options.check) {
    printSummary();
    return true;
  }
  session.reset(); // its memory is the reference's now
  if (!isFirst())
    return true;
  TensorMap reference;
  if (!runReference(reference, error))
    return false;
  differences = compareAll(outputs, reference);
  report.addCheck(differences);
  printSummary();
  return reportDifferences(error);
}

bool RunCommand::reportDifferences(Error &error) {
  auto wrong =
      std::count_if(differences.begin(), differences.end(),
                    [&](const Difference &difference) {
                      return !difference.within(options.rtol, options.atol);
                    });
  if (!wrong)
    return true;
  if (options.quiet)
    fprintf(stderr, "%s",
            checkTable(differences, options.rtol, options.atol).c_str());
  error = {kMismatch,
           "mismatch",
           std::to_string(wrong) + " of " + std::to_string(differences.size()) +
               " tensors differ from one rank in float64 by more than rtol " +
               numberText(options.rtol) + ", atol " + numberText(options.atol),
           {}};
  return false;
}

void RunCommand::printSummary() const {
  if (options.quiet)
    return;
  const nlohmann::json &facts = report.value();
  auto text = [&](const char *key) { return facts[key].get<std::string>(); };
  printf("Model: %s, mesh %s, %s on %s\n%s", options.model.c_str(),
         text("mesh").c_str(), text("precision").c_str(),
         text("device").c_str(), planText.c_str());
  std::string time = timeText(times.median) + " a step";
  if (times.runs > 1)
    time += " (median of " + std::to_string(times.runs) + ", " +
            timeText(times.min) + " to " + timeText(times.max) + ")";
  else
    time += " (first one; --bench measures)";
  if (!options.isArtifact)
    time += "; compiled in " + timeText(facts["compile_ms"]["total"]);
  printf("Time: %s\n", time.c_str());
  if (options.check)
    printf("Agreement with one rank in float64:\n%s",
           checkTable(differences, options.rtol, options.atol).c_str());
}
