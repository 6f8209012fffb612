// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Simulator.h - step time and memory of a training run ---------------===//
//
// Closed form, from the cost functions that the planner uses. A layer's pass on
// one micro-batch takes the time of its products and of the memory that its
// other ops move, at least the time to launch it, and its collectives:
//
//   pass = max(products + memory, launches) + collectives over tp
//
// A pipeline of p stages with m micro-batches, v parts of the model a stage:
//
//   step = (m - 1) slowest stage + one stage + (p - 1) / v stages   <- bubble
//          + loss + sends on the way + gradients over dp + update
//
// With v = 1 this is 1F1B: (m + p - 1) stages if all are equal.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_COST_SIMULATOR_H
#define MTP_COMPILER_COST_SIMULATOR_H

#include "compiler/cost/Cluster.h"
#include "compiler/cost/TrainingJob.h"

namespace mtp::plan {

/// Bytes of the fullest rank.
struct SimulatedMemory {
  int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0;
  int64_t total() const {
    return parameters + gradients + optimizer + activations;
  }
};

struct Simulation {
  Time step = 0;
  // The parts of `step`.
  Time compute = 0;   ///< products, memory and launches of all micro-batches
  Time tensor = 0;    ///< collectives over tp
  Time bubble = 0;    ///< stages that wait at both ends of the step
  Time imbalance = 0; ///< other stages wait for the one with the loss
  Time sends = 0;     ///< between stages
  Time gradients = 0; ///< over dp, and of the shared embedding
  Time update = 0;
  SimulatedMemory memory;
  /// Throughput of a rank against that of one rank alone with the same
  /// micro-batches and the whole model (were its memory large enough).
  double efficiency = 0;
  double flopsPerRank = 0; ///< a second; TrainingJob::flops
  /// A second; with full recompute the operations that it repeats count.
  double hardwareFlopsPerRank = 0;
};

/// `job` must pass check(), the cluster must have as many ranks.
Simulation simulate(const Cluster &cluster, const TrainingJob &job);

/// Bytes that one layer keeps for the backward pass of one micro-batch
/// (Korthikanti et al. 2022, table 2).
double activationBytes(const TrainingJob &job);

} // namespace mtp::plan

#endif // MTP_COMPILER_COST_SIMULATOR_H
