// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Parallel.cpp -------------------------------------------------------===//
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <atomic>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MTP_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define MTP_THREAD_SANITIZER
#endif
#ifdef MTP_THREAD_SANITIZER
#include <thread>
#include <vector>
#endif

extern "C" {
void GOMP_parallel(void (*body)(void *), void *data, unsigned threads,
                   unsigned flags);
int omp_get_thread_num(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
}

namespace mtp {
namespace {
struct Loop {
  const std::function<void(int64_t, int)> *body;
  int64_t count;
  std::atomic<int64_t> next{0};
};

void work(Loop &loop, int thread) {
  for (int64_t i;
       (i = loop.next.fetch_add(1, std::memory_order_relaxed)) < loop.count;)
    (*loop.body)(i, thread);
}

#ifdef MTP_THREAD_SANITIZER
// ThreadSanitizer doesn't see how libgomp synchronizes.
void runTeam(Loop &loop, int team) {
  std::vector<std::thread> others;
  for (int thread = 1; thread < team; ++thread)
    others.emplace_back([&loop, thread] { work(loop, thread); });
  work(loop, 0);
  for (std::thread &other : others)
    other.join();
}
#else
void runTeam(Loop &loop, int team) {
  auto body = [](void *data) {
    work(*static_cast<Loop *>(data), omp_get_thread_num());
  };
  GOMP_parallel(body, &loop, unsigned(team), 0);
}
#endif
} // namespace

void parallelFor(int threads, int64_t count,
                 const std::function<void(int64_t, int)> &body) {
  int64_t team = std::min<int64_t>(threads, count);
  if (team <= 1) {
    for (int64_t i = 0; i < count; ++i)
      body(i, 0);
    return;
  }
  Loop loop;
  loop.body = &body;
  loop.count = count;
  runTeam(loop, int(team));
}

void setLibraryThreads(int threads) {
  if (omp_get_max_threads() != threads)
    omp_set_num_threads(threads);
}

} // namespace mtp
