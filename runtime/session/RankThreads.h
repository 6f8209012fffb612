// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RankThreads.h - one operating-system thread a rank -----------------===//
#ifndef MTP_RUNTIME_SESSION_RANKTHREADS_H
#define MTP_RUNTIME_SESSION_RANKTHREADS_H

#include "runtime/program/Rank.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mtp {

/// Threads that live as long as the session. Each runs the orders given to all.
class RankThreads {
public:
  /// `index` counts the ranks of this process.
  using Order = std::function<void(Rank &rank, int index)>;

  explicit RankThreads(std::shared_ptr<World> world);
  ~RankThreads();

  /// Runs `order` on every rank and waits. False and the first failure if one
  /// failed; then every rank has left the order, but for those that hang.
  bool run(Order order, Error &error);

  /// Ranks of this process.
  int count() const { return static_cast<int>(threads.size()); }
  Rank &rank(int index) { return *shared->ranks[index]; }
  const Rank &rank(int index) const { return *shared->ranks[index]; }

private:
  /// Outlives the session if a thread hangs.
  struct Shared {
    std::shared_ptr<World> world;
    std::vector<std::unique_ptr<Rank>> ranks;
    std::mutex mutex;
    std::condition_variable wake, finished;
    uint64_t number = 0; ///< of the current order
    Order order;
    bool end = false; ///< no more orders
    int busy = 0;
  };
  static void serve(std::shared_ptr<Shared> shared, int index);
  static void obey(Shared &shared, int index);
  void endThreads();
  bool waitForAll(std::unique_lock<std::mutex> &lock);

  std::shared_ptr<Shared> shared;
  std::vector<std::thread> threads;
  bool left = false; ///< a thread hangs
};

} // namespace mtp

#endif // MTP_RUNTIME_SESSION_RANKTHREADS_H
