// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ThreadsCommunicator.cpp - ranks that read each other's memory ------===//
//
// Ranks of a group share a ring of slots; collective number s of the group uses
// slot s % kSlots. A slot has three counters that only grow:
//
//   arrived   the member published its buffers (start)
//   reduced   it wrote its part of a large all_reduce, or has none to write
//   finished  it won't read this collective's memory any more
//
// Small inputs are copied into the slot when the collective starts, so a member
// may leave as soon as it has read the others: one meeting. Large ones are read
// where they lie, so members leave together. A large all_reduce has each member
// reduce its slice of all inputs, then copy the slices of the others: every
// element is summed once, in the order of the ranks.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/Communicator.h"
#include "runtime/comm/Reduce.h"
#include "runtime/support/AlignedBuffer.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace mtp;
using Kind = CollectiveSite::Kind;

namespace {

/// Twice what an artifact may have under way at once.
constexpr uint32_t kSlots = 32;
/// Inputs up to this size are copied when the collective starts.
constexpr int64_t kSmallBytes = 16 << 10;
/// Slices of an all_reduce begin on a cache line.
constexpr int64_t kSliceElements = 64;

struct Slot {
  alignas(64) std::atomic<uint32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> reduced{0};
  alignas(64) std::atomic<uint32_t> finished{0};
  struct alignas(64) Member {
    const char *in = nullptr;
    char *out = nullptr;
    uint64_t fingerprint = 0;
    int64_t site = 0;
    AlignedBuffer staging;
    /// 1 + number of the last collective that the member published here.
    std::atomic<uint64_t> published{0};
  };
  std::vector<Member> members;
};

/// One group of ranks.
struct Group {
  explicit Group(size_t members) : slots(kSlots) {
    for (Slot &slot : slots)
      slot.members = std::vector<Slot::Member>(members);
  }
  std::vector<Slot> slots;
};

/// All groups, found by the axes that they vary over and their first rank.
struct Shared {
  std::map<std::pair<std::vector<int>, int>, std::unique_ptr<Group>> groups;
};

class ThreadsCommunicator : public Communicator {
public:
  ThreadsCommunicator(std::shared_ptr<Crew> crew,
                      std::shared_ptr<Shared> shared, const Mesh &mesh,
                      const std::vector<CollectiveSite> &sites, int rank)
      : Communicator(mesh, sites, rank), crew(std::move(crew)),
        shared(std::move(shared)) {
    for (size_t i = 0; i < sites.size(); ++i) {
      auto &group =
          this->shared->groups[{sites[i].axes, geometry[i].members[0]}];
      if (!group)
        group = std::make_unique<Group>(geometry[i].members.size());
      channels.push_back(&positions[group.get()]);
      channels.back()->group = group.get();
    }
    underWay.resize(sites.size());
  }

protected:
  void begin(int64_t site, const char *in, char *out) override;
  void finish(int64_t site) override;

private:
  /// This rank's place in the sequence of a group.
  struct Channel {
    Group *group = nullptr;
    uint64_t next = 0;
  };
  struct UnderWay {
    uint64_t sequence = 0;
    const char *in = nullptr;
    char *out = nullptr;
  };

  void await(int64_t site, std::atomic<uint32_t> &counter, uint32_t target);
  void checkSame(int64_t site, const Slot &slot);
  bool reducesBySlices(int64_t site) const {
    return sites[site].kind == Kind::AllReduce &&
           geometry[site].inBytes > kSmallBytes;
  }
  void allReduce(int64_t site, Slot &slot, uint32_t target);
  void take(int64_t site, const Slot &slot);
  [[noreturn]] void reportMissing(int64_t site, uint64_t sequence);

  std::shared_ptr<Crew> crew;
  std::shared_ptr<Shared> shared;
  std::map<Group *, Channel> positions;
  std::vector<Channel *> channels;  ///< one a site
  std::vector<UnderWay> underWay;   ///< one a site
  std::vector<const char *> inputs; ///< scratch of allReduce
};

void ThreadsCommunicator::reportMissing(int64_t site, uint64_t sequence) {
  const Slot &slot = channels[site]->group->slots[sequence % kSlots];
  std::vector<bool> arrived;
  for (const Slot::Member &member : slot.members)
    arrived.push_back(member.published.load(std::memory_order_relaxed) >
                      sequence);
  stopMissing(*crew, site, sequence, arrived);
}

void ThreadsCommunicator::await(int64_t site, std::atomic<uint32_t> &counter,
                                uint32_t target) {
  if (!crew->wait(counter, target))
    reportMissing(site, underWay[site].sequence);
}

void ThreadsCommunicator::checkSame(int64_t site, const Slot &slot) {
  const SiteGeometry &g = geometry[site];
  for (size_t i = 0; i < g.members.size(); ++i)
    if (slot.members[i].fingerprint != g.fingerprint)
      stopMismatch(*crew, site, underWay[site].sequence, g.members[i],
                   slot.members[i].site);
}

void ThreadsCommunicator::begin(int64_t site, const char *in, char *out) {
  const SiteGeometry &g = geometry[site];
  Channel &channel = *channels[site];
  uint64_t sequence = channel.next++;
  underWay[site] = {sequence, in, out};
  Slot &slot = channel.group->slots[sequence % kSlots];
  auto members = static_cast<uint32_t>(g.members.size());
  uint32_t round = static_cast<uint32_t>(sequence / kSlots);
  // The slot's last collective is long over, unless a member is far behind.
  await(site, slot.finished, round * members);
  Slot::Member &mine = slot.members[g.self];
  mine.in = in;
  if (g.inBytes <= kSmallBytes && g.inBytes > 0) {
    if (static_cast<int64_t>(mine.staging.size()) < g.inBytes)
      mine.staging = AlignedBuffer(kSmallBytes);
    std::memcpy(mine.staging.data(), in, g.inBytes);
    mine.in = mine.staging.data();
  }
  mine.out = out;
  mine.fingerprint = g.fingerprint;
  mine.site = site;
  mine.published.store(sequence + 1, std::memory_order_relaxed);
  Crew::arrive(slot.arrived, (round + 1) * members);
}

void ThreadsCommunicator::finish(int64_t site) {
  const SiteGeometry &g = geometry[site];
  const UnderWay &mine = underWay[site];
  Slot &slot = channels[site]->group->slots[mine.sequence % kSlots];
  auto members = static_cast<uint32_t>(g.members.size());
  uint32_t target =
      (static_cast<uint32_t>(mine.sequence / kSlots) + 1) * members;
  await(site, slot.arrived, target);
  checkSame(site, slot);
  if (sites[site].kind == Kind::AllReduce)
    allReduce(site, slot, target);
  else
    take(site, slot);
  if (!reducesBySlices(site))
    slot.reduced.fetch_add(1, std::memory_order_relaxed); // keeps its count
  Crew::arrive(slot.finished, target);
  if (g.inBytes > kSmallBytes)
    await(site, slot.finished, target);
}

void ThreadsCommunicator::allReduce(int64_t site, Slot &slot, uint32_t target) {
  const SiteGeometry &g = geometry[site];
  const CollectiveSite &s = sites[site];
  auto members = static_cast<int64_t>(g.members.size());
  int64_t element = byteSize(s.type), total = g.inElements;
  char *out = underWay[site].out;
  auto reduceRange = [&](int64_t begin, int64_t end) {
    inputs.clear();
    for (const Slot::Member &member : slot.members)
      inputs.push_back(member.in + begin * element);
    reduceMembers(s.type, s.reduction, inputs.data(), members,
                  out + begin * element, end - begin);
  };
  if (!reducesBySlices(site))
    return reduceRange(0, total);
  int64_t slice =
      ceilDiv(ceilDiv(total, members), kSliceElements) * kSliceElements;
  auto begin = [&](int64_t i) { return std::min(i * slice, total); };
  reduceRange(begin(g.self), begin(g.self + 1));
  Crew::arrive(slot.reduced, target);
  await(site, slot.reduced, target);
  for (int64_t step = 1; step < members; ++step) {
    int64_t i = (g.self + step) % members;
    int64_t from = begin(i) * element,
            bytes = (begin(i + 1) - begin(i)) * element;
    if (bytes)
      std::memcpy(out + from, slot.members[i].out + from, bytes);
  }
}

void ThreadsCommunicator::take(int64_t site, const Slot &slot) {
  const SiteGeometry &g = geometry[site];
  const CollectiveSite &s = sites[site];
  char *out = underWay[site].out;
  if (s.kind != Kind::ReduceScatter) {
    // Each member begins with itself, so that not all read from one at once.
    for (size_t step = 0; step < g.members.size(); ++step) {
      size_t i = (g.self + step) % g.members.size();
      g.take[i](slot.members[i].in, out);
    }
    return;
  }
  const BoxCopy &box = g.take[0];
  int64_t elements = box.runBytes() / byteSize(s.type);
  box.forEachRun([&](int64_t from, int64_t to) {
    inputs.clear();
    for (const Slot::Member &member : slot.members)
      inputs.push_back(member.in + from);
    reduceMembers(s.type, s.reduction, inputs.data(),
                  static_cast<int64_t>(inputs.size()), out + to, elements);
  });
}

} // namespace

std::vector<std::unique_ptr<Communicator>>
mtp::makeThreadCommunicators(std::shared_ptr<Crew> crew, const Mesh &mesh,
                             const std::vector<CollectiveSite> &sites) {
  auto shared = std::make_shared<Shared>();
  std::vector<std::unique_ptr<Communicator>> result;
  for (int rank = 0; rank < mesh.ranks(); ++rank)
    result.push_back(
        std::make_unique<ThreadsCommunicator>(crew, shared, mesh, sites, rank));
  return result;
}
