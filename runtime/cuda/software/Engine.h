// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Engine.h - streams, events and graphs of the recorder --------------===//
//
// Every entry point holds the engine's lock. Work has a number that is never
// used again; so have handles, which are these numbers cast to pointers.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_SOFTWARE_ENGINE_H
#define MTP_RUNTIME_CUDA_SOFTWARE_ENGINE_H

#include "runtime/cuda/software/Recorder.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace mtp::software {

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
  int ranks = 0;
  /// By rank: the tasks of its parts, in the order in which they were given.
  std::vector<std::vector<uint64_t>> given;
};

/// Something to do, once. Work outside of graphs is the task of its number; the
/// nodes of a launched graph get numbers from kFirstNodeTask on.
struct Task {
  std::vector<uint64_t> after; ///< tasks
  Action action;               ///< null: only an order
  std::shared_ptr<Part> part;  ///< of a collective
  size_t sequence = 0;         ///< of the part at its rank
};
constexpr uint64_t kFirstNodeTask = uint64_t(1) << 40;

/// A graph that is being captured, or was. Its nodes are works.
struct CapturedGraph {
  struct Node {
    uint64_t work;
    Action action;
    std::shared_ptr<Part> part;
  };
  uint64_t number = 0, origin = 0, thread = 0;
  std::vector<Node> nodes;
};

/// Works that the next one follows; `capture`: they are nodes of that graph.
struct Front {
  std::set<uint64_t> works;
  std::shared_ptr<CapturedGraph> capture;
};
struct StreamState {
  Front eager, captured; ///< captured.capture is null outside of a capture
  Front &now() { return captured.capture ? captured : eager; }
};

class Engine {
public:
  static Engine &get();

  std::mutex mutex;
  Settings settings;
  Record record;
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
  /// Adds a call to the record; its index.
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
  /// Does what the end of `stream`, or what was before an event, depends on;
  /// true if all of it is done.
  bool finish(const Front &front);

  void touch(std::vector<Range> reads, std::vector<Range> writes);
  /// Moves what this thread's next launch touches to `work`.
  void takeTouched(Work &work);
  void reset(const Settings &given);

private:
  void collect(uint64_t task, std::set<uint64_t> &wanted) const;
  bool isReady(const Task &task) const;
  /// The tasks of all ranks of the collective of `task`; empty if one is
  /// missing.
  std::vector<uint64_t> partners(const Task &task) const;
  void execute(uint64_t number);
  void erase(uint64_t number);
  void addTask(uint64_t number, Task task);

  std::map<uint64_t, Task> tasks; ///< that aren't done
  uint64_t nextHandle = 0x1000, nextNodeTask = kFirstNodeTask;
  std::mt19937_64 random;
  std::map<uint64_t, std::pair<std::vector<Range>, std::vector<Range>>>
      touched; ///< by thread
};

uint64_t threadNumber();
/// Of NCCL: the collective that a planted fault holds back.
void forgetHeld();

inline uint64_t numberOf(const void *handle) {
  return reinterpret_cast<uint64_t>(handle);
}

} // namespace mtp::software

#endif // MTP_RUNTIME_CUDA_SOFTWARE_ENGINE_H
