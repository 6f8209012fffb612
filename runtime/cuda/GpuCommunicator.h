// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuCommunicator.h - collectives between GPUs -----------------------===//
//
// A collective is work that two streams of a rank get: `compute`, on which the
// program runs, and `comm`.
//
//   compute  ... in is written |ready|  other work       wait |finished| out
//   ... comm                wait |ready| copies, sums, NCCL |finished|
//
// Nothing is waited for on the host but, when the work is given to the streams
// and not when a captured step is replayed, the other ranks of the group: they
// meet, compare what each means to do, and only then hand it to the device. So
// a rank that doesn't come or comes with another collective is an error with
// names, within the deadline, before any data moves.
//
// Buffers are device addresses, as char *.
//
// Work is given in phases; all members of a group must have been given phase p
// before one is given p + 1. Ranks with a thread each wait for each other.
// Where one thread drives all ranks (they share a device, and one captured
// step), it gives each phase to all of them in turn: setTogether().
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_GPUCOMMUNICATOR_H
#define MTP_RUNTIME_CUDA_GPUCOMMUNICATOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/cuda/DeviceCopy.h"
#include "runtime/cuda/Handles.h"
#include "runtime/cuda/Reductions.h"
#include "runtime/processes/Headers.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>

namespace mtp::cuda {

/// Where the ranks of a group meet.
class MeetingPlace {
public:
  static constexpr uint32_t kSlots = 32;
  static constexpr int kPhases = 3; ///< begun, and what it has been given

  struct Member {
    Address in = 0, out = 0;
    uint64_t fingerprint = 0;
    int64_t site = 0;
    EventHandle *ready = nullptr, *read = nullptr, *finished = nullptr;
    std::atomic<uint64_t> published{0}; ///< 1 + its last collective here
  };
  struct Slot {
    std::array<std::atomic<uint32_t>, kPhases> passed{};
    std::vector<Member> members;
  };

  explicit MeetingPlace(size_t members) : slots(kSlots) {
    for (Slot &slot : slots)
      slot.members = std::vector<Member>(members);
  }
  std::vector<Slot> slots;
};

/// All groups of a session.
class MeetingPlaces {
public:
  MeetingPlace &of(const std::vector<int> &axes,
                   const std::vector<int> &members);
  /// One NcclId for each group, made by whoever asks first.
  NcclId idOf(const NcclApi &api, const std::vector<int> &axes, int first);

private:
  std::mutex mutex;
  std::map<std::pair<std::vector<int>, int>, std::unique_ptr<MeetingPlace>>
      places;
  std::map<std::pair<std::vector<int>, int>, NcclId> ids;
};

/// What a communicator works with; all of it outlives it.
struct GpuCommContext {
  const Libraries &libraries;
  const Device &device;
  const Reductions &reductions;
  std::shared_ptr<Crew> crew;
  std::shared_ptr<MeetingPlaces> places;
  StreamHandle *compute;
  /// Null: the other ranks are threads.
  std::shared_ptr<Processes> processes = nullptr;
};

class GpuCommunicator : public Communicator {
public:
  GpuCommunicator(GpuCommContext context, const Mesh &mesh,
                  const std::vector<CollectiveSite> &sites, int rank);
  ~GpuCommunicator() override { endGreetings(); }

  /// One thread drives all ranks and calls advance() itself.
  void setTogether() { together = true; }
  /// Gives phase `phase` of `site`, which has been started by all members.
  void advance(int64_t site, int phase);
  virtual int phases() const = 0;

  /// Bytes of device memory between send and receive.
  int64_t stagingBytes() const { return stagingSize; }
  StreamHandle *commStream() const { return comm.get(); }
  /// Where the collectives that the comm stream finishes are counted: `word` is
  /// pinned memory, `counts` device memory with the numbers from 0 to `most`,
  /// which are copied to it. Begins anew with every call.
  struct Progress {
    uint32_t *word = nullptr;
    Address counts = 0;
    size_t most = 0;
  };
  void countProgress(Progress where) {
    progress = where;
    given.clear();
  }
  /// The sites since then, in their order.
  const std::vector<int64_t> &sitesGiven() const { return given; }
  /// "all_reduce of 'h.0.mlp' over tp".
  std::string siteText(int64_t site) const { return describe(site); }
  /// Throws RuntimeError if the communicator has failed by itself.
  virtual void checkHealth() {}
  /// Ends it; `failed`: the session is over and other ranks may be gone.
  virtual void close(bool failed) noexcept { (void)failed; }

protected:
  struct UnderWay {
    MeetingPlace::Slot *slot = nullptr;
    uint64_t sequence = 0;
  };
  /// Gives the work of a phase to the comm stream.
  virtual void give(int64_t site, int phase, MeetingPlace::Slot &slot) = 0;
  /// What the compute stream waits for before it goes on.
  virtual void waitFor(int64_t site, MeetingPlace::Slot &slot) = 0;

  void begin(int64_t site, const char *in, char *out) final;
  void finish(int64_t site) final;

  bool isEmpty(int64_t site) const;
  bool isAlone(int64_t site) const {
    return geometry[site].members.size() == 1;
  }
  MeetingPlace::Member &mine(int64_t site, MeetingPlace::Slot &slot) const {
    return slot.members[geometry[site].self];
  }
  void record(EventHandle *event, StreamHandle *stream) const;
  void wait(StreamHandle *stream, EventHandle *event) const;
  /// Raises the staging that allocateStaging() takes.
  void needStaging(int64_t bytes) {
    stagingSize = bytes > stagingSize ? bytes : stagingSize;
  }
  void allocateStaging();
  Address staging() const { return stagingMemory.get(); }

  const GpuCommContext context;
  const DriverApi &driver;
  std::vector<std::vector<DeviceCopy>> take; ///< SiteGeometry::take, by site

private:
  /// This rank's place in the sequence of a group.
  struct Channel {
    MeetingPlace *place = nullptr;
    uint64_t next = 0;
    std::vector<Event> events;
  };
  /// A header from another process, and the one for it.
  struct Greeting {
    size_t member = 0;
    CollectiveHeader sent, received;
    ProcessGroup::Ticket incoming = -1, outgoing = -1;
  };
  /// Ranks of other processes: says what this one means to do, and waits until
  /// all have said the same; they then stand in the slot like those here.
  void greet(int64_t site, uint64_t sequence);
  void awaitGreetings(int64_t site, MeetingPlace::Slot &slot);
  void endGreetings() noexcept;
  Channel &enter(size_t site);
  void await(int64_t site, MeetingPlace::Slot &slot, int phase);
  void checkSame(int64_t site, const MeetingPlace::Slot &slot) const;
  void local(int64_t site, const char *in, char *out) const;

  std::unique_ptr<CollectiveTags> tags; ///< of processes
  std::map<int64_t, std::vector<std::unique_ptr<Greeting>>> greetings;
  std::map<MeetingPlace *, Channel> positions;
  std::vector<Channel *> channels; ///< one a site
  std::vector<UnderWay> underWay;  ///< one a site
  bool together = false;
  Progress progress;
  std::vector<int64_t> given; ///< sites, for messages
  DeviceMemory stagingMemory;
  int64_t stagingSize = 0;
  Stream comm;
};

std::unique_ptr<GpuCommunicator>
makeNcclCommunicator(GpuCommContext context, const Mesh &mesh,
                     const std::vector<CollectiveSite> &sites, int rank);
std::unique_ptr<GpuCommunicator>
makeLoopbackCommunicator(GpuCommContext context, const Mesh &mesh,
                         const std::vector<CollectiveSite> &sites, int rank);

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_GPUCOMMUNICATOR_H
