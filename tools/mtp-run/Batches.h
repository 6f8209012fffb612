// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Batches.h - what a training step is fed ----------------------------===//
#ifndef MTP_TOOLS_MTP_RUN_BATCHES_H
#define MTP_TOOLS_MTP_RUN_BATCHES_H

#include "compiler/training/LossSpec.h"
#include "runtime/io/HostTensor.h"
#include "runtime/session/Session.h"
#include "runtime/support/Error.h"

#include <functional>
#include <future>
#include <string>
#include <vector>

namespace mtp {

/// What an artifact says of its training step (`training` of its plan).
struct TrainingFacts {
  LossSpec loss;
  std::string optimizer;
  double beta1 = 0, beta2 = 0, eps = 0;
  int64_t accumulate = 1;
  int64_t classes = 0; ///< of a cross entropy
  bool keepGradients = false, inputGradients = false, lossScale = false,
       keepOutputs = false;
  /// Initializers that are one parameter; transposed: b is a with its two
  /// dimensions exchanged.
  struct Tie {
    std::string a, b;
    bool transposed = false;
  };
  std::vector<Tie> ties;
};
/// False and `error` if the artifact was not compiled for training.
bool readFacts(const Artifact &artifact, TrainingFacts &facts, Error &error);

/// The whole batches of a run: the given inputs, or one file of --data a step
/// beside them. The next file is read while the last one is used.
class BatchSource {
public:
  /// `glob` may be empty. Fails if it matches nothing or names an input that is
  /// given.
  bool open(const std::string &glob, TensorMap given, Error &error);
  /// The batch of the first step, for its shapes.
  const TensorMap &first() const { return batch; }
  /// The batch of the next step; the first call gives first().
  bool next(Error &error);
  const TensorMap &current() const { return batch; }

private:
  struct Loaded {
    TensorMap tensors;
    Error error;
  };
  bool take(Error &error);

  std::vector<std::string> files;
  TensorMap given, batch;
  size_t at = 0; ///< file of `batch`
  bool started = false;
  std::future<Loaded> ahead;
};

/// The micro-batches of one step.
struct MicroBatches {
  std::vector<TensorMap> parts;
  std::vector<std::string> whole; ///< inputs that every part has all of
  bool repeated = false;          ///< all parts are the same rows
};

/// What `entry` takes `facts.accumulate` times: of an input with so many times
/// its rows (dimension 0) each micro-batch has a part; an input of its shape
/// goes whole into every one. Labels decide whether the batch is cut, and no
/// other input may disagree; a shape that is neither is an error that says what
/// to give.
bool splitBatch(const TensorMap &batch, const Entry &entry,
                const TrainingFacts &facts, MicroBatches &micro, Error &error);

/// Appends `rows` in dimension 0; an empty map entry becomes them. Of scalars
/// the last one stays.
void appendRows(HostTensor &whole, HostTensor rows);

/// Adds `term`, floats of the same shape; an empty `sum` becomes it, in f32 if
/// it has fewer bits.
void addTerm(HostTensor &sum, const HostTensor &term);

/// Terms of the mean over the whole batch: labels that are not ignored,
/// elements of a target, or micro-batches. Fails at a label outside of the
/// classes.
bool countTerms(const TrainingFacts &facts, const TensorMap &whole,
                int64_t &count, Error &error);

/// Calls `give(from, to, transposed)` for each tied initializer that `has`
/// lacks and another that it has, until none is left.
void forEachTied(const TrainingFacts &facts,
                 const std::function<bool(const std::string &)> &has,
                 const std::function<void(const std::string &,
                                          const std::string &, bool)> &give);

/// Gives tied initializers that `trained` lacks the value of the one that
/// stands for them, in their own orientation.
void addTied(const TrainingFacts &facts, TensorMap &trained);

/// Labels from 0 to `classes` - 1, the same for equal seeds.
HostTensor randomLabels(DType type, const std::vector<int64_t> &shape,
                        int64_t classes, uint64_t seed);

} // namespace mtp

#endif // MTP_TOOLS_MTP_RUN_BATCHES_H
