// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Crew.h"
#include "runtime/support/System.h"

#include <algorithm>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace mtp;

namespace {

/// A sleeping rank looks this often whether it has to end.
constexpr int64_t kSleepNanoseconds = 20'000'000;
/// A spinning rank offers its core after the first time (other programs may
/// have pushed both ranks onto one) and goes to sleep after the second.
constexpr auto kBusyTime = std::chrono::microseconds(20);
constexpr auto kSpinTime = std::chrono::microseconds(1000);

bool reached(uint32_t value, uint32_t target) {
  return static_cast<int32_t>(value - target) >= 0;
}

void futexWait(std::atomic<uint32_t> &word, uint32_t seen,
               int64_t nanoseconds) {
  timespec timeout{static_cast<time_t>(nanoseconds / 1'000'000'000),
                   static_cast<long>(nanoseconds % 1'000'000'000)};
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE,
          seen, &timeout, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE,
          INT_MAX, nullptr, nullptr, 0);
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace

Crew::Crew(int ranks, double deadlineSeconds, bool spin)
    : actions(ranks), deadlineSeconds(deadlineSeconds), spin(spin) {}

void Crew::report(const Error &error) {
  bool isFirst;
  {
    std::lock_guard lock(mutex);
    isFirst = !first;
    if (isFirst)
      first = error;
    stopFlag.store(true, std::memory_order_release);
  }
  if (isFirst && link)
    link->announce(error);
}

Error Crew::firstError() const {
  std::lock_guard lock(mutex);
  return first;
}

void Crew::checkStopped() {
  if (int signal = stopRequested())
    report(endedBySignal(signal));
  if (link && !stopped())
    if (Error error = link->heard())
      report(error);
  if (stopped())
    throw RankStopped();
}

std::string Crew::lastAction(int rank) const {
  const std::string *what = actions[rank].what.load(std::memory_order_relaxed);
  return what ? *what : "nothing";
}

void Crew::arrive(std::atomic<uint32_t> &counter, uint32_t target) {
  if (counter.fetch_add(1, std::memory_order_acq_rel) + 1 == target)
    futexWakeAll(counter);
}

bool Crew::wait(std::atomic<uint32_t> &counter, uint32_t target) {
  if (reached(counter.load(std::memory_order_acquire), target))
    return true;
  auto begin = Clock::now();
  if (spin)
    for (auto passed = Clock::duration(); passed < kSpinTime;
         passed = Clock::now() - begin) {
      if (passed > kBusyTime)
        sched_yield();
      for (int i = 0; i < 32; ++i) {
        if (reached(counter.load(std::memory_order_acquire), target))
          return true;
        relax();
      }
      checkStopped();
    }
  auto limit = std::chrono::duration<double>(deadlineSeconds);
  while (true) {
    uint32_t seen = counter.load(std::memory_order_acquire);
    if (reached(seen, target))
      return true;
    checkStopped();
    std::chrono::duration<double> left = limit - (Clock::now() - begin);
    if (left.count() <= 0)
      return false;
    futexWait(counter, seen,
              std::min(kSleepNanoseconds,
                       static_cast<int64_t>(left.count() * 1e9) + 1));
  }
}

void Crew::barrier(int rank, uint32_t turn) {
  if (link) {
    Error error;
    if (link->meet(deadlineSeconds, "to begin a step", error))
      return;
    report(error);
    throw RankStopped();
  }
  uint32_t target = (turn + 1) * static_cast<uint32_t>(ranks());
  arrive(meeting, target);
  if (wait(meeting, target))
    return;
  report({exits::RankFailure,
          "communication",
          "rank " + std::to_string(rank) + " waited " +
              std::to_string(deadlineSeconds) +
              " s for the other ranks to begin a step",
          {}});
  throw RankStopped();
}
