// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Pause.h - between two looks at what is not there yet ---------------===//
#ifndef MTP_RUNTIME_PROCESSES_PAUSE_H
#define MTP_RUNTIME_PROCESSES_PAUSE_H

#include <chrono>
#include <sys/prctl.h>
#include <thread>

namespace mtp {

/// Looks again at once for a few microseconds, then after short sleeps. Who
/// sleeps is woken before programs that compute, who yields waits for their
/// time to end: with more processes than cores that was 2 s instead of 2 ms.
class Pause {
public:
  using Clock = std::chrono::steady_clock;

  void operator()() {
    using std::chrono::microseconds;
    auto passed = Clock::now() - begin;
    if (passed < kBusy)
      return;
    // Sleeps are as long as they say.
    thread_local bool exact = prctl(PR_SET_TIMERSLACK, 1000) == 0;
    (void)exact;
    std::this_thread::sleep_for(
        passed < std::chrono::milliseconds(2)    ? microseconds(10)
        : passed < std::chrono::milliseconds(50) ? microseconds(50)
                                                 : microseconds(500));
  }
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

private:
  static constexpr auto kBusy = std::chrono::microseconds(20);
  Clock::time_point begin = Clock::now();
};

} // namespace mtp

#endif // MTP_RUNTIME_PROCESSES_PAUSE_H
