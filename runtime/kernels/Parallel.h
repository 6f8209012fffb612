// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Parallel.h - loops over the threads of one rank --------------------===//
//
// Threads come from libgomp, the only OpenMP runtime of the process (oneDNN
// brings it), through its C entry points: no compiler support is needed.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_KERNELS_PARALLEL_H
#define MTP_RUNTIME_KERNELS_PARALLEL_H

#include <cstdint>
#include <functional>

namespace mtp {

/// Calls body(index, thread) for every index in [0, count), each once, on at
/// most `threads` threads (numbered from 0), the calling one among them. Which
/// thread takes an index isn't fixed. `body` must not throw.
void parallelFor(int threads, int64_t count,
                 const std::function<void(int64_t index, int thread)> &body);

/// Sets how many threads libraries take in calls from this thread.
void setLibraryThreads(int threads);

} // namespace mtp

#endif // MTP_RUNTIME_KERNELS_PARALLEL_H
