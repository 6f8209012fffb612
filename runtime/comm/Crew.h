// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Crew.h - what the ranks of one process share -----------------------===//
//
// The first failure, the order to stop, and what each rank did last. A rank
// that fails reports and leaves; every other rank leaves at its next
// instruction or while it waits. Ranks of other processes hear of it, and are
// heard, through a link.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_COMM_CREW_H
#define MTP_RUNTIME_COMM_CREW_H

#include "runtime/support/Error.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace mtp {

/// Thrown in a rank that has to end because of a failure elsewhere. Not an
/// error of its own.
struct RankStopped {};

/// To the crews of the same ranks in other processes.
class CrewLink {
public:
  virtual ~CrewLink() = default;
  /// Tells all others of the first failure here.
  virtual void announce(const Error &error) = 0;
  /// The first failure elsewhere, exitCode 0 if there is none; cheap.
  virtual Error heard() = 0;
  /// All processes meet within `seconds`; false with the reason in `error`.
  virtual bool meet(double seconds, const std::string &what, Error &error) = 0;
};

class Crew {
public:
  using Clock = std::chrono::steady_clock;

  /// `spin`: a waiting rank polls for a while before it sleeps; right only if
  /// every rank has a core.
  Crew(int ranks, double deadlineSeconds, bool spin);

  /// Its ranks are processes; before any of them begins.
  void connect(std::shared_ptr<CrewLink> others) { link = std::move(others); }

  int ranks() const { return static_cast<int>(actions.size()); }
  double deadline() const { return deadlineSeconds; }

  /// Records `error` if it is the first, and stops all ranks.
  void report(const Error &error);
  bool stopped() const { return stopFlag.load(std::memory_order_relaxed); }
  /// The first failure; exitCode 0 if there is none.
  Error firstError() const;
  /// Throws RankStopped if this rank must end, because of a failure or a
  /// signal.
  void checkStopped();

  /// What `rank` does now; `what` must outlive the crew.
  void note(int rank, const std::string *what) {
    actions[rank].what.store(what, std::memory_order_relaxed);
  }
  std::string lastAction(int rank) const;

  /// Adds one to `counter` and wakes its waiters if it reached `target`.
  static void arrive(std::atomic<uint32_t> &counter, uint32_t target);
  /// Waits until `counter` has reached `target` (modulo 2^32). False if the
  /// deadline passed first; throws RankStopped.
  bool wait(std::atomic<uint32_t> &counter, uint32_t target);
  /// All ranks meet. `turn` counts from 0 in each rank.
  void barrier(int rank, uint32_t turn);

private:
  struct alignas(64) Action {
    std::atomic<const std::string *> what{nullptr};
  };
  std::vector<Action> actions;
  double deadlineSeconds;
  bool spin;
  std::shared_ptr<CrewLink> link; ///< null: all ranks are here
  alignas(64) std::atomic<bool> stopFlag{false};
  alignas(64) std::atomic<uint32_t> meeting{0};
  mutable std::mutex mutex;
  Error first;
};

} // namespace mtp

#endif // MTP_RUNTIME_COMM_CREW_H
