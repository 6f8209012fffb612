// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Trainer.h - steps of training --------------------------------------===//
#ifndef MTP_TOOLS_MTP_RUN_TRAINER_H
#define MTP_TOOLS_MTP_RUN_TRAINER_H

#include "tools/common/TrainOptions.h"
#include "tools/mtp-run/Batches.h"

namespace mtp {

/// Outputs of this prefix are gradients of inputs.
inline constexpr const char *kInputGradient = "mtp.input_gradient:";

/// Feeds a session step by step. Computes what changes from step to step: the
/// learning rate, the bias corrections, the number of labels.
class Trainer {
public:
  /// `steps`: how many there will be, for the schedule.
  Trainer(Session &session, const TrainingFacts &facts,
          const TrainOptions &options, int64_t steps, int64_t seed)
      : session(session), facts(facts), options(options), steps(steps),
        seed(seed), scale(options.lossScale) {}

  /// One step on a whole batch.
  bool step(const TensorMap &batch, Error &error);

  /// By initializer, of the step that ran last, before clipping.
  bool readGradients(TensorMap &gradients, Error &error);

  std::vector<double> losses, norms, times; ///< a step; milliseconds
  TensorMap inputGradients;                 ///< of the first step, by input
  TensorMap outputs; ///< of the model in the last step, before its update
  std::vector<SiteCount> counts; ///< of the last step
  std::vector<std::string> warnings;

private:
  /// The inputs that `entry` wants besides those of the batch.
  void addHidden(const Entry &entry, int64_t micro, TensorMap &inputs) const;
  bool runEntry(const std::string &name, int64_t micro, TensorMap inputs,
                Error &error);
  void addCounts();
  void takeOutputs(TensorMap &results);
  /// Micro-batches of an input that is cut are joined; of one that each of them
  /// has whole, added.
  void takeInputGradient(const std::string &input, HostTensor part);
  /// Labels of 32 bits for a program that takes 64.
  void widenLabels(const Entry &entry, TensorMap &inputs) const;
  /// A step whose gradients overflowed has changed nothing; torch's GradScaler
  /// halves the scale then, and doubles it after 2000 steps without.
  void adaptScale();

  Session &session;
  const TrainingFacts &facts;
  const TrainOptions &options;
  int64_t steps, seed;
  int64_t done = 0;                     ///< steps
  int64_t updates = 0;                  ///< steps that did not overflow
  int64_t terms = 0;                    ///< of the mean, in this step
  std::vector<std::string> wholeInputs; ///< of the step's micro-batches
  double milliseconds = 0, loss = 0, norm = 0, scale = 1;
  int64_t sinceOverflow = 0; ///< steps
};

} // namespace mtp

#endif // MTP_TOOLS_MTP_RUN_TRAINER_H
