// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TrainingJob.h - a training run to simulate -------------------------===//
//
// A GPT: `layers` of attention and a feed-forward network (four times as wide
// unless it says otherwise), an embedding table that is also the output
// projection unless `untied`. Described by
//
//   job   := entry (',' entry)*        entry := key '=' value | flag
//
// or by a JSON object with the same keys (flags are true or false). Keys and
// flags are listed in keys(); the mesh has the grammar of --mesh, with the axes
// pp, dp and tp in any order, slowest first ("pp=8,dp=24,tp=8").
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_COST_TRAININGJOB_H
#define MTP_COMPILER_COST_TRAININGJOB_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtp::plan {

struct TrainingJob {
  enum class Recompute { None, Selective, Full };

  int64_t layers = 0, hidden = 0, heads = 0, sequence = 0, vocabulary = 0;
  int64_t keyValueHeads = 0; ///< 0: as many as heads
  int64_t feedForward = 0;   ///< width of the network, 0: 4 hidden
  bool gated = false;        ///< it has a third matrix, for a gate
  bool untied = false;       ///< the output projection is a weight of its own
  int64_t batch = 0;         ///< sequences of a step, all ranks
  int64_t microBatch = 1;    ///< sequences of a micro-batch
  int64_t interleave = 1;    ///< parts of the model on a pipeline stage
  Recompute recompute = Recompute::None;
  bool sequenceParallel = false; ///< norms and dropout split over tp
  bool overlapGradients = false; ///< their reduction runs beside the backward
  bool fusedGradients = false;   ///< summed by the product that makes them
  bool fusedAttention = false;   ///< scores are never stored
  bool distributedOptimizer = false; ///< its state split over dp (ZeRO 1)
  /// Slowest first; only pp, dp and tp.
  std::vector<std::pair<std::string, int64_t>> mesh;

  /// Size of a mesh axis, 1 if it is not there.
  int64_t axis(const std::string &name) const;
  int64_t ranks() const;
  /// Micro-batches of a step in one pipeline.
  int64_t microBatches() const;
  /// Width of the network, 4 h unless given.
  int64_t network() const { return feedForward ? feedForward : 4 * hidden; }
  /// Columns of keys and values together, 2 h unless there are fewer heads.
  int64_t keyValueColumns() const;
  /// Elements of a layer's matrices: 12 h^2 if all is as in a GPT.
  double matrixElements() const;
  /// l (matrices + 13 h) + (V + s) h; 12 l h^2 + 13 l h + (V + s) h of a GPT.
  double parameters() const;
  /// Operations of a step without recomputation: 6 B s (l (matrices + 2 s h) +
  /// V h), that is 72 B s l h^2 (1 + s / 6h + V / 12lh) of a GPT (Narayanan et
  /// al. 2021).
  double flops() const;
  /// The same with what full recomputation repeats: a layer's pass once more.
  double flopsWithRecompute() const;

  /// Checks sizes against each other; false and `error` with the numbers.
  bool check(std::string &error) const;
};

std::optional<TrainingJob> parseJob(const std::string &text,
                                    std::string &error);
/// The text of a job as an object, keys not yet checked.
std::optional<nlohmann::json> jobObject(const std::string &text,
                                        std::string &error);
std::optional<TrainingJob> parseJob(const nlohmann::json &object,
                                    std::string &error);
/// "pp=8,dp=24,tp=8" of `job`; false and `error` if it is malformed.
bool setMesh(TrainingJob &job, const std::string &text, std::string &error);

/// Keys and flags with their meaning, for --help.
std::vector<std::pair<std::string, std::string>> jobKeys();

} // namespace mtp::plan

#endif // MTP_COMPILER_COST_TRAININGJOB_H
