// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TrainRun.cpp - a run with --train ----------------------------------===//

#include "tools/mtp-run/RunCommand.h"

#include "runtime/io/Npz.h"
#include "tools/common/Terminal.h"
#include "tools/common/Text.h"
#include "tools/mtp-run/Inputs.h"

#include <algorithm>

using namespace mtp;

static constexpr int kWarmUp = 2;
/// A gradient that is zero up to rounding is compared with this part of the
/// largest one of the model.
static constexpr double kGradientFloor = 1e-3;
static const std::string gradientPrefix = "gradient:";

void RunCommand::describeBatch(CompileRequest &request) const {
  for (auto &[name, tensor] : inputs)
    request.inputs[name] = {tensor.type, tensor.shape};
  if (!request.train)
    return;
  auto labels = inputs.find(request.train->loss.labels);
  if (labels != inputs.end() && labels->second.type == DType::I32)
    request.train->labelType = DType::I32;
}

static bool hasInputGradients(const Entry &entry) {
  return std::any_of(entry.outputs.begin(), entry.outputs.end(),
                     [](const Output &output) {
                       return output.name.rfind(kInputGradient, 0) == 0;
                     });
}

bool RunCommand::train(Error &error) {
  if (!startSession(error) || !readFacts(session->artifact(), facts, error))
    return false;
  const TrainOptions &training = options.training;
  bool wantsOutputs =
      !options.outputs.empty() || !options.outputDirectory.empty();
  const char *missing =
      !training.dumpGrads.empty() && !facts.keepGradients ? "--dump-grads"
      : !training.dumpInputGrads.empty() && !facts.inputGradients
          ? "--dump-input-grads"
      : wantsOutputs && !facts.keepOutputs ? "--outputs"
                                           : nullptr;
  if (missing) {
    error = {kUsage,
             "usage",
             std::string(missing) +
                 ": the artifact does not keep them; give the model itself",
             {}};
    return false;
  }
  entry = &session->artifact().entries[0];
  if (!training.dumpInputGrads.empty() && !hasInputGradients(*entry)) {
    error = {kBadInput,
             "input",
             "--dump-input-grads: no input has a gradient; those of " +
                 options.model + " hold integers",
             {}};
    return false;
  }
  if (options.randomSeed)
    addRandomBatch();
  Trainer trainer(*session, facts, training, training.steps,
                  options.session.seed);
  if (!runSteps(trainer, error) || !writeTraining(trainer, error))
    return false;
  if (!options.check) {
    printTraining(trainer);
    return true;
  }
  session.reset(); // its memory is the reference's now
  if (!isFirst())
    return true;
  bool good = compareTraining(error);
  printTraining(trainer);
  return good && reportDifferences(error);
}

/// Micro-batches are drawn one after the other.
void RunCommand::addRandomBatch() {
  TensorMap drawn;
  for (int64_t micro = 0; micro < facts.accumulate; ++micro) {
    TensorMap part = randomInputs(session->artifact(), *entry,
                                  *options.randomSeed + uint64_t(micro));
    for (auto &[name, tensor] : part) {
      if (name.rfind("mtp.", 0) == 0)
        continue;
      if (name == facts.loss.labels && facts.classes)
        tensor = randomLabels(tensor.type, tensor.shape, facts.classes,
                              *options.randomSeed + uint64_t(micro));
      appendRows(drawn[name], std::move(tensor));
    }
  }
  for (auto &[name, tensor] : drawn)
    inputs.emplace(name, std::move(tensor));
}

bool RunCommand::runSteps(Trainer &trainer, Error &error) {
  Progress progress(options.quiet);
  auto begin = std::chrono::steady_clock::now();
  auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  };
  size_t measured = 0; // steps that are not
  auto more = [&](size_t done) {
    if (!options.benchSeconds)
      return done < size_t(options.training.steps);
    return done <= kWarmUp || elapsed() < *options.benchSeconds;
  };
  for (size_t done = 0;; ++done) {
    bool goOn = more(done);
    if (!agree(options.session.processes.get(), goOn,
               options.session.collectiveTimeout, error))
      return false;
    if (!goOn)
      break;
    bool fixed = options.training.data.empty();
    if (interrupted(error) || (!fixed && !batches.next(error)) ||
        !trainer.step(fixed ? inputs : batches.current(), error))
      return false;
    if (done == 0 && facts.keepGradients &&
        !trainer.readGradients(gradients, error))
      return false;
    if (options.benchSeconds && done + 1 == kWarmUp) {
      measured = kWarmUp;
      begin = std::chrono::steady_clock::now();
    }
    progress.show("step " + std::to_string(done + 1) + ": loss " +
                      numberText(trainer.losses.back(), 6),
                  options.benchSeconds
                      ? 0
                      : double(done + 1) / double(options.training.steps));
  }
  progress.clear();
  if (!options.benchSeconds && trainer.times.size() > 1)
    measured = 1;
  std::vector<double> all(trainer.times.begin() + ptrdiff_t(measured),
                          trainer.times.end());
  std::sort(all.begin(), all.end());
  size_t middle = all.size() / 2;
  times = {all.front(),
           all.size() % 2 ? all[middle] : (all[middle - 1] + all[middle]) / 2,
           all.back(), int64_t(all.size())};
  report.addTimes(times);
  report.addTraining(trainer.losses, trainer.norms);
  report.addSession(*session, trainer.counts);
  if (!addPeakMemory(error))
    return false;
  for (const std::string &warning : trainer.warnings) {
    report.addWarning(warning);
    if (!options.quiet)
      printWarning(kTool, warning);
  }
  return true;
}

bool RunCommand::writeTraining(Trainer &trainer, Error &error) {
  const TrainOptions &training = options.training;
  if (interrupted(error))
    return false;
  if ((options.check || !training.dumpParams.empty()) &&
      !session->readParameters(trained, error))
    return false;
  if (!isFirst())
    return true;
  addTied(facts, trained);
  outputs = std::move(trainer.outputs);
  auto write = [&](const std::string &file, const TensorMap &tensors) {
    return file.empty() || writeNpz(file, tensors, error);
  };
  return write(options.saveInputs, inputs) && write(options.outputs, outputs) &&
         (options.outputDirectory.empty() ||
          writeOutputDirectory(options.outputDirectory, outputs, error)) &&
         write(training.dumpGrads, gradients) &&
         write(training.dumpParams, trained) &&
         write(training.dumpInputGrads, trainer.inputGradients);
}

/// Differences of gradients, whose largest entry counts for at least a part of
/// that of the model, then of parameters.
static std::vector<Difference> compareSteps(const TensorMap &gradients,
                                            const TensorMap &trained,
                                            const TensorMap &referenceGradients,
                                            const TensorMap &referenceTrained) {
  std::vector<Difference> all = compareAll(gradients, referenceGradients);
  double largest = 0;
  for (const Difference &difference : all)
    largest = std::max(largest, difference.maxReference);
  for (Difference &difference : all) {
    difference.name = gradientPrefix + difference.name;
    difference.maxReference =
        std::max(difference.maxReference, kGradientFloor * largest);
    if (difference.maxAbs > 0)
      difference.maxRel = difference.maxAbs / difference.maxReference;
  }
  for (Difference &difference : compareAll(trained, referenceTrained))
    all.push_back(std::move(difference));
  return all;
}

/// Of every parameter that AdamW updated; `gradients` are those of the
/// reference.
static void allowForUpdates(std::vector<Difference> &all, double rates,
                            const TrainingFacts &facts, TensorMap gradients,
                            const TensorMap &trained,
                            const TensorMap &referenceTrained) {
  std::map<std::string, double> errors;
  for (const Difference &difference : all)
    if (difference.name.rfind(gradientPrefix, 0) == 0)
      errors[difference.name.substr(gradientPrefix.size())] = difference.maxAbs;
  addTied(facts, gradients);
  forEachTied(
      facts, [&](const std::string &name) { return errors.count(name) != 0; },
      [&](const std::string &from, const std::string &to, bool) {
        errors[to] = errors[from];
      });
  for (Difference &difference : all) {
    auto error = errors.find(difference.name);
    auto gradient = gradients.find(difference.name);
    auto have = trained.find(difference.name);
    auto want = referenceTrained.find(difference.name);
    if (error != errors.end() && gradient != gradients.end() &&
        have != trained.end() && want != referenceTrained.end())
      allowForRounding(difference, have->second, want->second, gradient->second,
                       {rates, facts.eps, error->second});
  }
}

bool RunCommand::compareTraining(Error &error) {
  std::unique_ptr<Session> whole;
  if (!startReference(whole, error))
    return false;
  TrainingFacts wholeFacts;
  if (!readFacts(whole->artifact(), wholeFacts, error))
    return false;
  int64_t steps = int64_t(report.value()["loss"].size());
  Trainer trainer(*whole, wholeFacts, options.training, options.training.steps,
                  options.session.seed);
  BatchSource again;
  if (!options.training.data.empty() &&
      !again.open(options.training.data, given, error))
    return false;
  TensorMap wholeGradients, wholeTrained;
  Progress progress(options.quiet);
  for (int64_t done = 0; done < steps; ++done) {
    bool fixed = options.training.data.empty();
    progress.show("check: one rank in float64", double(done) / double(steps));
    if (interrupted(error) || (!fixed && !again.next(error)) ||
        !trainer.step(fixed ? inputs : again.current(), error))
      return false;
    if (done == 0 && !trainer.readGradients(wholeGradients, error))
      return false;
  }
  progress.clear();
  if (!whole->readParameters(wholeTrained, error))
    return false;
  addTied(wholeFacts, wholeTrained);
  differences = compareSteps(gradients, trained, wholeGradients, wholeTrained);
  double rates = 0;
  for (int64_t step = 0; step < steps; ++step)
    rates += learningRate(options.training, step, options.training.steps);
  if (facts.optimizer == "adamw")
    allowForUpdates(differences, rates, facts, wholeGradients, trained,
                    wholeTrained);
  report.addCheck(differences);
  return true;
}

void RunCommand::printTraining(const Trainer &trainer) const {
  if (options.quiet)
    return;
  const nlohmann::json &facts = report.value();
  auto text = [&](const char *key) { return facts[key].get<std::string>(); };
  printf("Model: %s, mesh %s, %s on %s\n%s", options.model.c_str(),
         text("mesh").c_str(), text("precision").c_str(),
         text("device").c_str(), planText.c_str());
  // At most about 20 lines, the last step always.
  size_t steps = trainer.losses.size(), stride = (steps + 19) / 20;
  for (size_t i = 0; i < steps; ++i)
    if (i % stride == 0 || i + 1 == steps)
      printf("Step %4zu  loss %-10s  gradient norm %s\n", i + 1,
             numberText(trainer.losses[i], 7).c_str(),
             numberText(trainer.norms[i], 5).c_str());
  std::string time = timeText(times.median) + " a step";
  if (times.runs > 1)
    time += " (median of " + std::to_string(times.runs) + ", " +
            timeText(times.min) + " to " + timeText(times.max) + ")";
  if (!options.isArtifact)
    time += "; compiled in " + timeText(facts["compile_ms"]["total"]);
  printf("Time: %s\n", time.c_str());
  if (options.check)
    printf("Agreement with one rank in float64:\n%s",
           checkTable(differences, options.rtol, options.atol).c_str());
}
