// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TrainOptions.h - the options of training ---------------------------===//
#ifndef MTP_TOOLS_COMMON_TRAINOPTIONS_H
#define MTP_TOOLS_COMMON_TRAINOPTIONS_H

#include "compiler/driver/CompilerApi.h"
#include "runtime/support/Error.h"

#include <cstdint>
#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace mtp {

/// What a run of training is told beside the program (TrainRequest).
struct TrainOptions {
  bool train = false;
  double rate = 1e-3;
  std::string schedule = "constant"; ///< constant | linear | cosine
  int64_t warmup = 0;                ///< steps
  int64_t steps = 1;
  /// First loss scale; 1 without scaling. `dynamic`: it adapts.
  double lossScale = 1;
  bool dynamicScale = false;
  std::string data; ///< glob of .npz files; "": the inputs, every step
  std::string dumpGrads, dumpParams, dumpInputGrads;
};

/// Learning rate of step `step` (from 0) of `steps`:
///
///   step < warmup     rate · (step + 1) / warmup
///   constant          rate
///   linear            rate · (1 - p)
///   cosine            rate · (1 + cos(pi p)) / 2
///
/// with p = (step - warmup) / (steps - warmup), as torch's LinearLR (from 1 to
/// 0) and CosineAnnealingLR have it.
double learningRate(const TrainOptions &options, int64_t step, int64_t steps);

/// Text of the flags, until `finish`. Throws UsageError, whose message names
/// the flag.
class TrainFlags {
public:
  struct UsageError {
    std::string message;
    int exitCode = exits::Usage;
  };

  TrainFlags();
  ~TrainFlags();
  /// `run`: the options of mtp-run, too.
  void add(CLI::App &app, bool run);
  /// Fills `options`, and `request` if a model is trained, `recompute` only if
  /// it is given. `isArtifact`: the request stands in the artifact, and its
  /// options are refused.
  void finish(const CLI::App &app, bool isArtifact, TrainOptions &options,
              std::optional<TrainRequest> &request) const;

private:
  struct Raw;
  std::unique_ptr<Raw> raw;
};

} // namespace mtp

#endif // MTP_TOOLS_COMMON_TRAINOPTIONS_H
