// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Rank.h - one rank: its memory and the steps it runs ----------------===//
#ifndef MTP_RUNTIME_PROGRAM_RANK_H
#define MTP_RUNTIME_PROGRAM_RANK_H

#include "runtime/io/HostTensor.h"
#include "runtime/program/RankParameters.h"
#include "runtime/program/World.h"
#include "runtime/session/Inputs.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace mtp {

/// What the ranks of every device have in common. All methods are called by the
/// thread of this rank; they throw RuntimeError, RankStopped or std::bad_alloc.
class Rank {
public:
  Rank(World &world, int index);
  virtual ~Rank() = default;

  /// Loads weights, prepares library kernels, takes memory.
  virtual void load() = 0;
  /// Cuts this rank's blocks out of whole tensors, one for each input.
  virtual void setInputs(int entry,
                         const std::vector<const HostTensor *> &inputs) = 0;
  /// One step of `entry`; milliseconds. All ranks begin together.
  virtual double step(int entry) = 0;
  /// Writes this rank's part of the whole tensors, one for each output.
  virtual void getOutputs(int entry,
                          const std::vector<HostTensor *> &outputs) = 0;

  /// Writes this rank's block of an updated parameter into the whole piece, if
  /// the rank has the coordinates `at` on the axes that the block is partial
  /// over and is the first on those that don't cut it.
  void readStored(int64_t parameter, const std::vector<int64_t> &at,
                  char *piece);
  /// Replaces this rank's block by that of `whole`, the initializer's tensor.
  /// Of ranks whose blocks are summed the first gets it, others zero.
  void writeStored(int64_t parameter, const HostTensor &whole);

  /// Gives back what must not outlive the thread of this rank or needs all
  /// ranks to be given back. Nothing else is called after it.
  virtual void close() noexcept {}

  /// Seconds of each step of an entry's program so far, if times are taken.
  virtual std::vector<double> stepSeconds(int entry) const = 0;
  virtual int64_t arenaBytes() const = 0;
  virtual int64_t libraryBytes() const = 0;
  /// Of the last step.
  virtual const std::vector<Communicator::Counter> &counters() const = 0;
  /// "matmul: oneDNN brg:avx512_core", each once.
  virtual std::set<std::string> implementations() const = 0;

protected:
  /// The rank's own copy of an updated parameter, on the host: as it is now, or
  /// `bytes` in its place.
  virtual const char *readUpdated(int64_t parameter) = 0;
  virtual void writeUpdated(int64_t parameter, const char *bytes,
                            size_t size) = 0;

  /// Compares this rank's share of the sources with their hashes.
  void checkSources();
  /// Throws if `found`, a 1-based number of Artifact::faults, isn't zero.
  void checkFault(int64_t found) const;

  World &world;
  const Artifact &artifact;
  int index;
  std::vector<int64_t> coordinates;
  RankParameters parameters;
  std::vector<int64_t> rankValues;
  uint32_t turn = 0; ///< barriers so far
};

/// "kernel 'name'", for traces and messages.
std::string describe(const Instruction &instruction);
/// For each LoopBegin the position of its end, for each LoopEnd that of its
/// begin, 0 for the others.
std::vector<size_t> loopPartners(const std::vector<Instruction> &program);

} // namespace mtp

#endif // MTP_RUNTIME_PROGRAM_RANK_H
