// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CalibrationBench.cpp - predicted against measured, this machine ----===//
//
// Usage: calibration-bench [MODEL.mtp...]
//
// Measures the machine unless `mtp-run --calibrate` did, then measures
// collectives again at sizes that lie between those of the calibration, and the
// step of every artifact, and prints them beside the predictions.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Npz.h"
#include "runtime/session/Session.h"
#include "tools/calibrate/Measure.h"
#include "tools/calibrate/PredictStep.h"
#include "tools/common/UserCalibration.h"
#include "tools/common/WaitPolicy.h"

#include <cmath>
#include <cstdio>

using namespace mtp;

static plan::Time predicted(plan::CollectiveKind kind,
                            const plan::Machine &machine, int64_t bytes) {
  switch (kind) {
  case plan::CollectiveKind::AllReduce:
    return plan::allReduce(machine, {0}, bytes);
  case plan::CollectiveKind::AllGather:
    return plan::allGather(machine, {0}, bytes);
  case plan::CollectiveKind::ReduceScatter:
    return plan::reduceScatter(machine, {0}, bytes);
  case plan::CollectiveKind::AllToAll:
    return plan::allToAll(machine, {0}, bytes);
  case plan::CollectiveKind::Permute:
    return plan::permute(machine, {0}, bytes);
  }
  return 0;
}

static bool collectives(const plan::Calibration &calibration, Error &error) {
  printf("%-16s %6s %12s %14s %14s %8s\n", "collective", "ranks", "bytes",
         "measured us", "predicted us", "error");
  for (int64_t ranks : measuredRanks()) {
    plan::Machine machine = machineFor(calibration, {{"tp", ranks}});
    double sum = 0, worst = 0;
    int count = 0;
    for (plan::CollectiveKind kind :
         {plan::CollectiveKind::AllReduce, plan::CollectiveKind::AllGather,
          plan::CollectiveKind::ReduceScatter, plan::CollectiveKind::AllToAll,
          plan::CollectiveKind::Permute})
      for (int64_t bytes :
           {96 << 10, 384 << 10, 1536 << 10, 6 << 20, 24 << 20}) {
        double seconds;
        if (!measureCollective(kind, ranks, bytes, 0.2, seconds, error))
          return false;
        double guess = double(predicted(kind, machine, bytes)) * 1e-12;
        double share = guess / seconds - 1;
        sum += std::abs(share);
        worst = std::max(worst, std::abs(share));
        ++count;
        printf("%-16s %6ld %12ld %14.1f %14.1f %+7.1f%%\n", plan::name(kind),
               long(ranks), long(bytes), 1e6 * seconds, 1e6 * guess,
               100 * share);
      }
    printf("over %ld ranks%s: error mean %.1f %%, largest %.1f %%\n",
           long(ranks), ranks > calibration.cores ? " (more than cores)" : "",
           100 * sum / count, 100 * worst);
  }
  return true;
}

static bool step(const std::string &path, const plan::Calibration &calibration,
                 Error &error) {
  std::string bytes, reason;
  Artifact artifact;
  if (!readFile(path, bytes, error))
    return false;
  if (!Artifact::parse(bytes, artifact, reason)) {
    error = {exits::BadInput, "artifact", path + ": " + reason, {}};
    return false;
  }
  PredictedStep guess = predictStep(artifact, artifact.entries[0], calibration);
  TensorMap inputs = randomInputs(artifact, artifact.entries[0], 0);
  std::string mesh = artifact.mesh;
  auto session = Session::create(std::move(artifact), {}, error);
  StepTimes times;
  if (!session || !session->bench(inputs, 5, times, error))
    return false;
  auto ms = [](plan::Time time) { return double(time) * 1e-9; };
  printf("%s, mesh %s: step measured %.3f ms, predicted %.3f ms (%+.1f %%): "
         "products %.3f, other kernels %.3f, collectives %.3f\n",
         path.c_str(), mesh.c_str(), times.median, ms(guess.total()),
         100 * (ms(guess.total()) / times.median - 1), ms(guess.products),
         ms(guess.kernels), ms(guess.collectives));
  return true;
}

int main(int argc, char **argv) {
  limitSpinning(argv);
  std::string warning;
  Error error;
  auto calibration = userCalibration(warning);
  if (!warning.empty())
    fprintf(stderr, "calibration-bench: warning: %s\n", warning.c_str());
  if (!calibration) {
    calibration.emplace();
    if (!measureMachine({}, *calibration, error))
      calibration.reset();
  }
  bool ok = calibration && collectives(*calibration, error);
  for (int i = 1; ok && i < argc; ++i)
    ok = step(argv[i], *calibration, error);
  if (!ok)
    fprintf(stderr, "calibration-bench: error: %s\n", error.message.c_str());
  return ok ? 0 : 1;
}
