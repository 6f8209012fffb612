// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/GpuCommunicator.h"

#include <algorithm>

using namespace mtp;
using namespace mtp::cuda;

MeetingPlace &MeetingPlaces::of(const std::vector<int> &axes,
                                const std::vector<int> &members) {
  std::lock_guard lock(mutex);
  auto &place = places[{axes, members[0]}];
  if (!place)
    place = std::make_unique<MeetingPlace>(members.size());
  return *place;
}

NcclId MeetingPlaces::idOf(const NcclApi &api, const std::vector<int> &axes,
                           int first) {
  std::lock_guard lock(mutex);
  auto [it, isNew] = ids.try_emplace({axes, first});
  if (isNew && api.uniqueId(&it->second) != nccl::Success) {
    ids.erase(it);
    fail(exits::RankFailure, "communication",
         std::string("NCCL gives no id for a communicator: ") +
             api.lastError(nullptr));
  }
  return it->second;
}

GpuCommunicator::GpuCommunicator(GpuCommContext given, const Mesh &mesh,
                                 const std::vector<CollectiveSite> &sites,
                                 int rank)
    : Communicator(mesh, sites, rank), context(std::move(given)),
      driver(context.device.api()), underWay(sites.size()),
      comm(context.device.makeStream()) {
  for (size_t i = 0; i < sites.size(); ++i) {
    channels.push_back(&enter(i));
    take.emplace_back(geometry[i].take.begin(), geometry[i].take.end());
  }
}

GpuCommunicator::Channel &GpuCommunicator::enter(size_t site) {
  MeetingPlace &place =
      context.places->of(sites[site].axes, geometry[site].members);
  auto [it, isNew] = positions.try_emplace(&place);
  Channel &channel = it->second;
  if (!isNew)
    return channel;
  channel.place = &place;
  for (MeetingPlace::Slot &slot : place.slots) {
    MeetingPlace::Member &member = mine(static_cast<int64_t>(site), slot);
    for (EventHandle **event :
         {&member.ready, &member.read, &member.finished}) {
      channel.events.push_back(context.device.makeEvent());
      *event = channel.events.back().get();
    }
  }
  return channel;
}

void GpuCommunicator::allocateStaging() {
  if (stagingSize > 0)
    stagingMemory =
        context.device.allocate(stagingSize, "the communicator's staging");
}

bool GpuCommunicator::isEmpty(int64_t site) const {
  return geometry[site].inBytes == 0;
}

void GpuCommunicator::record(EventHandle *event, StreamHandle *stream) const {
  check(driver, driver.eventRecord(event, stream), "recording an event");
}

void GpuCommunicator::wait(StreamHandle *stream, EventHandle *event) const {
  check(driver, driver.streamWaitEvent(stream, event, 0),
        "making a stream wait");
}

/// A group of one rank.
void GpuCommunicator::local(int64_t site, const char *in, char *out) const {
  if (sites[site].kind == CollectiveSite::Kind::AllReduce)
    copyBytes(driver, addressOf(in), addressOf(out), geometry[site].inBytes,
              context.compute);
  else
    take[site][0].enqueue(driver, addressOf(in), addressOf(out),
                          context.compute);
}

void GpuCommunicator::await(int64_t site, MeetingPlace::Slot &slot, int phase) {
  uint64_t sequence = underWay[site].sequence;
  auto members = static_cast<uint32_t>(geometry[site].members.size());
  auto round = static_cast<uint32_t>(sequence / MeetingPlace::kSlots);
  if (context.crew->wait(slot.passed[phase], (round + 1) * members))
    return;
  std::vector<bool> arrived;
  for (const MeetingPlace::Member &member : slot.members)
    arrived.push_back(member.published.load(std::memory_order_relaxed) >
                      sequence);
  stopMissing(*context.crew, site, sequence, arrived);
}

void GpuCommunicator::checkSame(int64_t site,
                                const MeetingPlace::Slot &slot) const {
  const SiteGeometry &g = geometry[site];
  for (size_t i = 0; i < g.members.size(); ++i)
    if (slot.members[i].fingerprint != g.fingerprint)
      stopMismatch(*context.crew, site, underWay[site].sequence, g.members[i],
                   slot.members[i].site);
}

void GpuCommunicator::begin(int64_t site, const char *in, char *out) {
  if (isEmpty(site))
    return;
  if (isAlone(site))
    return local(site, in, out);
  const SiteGeometry &g = geometry[site];
  Channel &channel = *channels[site];
  uint64_t sequence = channel.next++;
  MeetingPlace::Slot &slot =
      channel.place->slots[sequence % MeetingPlace::kSlots];
  underWay[site] = {&slot, sequence};
  auto members = static_cast<uint32_t>(g.members.size());
  auto round = static_cast<uint32_t>(sequence / MeetingPlace::kSlots);
  // The slot's last collective is long over, unless a member is far behind.
  if (!context.crew->wait(slot.passed[phases()], round * members))
    stopMissing(*context.crew, site, sequence,
                std::vector<bool>(g.members.size(), false));
  MeetingPlace::Member &self = mine(site, slot);
  self.in = addressOf(in);
  self.out = addressOf(out);
  self.fingerprint = g.fingerprint;
  self.site = site;
  self.published.store(sequence + 1, std::memory_order_relaxed);
  record(self.ready, context.compute);
  Crew::arrive(slot.passed[0], (round + 1) * members);
  if (together)
    return;
  for (int phase = 0; phase < phases(); ++phase)
    advance(site, phase);
}

void GpuCommunicator::advance(int64_t site, int phase) {
  if (isEmpty(site) || isAlone(site))
    return;
  MeetingPlace::Slot &slot = *underWay[site].slot;
  await(site, slot, phase);
  if (phase == 0) {
    checkSame(site, slot);
    wait(comm.get(), mine(site, slot).ready);
  }
  give(site, phase, slot);
  if (phase + 1 == phases() && progress.word) {
    given.push_back(site);
    Address count = progress.counts +
                    std::min(given.size(), progress.most) * sizeof(uint32_t);
    check(driver,
          driver.copyToHost(progress.word, count, sizeof(uint32_t), comm.get()),
          "counting collectives");
  }
  auto members = static_cast<uint32_t>(geometry[site].members.size());
  auto round =
      static_cast<uint32_t>(underWay[site].sequence / MeetingPlace::kSlots);
  Crew::arrive(slot.passed[phase + 1], (round + 1) * members);
}

void GpuCommunicator::finish(int64_t site) {
  if (!isEmpty(site) && !isAlone(site))
    waitFor(site, *underWay[site].slot);
}
