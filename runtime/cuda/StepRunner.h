// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- StepRunner.h - a step, given to streams or replayed ----------------===//
//
// The first step of an entry is given to the streams instruction by
// instruction; it is a real step, and warms up what libraries do at a first
// call. The second one is captured and launched, and so is every one after it:
// one CUDA graph a step, the same addresses, and what changes (step number,
// inputs) is read from device memory.
//
// One thread drives the ranks of a runner: its own, or all of one device, whose
// work then is one graph, with the streams of the others forked from the first
// rank's and joined again.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_STEPRUNNER_H
#define MTP_RUNTIME_CUDA_STEPRUNNER_H

#include "runtime/cuda/Handles.h"

#include <string>
#include <vector>

namespace mtp::cuda {

class GpuRank;

class StepRunner {
public:
  /// `ranks` are loaded; the device of the first is current.
  explicit StepRunner(std::vector<GpuRank *> ranks);

  /// One step of all ranks; returns when it is over. Throws RankStopped or
  /// RuntimeError.
  void run(int entry);

private:
  struct Captured {
    bool warm = false;
    GraphExec exec;
    std::vector<std::vector<int64_t>> sites; ///< given to each rank, in order
  };

  void enqueue(int entry);
  void enqueueInstruction(int entry, size_t position);
  void fork();
  void join();
  void capture(int entry);
  void await(int entry);
  [[noreturn]] void reportStall(int entry);

  std::vector<GpuRank *> ranks;
  const DriverApi &driver;
  StreamHandle *origin;
  Event forked;
  std::vector<Event> joined;     ///< compute and comm stream of each rank
  std::vector<size_t> partners;  ///< of loops, of the entry that is enqueued
  std::vector<Captured> entries; ///< destroyed first
};

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_STEPRUNNER_H
