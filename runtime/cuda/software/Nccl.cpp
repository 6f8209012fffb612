// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Nccl.cpp - the entry points of NCCL --------------------------------===//
//
// A collective is computed once the streams of all ranks have come to it, in
// the order of the ranks. What the ranks give at the same place of their
// sequence must be the same, or the communicator reports an error. Ranks of
// other processes bring theirs through a RemoteGathering.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/software/Engine.h"
#include "runtime/cuda/software/Numbers.h"
#include "runtime/cuda/software/RemoteGathering.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

using namespace mtp::cuda;
using namespace mtp::software;

namespace mtp::cuda {
struct NcclHandle {
  std::shared_ptr<Gathering> gathering;
  int rank = 0;
  int joined = 0;
  std::shared_ptr<RemoteGathering> remote; ///< null: all ranks are here
};
} // namespace mtp::cuda

namespace {

/// By id; gone with their last communicator.
std::map<std::string, std::weak_ptr<Gathering>> gatherings;

struct Group {
  int depth = 0;
  std::shared_ptr<Part> part;
  NcclHandle *comm = nullptr;
  StreamHandle *stream = nullptr;
};
thread_local Group group;

const char *const typeNames[] = {"i8",  "u8",  "i32", "u32", "i64",
                                 "u64", "f16", "f32", "f64", "bf16"};

/// Records the call; needs the lock.
void note(const char *name, NcclHandle *comm, StreamHandle *stream = nullptr,
          std::string detail = "") {
  Call call;
  call.name = name;
  call.handle = numberOf(comm);
  call.stream = numberOf(stream);
  call.detail = std::move(detail);
  Engine::get().note(std::move(call));
}

/// A collective that is held back to come after the next one.
struct Held {
  std::string name;
  NcclHandle *comm = nullptr;
  StreamHandle *stream;
  std::shared_ptr<Part> part;
  std::vector<Range> reads, writes;
} held;

} // namespace

void mtp::software::forgetHeld() { held = {}; }

namespace {

void append(std::string &bytes, const void *from, size_t size) {
  bytes.append(static_cast<const char *>(from), size);
}

/// What other ranks need of a part: what it is, its input, what it sends.
std::string packed(const Part &part) {
  std::string bytes;
  auto add = [&](const char *from, size_t size) {
    append(bytes, &size, sizeof(size));
    append(bytes, from, size);
  };
  add(part.what.data(), part.what.size());
  add(part.in, part.inBytes);
  for (const Part::Transfer &t : part.transfers)
    if (t.sends) {
      append(bytes, &t.peer, sizeof(t.peer));
      add(t.address, t.bytes);
    }
  return bytes;
}

/// The part of another process; it lives in `bytes` and in `scratch`, where its
/// result goes.
Part unpacked(std::string &bytes, int rank, size_t outBytes,
              std::vector<char> &scratch) {
  Part part;
  part.rank = rank;
  size_t at = 0;
  auto take = [&](size_t &size) {
    std::memcpy(&size, bytes.data() + at, sizeof(size));
    at += sizeof(size) + size;
    return bytes.data() + at - size;
  };
  size_t size = 0;
  char *text = take(size);
  part.what.assign(text, size);
  part.in = take(part.inBytes);
  while (at < bytes.size()) {
    Part::Transfer transfer{};
    std::memcpy(&transfer.peer, bytes.data() + at, sizeof(transfer.peer));
    at += sizeof(transfer.peer);
    transfer.address = take(transfer.bytes);
    transfer.sends = true;
    part.transfers.push_back(transfer);
  }
  scratch.resize(outBytes);
  part.out = scratch.data();
  return part;
}

/// Executes `mine` with the parts of the other processes.
void runRemote(RemoteGathering &remote, const Part &mine) {
  std::vector<std::string> bytes = remote.exchange(packed(mine));
  std::vector<Part> parts(bytes.size());
  std::vector<std::vector<char>> scratch(bytes.size());
  std::vector<const Part *> list;
  for (size_t r = 0; r < bytes.size(); ++r) {
    bool isMine = static_cast<int>(r) == mine.rank;
    if (!isMine) {
      parts[r] =
          unpacked(bytes[r], static_cast<int>(r), mine.outBytes, scratch[r]);
      parts[r].gathering = mine.gathering;
    }
    list.push_back(isMine ? &mine : &parts[r]);
  }
  mine.run(list);
}

int give(const char *name, NcclHandle *comm, StreamHandle *stream,
         std::shared_ptr<Part> part, std::vector<Range> reads,
         std::vector<Range> writes) {
  Engine &engine = Engine::get();
  if (!held.comm && comm->rank == 1 && engine.captureOfThread() &&
      engine.plants("swap")) {
    held = {name, comm, stream, part, reads, writes};
    return nccl::Success;
  }
  Held late;
  if (held.comm == comm)
    std::swap(late, held);
  note(name, comm, stream, part->what);
  part->gathering = comm->gathering;
  part->rank = comm->rank;
  auto compute = part->run;
  part->run = [compute](const std::vector<const Part *> &parts) {
    for (const Part *other : parts)
      if (other->what != parts[0]->what) {
        parts[0]->gathering->mismatched = true;
        return;
      }
    compute(parts);
  };
  Work work;
  work.what = part->what;
  work.reads = std::move(reads);
  work.writes = std::move(writes);
  Action alone;
  if (comm->remote) {
    alone = [remote = comm->remote, part] { runRemote(*remote, *part); };
    part = nullptr;
  }
  bool known = engine.give(numberOf(stream), std::move(work), std::move(alone),
                           std::move(part));
  if (late.comm)
    give(late.name.c_str(), late.comm, late.stream, late.part, late.reads,
         late.writes);
  return known ? nccl::Success : nccl::InvalidArgument;
}

int collective(const char *name, const void *in, void *out, size_t count,
               int type, int op, NcclHandle *comm, StreamHandle *stream,
               size_t inBlocks, size_t outBlocks,
               std::function<void(const std::vector<const Part *> &)> run) {
  if (group.depth > 0)
    return nccl::InvalidUsage;
  auto part = std::make_shared<Part>();
  part->what = std::string(name) + " " + typeNames[type] + " " +
               std::to_string(op) + " " + std::to_string(count);
  part->in = static_cast<const char *>(in);
  part->out = static_cast<char *>(out);
  part->run = std::move(run);
  size_t bytes = count * sizeOfNcclType(type);
  part->inBytes = inBlocks * bytes;
  part->outBytes = outBlocks * bytes;
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  return give(name, comm, stream, part, {rangeOf(in, inBlocks * bytes)},
              {rangeOf(out, outBlocks * bytes)});
}

/// Elements [begin, begin + count) of all inputs, reduced in rank order.
std::vector<char> reduced(const std::vector<const Part *> &parts, size_t begin,
                          size_t count, int type, int op) {
  size_t size = sizeOfNcclType(type);
  std::vector<char> sum(parts[0]->in + begin * size,
                        parts[0]->in + (begin + count) * size);
  for (size_t r = 1; r < parts.size(); ++r)
    for (size_t i = 0; i < count; ++i)
      combineNccl(type, op, sum.data() + i * size,
                  parts[r]->in + (begin + i) * size);
  return sum;
}

/// Sends and receives of a group: each send meets the next receive of its pair.
void transfer(const std::vector<const Part *> &parts) {
  // Everything is read before anything is written.
  std::map<std::pair<int, int>, std::vector<std::vector<char>>> sent;
  for (const Part *part : parts)
    for (const Part::Transfer &t : part->transfers)
      if (t.sends)
        sent[{part->rank, t.peer}].emplace_back(t.address, t.address + t.bytes);
  std::map<std::pair<int, int>, size_t> taken;
  for (const Part *part : parts)
    for (const Part::Transfer &t : part->transfers) {
      if (t.sends)
        continue;
      std::pair<int, int> pair{t.peer, part->rank};
      size_t at = taken[pair]++;
      if (at >= sent[pair].size() || sent[pair][at].size() != t.bytes) {
        part->gathering->mismatched = true;
        return;
      }
      if (t.bytes > 0)
        std::memcpy(t.address, sent[pair][at].data(), t.bytes);
    }
}

int addTransfer(NcclHandle *comm, StreamHandle *stream,
                Part::Transfer transfer) {
  if (group.depth == 0 || (group.comm && group.comm != comm))
    return nccl::InvalidUsage;
  if (!group.part)
    group.part = std::make_shared<Part>();
  group.comm = comm;
  group.stream = stream;
  group.part->transfers.push_back(transfer);
  return nccl::Success;
}

} // namespace

extern "C" {

int mtp_ncclGetVersion(int *version) {
  *version = 22809;
  return nccl::Success;
}
const char *mtp_ncclGetErrorString(int status) {
  return status == nccl::InvalidUsage ? "invalid usage"
                                      : "an error of the recording NCCL";
}
const char *mtp_ncclGetLastError(NcclHandle *) { return ""; }
int mtp_ncclGetUniqueId(NcclId *id) {
  static std::atomic<int> next{1};
  *id = {};
  std::string text =
      ranksAreProcesses() ? randomName() : "id" + std::to_string(next++);
  std::memcpy(id->bytes, text.data(), text.size());
  return nccl::Success;
}
int mtp_ncclCommInitRankConfig(NcclHandle **comm, int ranks, NcclId id,
                               int rank, NcclConfig *config) {
  if (config->blocking != 0 || config->magic != 0xcafebeef)
    return nccl::InvalidArgument;
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  std::shared_ptr<Gathering> gathering = gatherings[id.bytes].lock();
  if (!gathering) {
    gathering = std::make_shared<Gathering>();
    gathering->id = id.bytes;
    gathering->ranks = ranks;
    gathering->given.resize(static_cast<size_t>(ranks));
    std::erase_if(gatherings, [](auto &one) { return one.second.expired(); });
    gatherings[id.bytes] = gathering;
  }
  if (gathering->ranks != ranks || rank < 0 || rank >= ranks)
    return nccl::InvalidArgument;
  ++gathering->arrived;
  *comm = new NcclHandle{gathering, rank, 0, nullptr};
  if (ranksAreProcesses())
    try {
      (*comm)->remote =
          std::make_shared<RemoteGathering>(gathering->id, ranks, rank);
    } catch (const mtp::RuntimeError &) {
      gathering->mismatched = true;
    }
  ++engine.otherHandles;
  note("ncclCommInitRankConfig", *comm, nullptr, gathering->id);
  return nccl::InProgress;
}
int mtp_ncclCommGetAsyncError(NcclHandle *comm, int *status) {
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  Gathering *gathering = comm->gathering.get();
  bool joined = comm->remote ? comm->remote->complete()
                             : gathering->arrived == gathering->ranks;
  *status = !joined                 ? nccl::InProgress
            : gathering->mismatched ? nccl::InvalidUsage
                                    : nccl::Success;
  return nccl::Success;
}
int mtp_ncclCommFinalize(NcclHandle *comm) {
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  note("ncclCommFinalize", comm);
  return nccl::Success;
}
int mtp_ncclCommDestroy(NcclHandle *comm) {
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  note("ncclCommDestroy", comm);
  --engine.otherHandles;
  delete comm;
  return nccl::Success;
}
int mtp_ncclCommAbort(NcclHandle *comm) {
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  note("ncclCommAbort", comm);
  engine.abort(*comm->gathering);
  --engine.otherHandles;
  delete comm;
  return nccl::Success;
}
int mtp_ncclAllReduce(const void *in, void *out, size_t count, int type, int op,
                      NcclHandle *comm, StreamHandle *stream) {
  return collective("ncclAllReduce", in, out, count, type, op, comm, stream, 1,
                    1, [=](const std::vector<const Part *> &parts) {
                      std::vector<char> sum =
                          reduced(parts, 0, count, type, op);
                      for (const Part *part : parts)
                        std::copy(sum.begin(), sum.end(), part->out);
                    });
}
int mtp_ncclAllGather(const void *in, void *out, size_t count, int type,
                      NcclHandle *comm, StreamHandle *stream) {
  return collective("ncclAllGather", in, out, count, type, 0, comm, stream, 1,
                    static_cast<size_t>(comm->gathering->ranks),
                    [=](const std::vector<const Part *> &parts) {
                      size_t bytes = count * sizeOfNcclType(type);
                      for (const Part *to : parts)
                        for (size_t r = 0; r < parts.size(); ++r)
                          std::memmove(to->out + r * bytes, parts[r]->in,
                                       bytes);
                    });
}
int mtp_ncclReduceScatter(const void *in, void *out, size_t count, int type,
                          int op, NcclHandle *comm, StreamHandle *stream) {
  return collective("ncclReduceScatter", in, out, count, type, op, comm, stream,
                    static_cast<size_t>(comm->gathering->ranks), 1,
                    [=](const std::vector<const Part *> &parts) {
                      for (size_t r = 0; r < parts.size(); ++r) {
                        std::vector<char> sum =
                            reduced(parts, r * count, count, type, op);
                        std::copy(sum.begin(), sum.end(), parts[r]->out);
                      }
                    });
}
int mtp_ncclSend(const void *in, size_t count, int type, int peer,
                 NcclHandle *comm, StreamHandle *stream) {
  return addTransfer(comm, stream,
                     {peer, const_cast<char *>(static_cast<const char *>(in)),
                      count * sizeOfNcclType(type), true});
}
int mtp_ncclRecv(void *out, size_t count, int type, int peer, NcclHandle *comm,
                 StreamHandle *stream) {
  return addTransfer(
      comm, stream,
      {peer, static_cast<char *>(out), count * sizeOfNcclType(type), false});
}
int mtp_ncclGroupStart() {
  ++group.depth;
  return nccl::Success;
}
int mtp_ncclGroupEnd() {
  if (--group.depth > 0 || !group.part)
    return nccl::Success;
  Group ended = group;
  group = {};
  std::vector<Range> reads, writes;
  for (const Part::Transfer &t : ended.part->transfers)
    (t.sends ? reads : writes).push_back(rangeOf(t.address, t.bytes));
  ended.part->what = "ncclGroup";
  ended.part->run = transfer;
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  return give("ncclGroupEnd", ended.comm, ended.stream, ended.part,
              std::move(reads), std::move(writes));
}

} // extern "C"
