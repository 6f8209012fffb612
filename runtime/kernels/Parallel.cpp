// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Parallel.cpp -------------------------------------------------------===//
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <atomic>

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

void work(void *data) {
  Loop &loop = *static_cast<Loop *>(data);
  int thread = omp_get_thread_num();
  for (int64_t i;
       (i = loop.next.fetch_add(1, std::memory_order_relaxed)) < loop.count;)
    (*loop.body)(i, thread);
}
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
  GOMP_parallel(work, &loop, unsigned(team), 0);
}

void setLibraryThreads(int threads) {
  if (omp_get_max_threads() != threads)
    omp_set_num_threads(threads);
}

} // namespace mtp
