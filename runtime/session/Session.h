// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Session.h - a loaded artifact with its ranks running ---------------===//
//
//   Error error;
//   auto session = Session::create(std::move(artifact), options, error);
//   if (!session) return report(error);
//   TensorMap outputs;
//   if (!session->run(inputs, outputs, error)) return report(error);
//
// Nothing here throws or exits. A session is used by one thread at a time. Once
// a rank has failed, the session is dead: every later call returns that error.
//
// If a rank doesn't end after a failure (it hangs in a kernel), the call
// returns all the same and the rank's thread and memory are left behind: a tool
// then ends its process with std::_Exit.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_SESSION_SESSION_H
#define MTP_RUNTIME_SESSION_SESSION_H

#include "runtime/artifact/Artifact.h"
#include "runtime/io/HostTensor.h"
#include "runtime/processes/Processes.h"
#include "runtime/support/Error.h"
#include "runtime/support/System.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mtp {

struct SessionOptions {
  std::string comm;              ///< empty: defaultCommunicator()
  double collectiveTimeout = 60; ///< seconds
  int threadsPerRank = 0;        ///< 0: max(1, usable cores / ranks)
  int64_t seed = 0;
  bool poison = false;     ///< fill padding and the fresh arena with NaN
  std::string weightsDir;  ///< look for weight files here, by base name
  bool checkMemory = true; ///< refuse what the machine can't hold
  /// Compare weights with the hashes in the artifact; without need if the same
  /// process has just compiled it.
  bool checkSources = true;
  bool profile = false; ///< take times for stepSeconds()
  /// Of GPUs: a step is captured as a graph and replayed; false: its work is
  /// given anew each time, which is slower and comes to the same.
  bool capture = true;
  /// Of which this process is one, with one rank; null: all ranks are threads.
  /// Then all processes call the same methods with the same arguments, and the
  /// whole tensors that a session gives stand in process 0 only, but for those
  /// of one element.
  std::shared_ptr<Processes> processes;
};

/// Counted by the runtime while it runs, one entry a collective site of the
/// entry that ran last; per rank (of rank 0) and step.
struct SiteCount {
  int64_t site = 0; ///< index into Artifact::collectiveSites
  int64_t count = 0;
  int64_t bytes = 0;     ///< payload a rank contributes, padding included
  int64_t wireBytes = 0; ///< what it must send, see CLI.md
};

/// Times of a benchmark, milliseconds; a step is as slow as its slowest rank.
struct StepTimes {
  double min = 0, median = 0, max = 0;
  int64_t runs = 0;
};

/// Predicted memory of a session against what the machine has.
struct MemoryNeed {
  int64_t bytesPerRank = 0; ///< Footprint::total
  int64_t allRanks = 0;
  int64_t available = 0; ///< the least of physical memory and cgroup limits
};
MemoryNeed predictMemory(const Artifact &artifact);
/// Of that many of its ranks.
MemoryNeed predictMemory(const Artifact &artifact, int64_t ranks);

/// Validates `inputs` (names, types, ranks, dims, ranges of integers) against
/// the entry that fits, or against the first one if none does. Sets `entry`.
/// Floats of another width are accepted where the program computes in f64, u16
/// as the bits of bf16.
bool checkInputs(const Artifact &artifact, const TensorMap &inputs, int &entry,
                 Error &error);
/// The same against entry number `entry`.
bool checkEntryInputs(const Artifact &artifact, int entry,
                      const TensorMap &inputs, Error &error);

/// What process 0 decides is done by all. Without processes nothing changes.
bool agree(Processes *processes, bool &decision, double seconds, Error &error);
/// Exit 2 if the mesh (`text`: as the user wrote it) has not as many ranks.
Error checkWorld(int processes, const Mesh &mesh, const std::string &text);

/// Communicators of this build: `threads` and, where MPI is, `mpi` for device
/// cpu, `nccl` and `loopback` for cuda and cuda-emulated.
std::vector<std::string> availableCommunicators();
/// The one that a device takes if none is asked for.
std::string defaultCommunicator(const std::string &device);

class Session {
public:
  /// Checks the artifact against this machine, loads its object, starts one
  /// thread a rank, loads the parameters of each. Returns null and sets
  /// `error`.
  static std::unique_ptr<Session>
  create(Artifact artifact, const SessionOptions &options, Error &error);
  virtual ~Session() = default;

  /// The entry that takes inputs of these shapes, -1 if none does.
  virtual int selectEntry(const TensorMap &inputs) const = 0;
  /// checkInputs() on this session's artifact.
  virtual bool check(const TensorMap &inputs, Error &error) const = 0;

  /// One step. `outputs` gets the whole tensors.
  virtual bool run(const TensorMap &inputs, TensorMap &outputs,
                   Error &error) = 0;
  /// One step of the entry of that name. What it updates keeps its value for
  /// the steps after it, of all entries.
  virtual bool run(const std::string &entry, const TensorMap &inputs,
                   TensorMap &outputs, Error &error) = 0;

  /// The initializers that some entry updates, whole, by name, in their own
  /// shapes; in the wider of the types of file and program.
  virtual bool readParameters(TensorMap &whole, Error &error) = 0;
  /// Optimizer states, "w/exp_avg" in the shape of w.
  virtual bool readStates(TensorMap &whole, Error &error) = 0;
  /// Replaces updated initializers or states by whole tensors of any float
  /// type; a name that the program doesn't keep is an error, one that is left
  /// out stays.
  virtual bool writeParameters(const TensorMap &whole, Error &error) = 0;
  virtual bool writeStates(const TensorMap &whole, Error &error) = 0;

  /// Repeats the step on `inputs` for about `seconds` (at least 3 times) after
  /// a warm-up.
  virtual bool bench(const TensorMap &inputs, double seconds, StepTimes &times,
                     Error &error) = 0;

  /// Milliseconds of the slowest rank in the last step.
  virtual double lastStepMs() const = 0;
  /// Seconds that rank `rank` has spent so far in each instruction of entry
  /// `entry`; zeros without SessionOptions::profile.
  virtual std::vector<double> stepSeconds(int entry, int rank) const = 0;
  /// What was counted during the last step.
  virtual std::vector<SiteCount> counters() const = 0;
  /// What the runtime passed to its allocator for the arena of a rank.
  virtual int64_t arenaBytesPerRank() const = 0;
  /// Bytes of parameters that each rank keeps (its own copy or its part of a
  /// mapped file), the largest of all ranks.
  virtual int64_t parameterBytesPerRank() const = 0;
  /// Extra bytes of packed weights and scratch that library kernels keep,
  /// largest of all ranks.
  virtual int64_t libraryBytesPerRank() const = 0;
  /// How the library kernels compute: "matmul: oneDNN brg:avx512_core".
  virtual std::vector<std::string> implementations() const = 0;
  virtual int ranks() const = 0;
  virtual int threadsPerRank() const = 0;
  virtual const Artifact &artifact() const = 0;
};

/// Valid random inputs of `entry` as --random-inputs draws them: the same for
/// any mesh; floats are drawn in f32 and widened.
TensorMap randomInputs(const Artifact &artifact, const Entry &entry,
                       uint64_t seed);

} // namespace mtp

#endif // MTP_RUNTIME_SESSION_SESSION_H
