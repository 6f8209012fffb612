// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Record.h - what the recording driver was asked to do ---------------===//
#ifndef MTP_RUNTIME_CUDA_SOFTWARE_RECORD_H
#define MTP_RUNTIME_CUDA_SOFTWARE_RECORD_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mtp::software {

/// Bytes [begin, end).
struct Range {
  uint64_t begin = 0, end = 0;
};

/// Work of a stream: a node of a captured graph if `graph` isn't 0, else of an
/// eager step. Events and waits are no work: they are in `after`.
struct Work {
  std::string what;  ///< "kernel add", "copy", "ncclAllReduce", "graph"
  uint64_t call = 0; ///< index of the call that gave it
  uint64_t stream = 0, graph = 0;
  std::vector<uint64_t> after; ///< work that it follows, by stream or event
  std::vector<Range> reads, writes;
  uint64_t launched = 0; ///< of work "graph": which
  uint64_t doneAt = 0;   ///< calls so far when it was executed; 0: never
};

/// One call of an entry point that changes something.
struct Call {
  std::string name; ///< "cuMemAlloc_v2"
  uint64_t thread = 0, context = 0;
  uint64_t stream = 0;
  uint64_t capture = 0; ///< the graph that this thread captures at that time
  int status = 0;
  uint64_t handle = 0; ///< that was made, destroyed, launched or waited for
  uint64_t bytes = 0;  ///< of an allocation
  std::string detail;  ///< kernel, collective
};

/// A collective as one rank gave it to its communicator.
struct Collective {
  std::string id; ///< of the communicator
  int rank = 0, ranks = 0;
  uint64_t graph = 0; ///< 0: eager
  std::string what;   ///< "ncclAllReduce f32 sum 1024"
  uint64_t call = 0;
};

struct Record {
  std::vector<Call> calls;
  std::vector<Work> work;
  std::vector<Collective> collectives;
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Range, begin, end)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Work, what, call, stream, graph, after,
                                   reads, writes, launched, doneAt)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Call, name, thread, context, stream, capture,
                                   status, handle, bytes, detail)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Collective, id, rank, ranks, graph, what,
                                   call)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Record, calls, work, collectives)

} // namespace mtp::software

#endif // MTP_RUNTIME_CUDA_SOFTWARE_RECORD_H
