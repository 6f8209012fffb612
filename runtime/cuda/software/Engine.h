// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Engine.h - streams, events and graphs on the CPU -------------------===//
//
// Every entry point holds the engine's lock; work is done without it, so that
// the ranks of a process, which all ask for the end of their streams, share
// what there is to do. Work has a number that is never used again; so have
// handles, which are these numbers cast to pointers.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_SOFTWARE_ENGINE_H
#define MTP_RUNTIME_CUDA_SOFTWARE_ENGINE_H

#include "runtime/cuda/api/DriverApi.h"
#include "runtime/cuda/software/Recorder.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace mtp::software {

/// Throws RuntimeError or std::bad_alloc.
using Action = std::function<void()>;

/// Where the ranks of an NCCL communicator bring their parts. A part is one
/// call, or all sends and receives of a group.
struct Gathering;
/// A part of a collective: what executes it once all ranks have brought theirs.
struct Part {
  std::shared_ptr<Gathering> gathering;
  int rank = 0;
  std::string what;
  /// Executes the collective; called on one part with all of them by rank.
  std::function<void(const std::vector<const Part *> &)> run;
  const char *in = nullptr;
  char *out = nullptr;
  size_t inBytes = 0, outBytes = 0; ///< not of a group
  struct Transfer {
    int peer;
    char *address;
    size_t bytes;
    bool sends;
  };
  std::vector<Transfer> transfers;
};
struct Gathering {
  std::string id;
  int ranks = 0, arrived = 0;
  bool aborted = false;
  std::atomic<bool> mismatched{false};
  std::vector<size_t> given; ///< parts so far, by rank
  /// By sequence: the task of each rank's part, 0 where none has been given.
  std::map<size_t, std::vector<uint64_t>> rounds;
};

/// Why work can't be done.
struct Failure {
  int status = 0; ///< of the driver
  std::string text;
};

/// Something to do, once. Work outside of graphs is the task of its number; the
/// nodes of a launched graph get numbers from kFirstNodeTask on.
struct Task {
  std::vector<uint64_t> after;            ///< tasks
  std::vector<uint64_t> followers;        ///< tasks that are after it
  size_t open = 0;                        ///< tasks in `after` that aren't done
  std::shared_ptr<const Action> action;   ///< null: only an order
  std::shared_ptr<Part> part;             ///< of a collective
  size_t sequence = 0;                    ///< of the part at its rank
  bool runs = false;                      ///< some thread does it now
  std::shared_ptr<const Failure> failure; ///< it is never done
  uint64_t seen = 0;                      ///< by which collection
};
constexpr uint64_t kFirstNodeTask = uint64_t(1) << 40;

/// A graph that is being captured, or was. Its nodes are works.
struct CapturedGraph {
  struct Node {
    uint64_t work;
    std::vector<uint64_t> after;
    std::shared_ptr<const Action> action;
    std::shared_ptr<Part> part;
  };
  uint64_t number = 0, origin = 0, thread = 0;
  std::vector<Node> nodes;
};

/// Works that the next one follows; `capture`: they are nodes of that graph.
struct Front {
  std::set<uint64_t> works;
  std::shared_ptr<CapturedGraph> capture;
  uint64_t given = 0; ///< works of its stream so far
};
struct StreamState {
  Front eager, captured; ///< captured.capture is null outside of a capture
  Front &now() { return captured.capture ? captured : eager; }
};

class Engine {
public:
  using Lock = std::unique_lock<std::mutex>;
  static Engine &get();

  std::mutex mutex;
  Settings settings;
  /// Kept if MTP_CUDA_RECORD is set or a test has asked for it; work number n
  /// is record.work[n - 1].
  Record record;
  bool records = false;
  std::map<std::string, KernelBody> kernels;
  std::map<uint64_t, StreamState> streams;
  std::map<uint64_t, Front> events;
  std::map<uint64_t, std::shared_ptr<CapturedGraph>> graphs, executables;
  std::map<uint64_t, uint64_t> allocations, pinned; ///< address, bytes
  uint64_t otherHandles = 0; ///< contexts, modules, handles of libraries

  /// True once: at the place where the fault `name` is to be planted.
  bool plants(const char *name) {
    return settings.plant == std::string(name) && settings.plantAt-- == 0;
  }
  /// Of the first capture, where faults of a capture are planted.
  uint64_t firstCapture = 0;
  bool capturesFirst() {
    auto capture = captureOfThread();
    return capture && capture->number == firstCapture;
  }
  uint64_t newHandle() { return nextHandle++; }
  /// Adds a call to the record, if there is one; its index.
  size_t note(Call call);
  /// The graph that this thread captures, null if none.
  std::shared_ptr<CapturedGraph> captureOfThread();

  /// Gives work to a stream; false if the stream doesn't exist.
  bool give(uint64_t stream, Work work, Action action,
            std::shared_ptr<Part> part = nullptr);
  int waitEvent(uint64_t stream, uint64_t event);
  int recordEvent(uint64_t event, uint64_t stream);
  int beginCapture(uint64_t stream);
  int endCapture(uint64_t stream, uint64_t &graph);
  int launch(uint64_t executable, uint64_t stream);
  void destroyStream(uint64_t stream);
  /// For a while, does what the end of `stream`, or what was before an event,
  /// depends on. Success if all of it is done, NotReady, or the status of work
  /// that failed, whose text is then faultOfThread().
  int finish(Lock &lock, const Front &front);
  /// No part that was given, or will be, is done.
  void abort(Gathering &gathering);

  void reset(const Settings &given);

private:
  Engine();
  std::vector<uint64_t> collect(const std::set<uint64_t> &works);
  /// The tasks of all ranks of the collective of `task`; empty if one is
  /// missing.
  std::vector<uint64_t> partners(const Task &task) const;
  bool isReady(const Task &task) const;
  /// All of a collective, or one task. Gives the tasks that became ready.
  std::vector<uint64_t> execute(Lock &lock, uint64_t number);
  void addTask(uint64_t number, Task task);

  std::unordered_map<uint64_t, Task> tasks; ///< that aren't done
  std::condition_variable changed;          ///< some of them are, or failed
  uint64_t works = 0, collections = 0;
  uint64_t nextHandle = 0x1000, nextNodeTask = kFirstNodeTask;
  std::mt19937_64 random;
};

uint64_t threadNumber();
/// What the next launch or product of this thread touches.
std::vector<mtp::cuda::Touched> &touchedByThread();
/// Moves it to `work`.
void takeTouched(Work &work);
/// Of the failed work that this thread asked for last.
const std::string &faultOfThread();
/// Of NCCL: the collective that a planted fault holds back.
void forgetHeld();

inline uint64_t numberOf(const void *handle) {
  return reinterpret_cast<uint64_t>(handle);
}
inline Range rangeOf(uint64_t address, size_t bytes) {
  return {address, address + bytes};
}
inline Range rangeOf(const void *address, size_t bytes) {
  return rangeOf(numberOf(address), bytes);
}

} // namespace mtp::software

#endif // MTP_RUNTIME_CUDA_SOFTWARE_ENGINE_H
