// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/GpuCommunicator.h"

#include <algorithm>
#include <utility>

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
  if (context.processes)
    tags =
        std::make_unique<CollectiveTags>(context.processes->messages(), sites);
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

void GpuCommunicator::greet(int64_t site, uint64_t sequence) {
  const SiteGeometry &g = geometry[site];
  ProcessGroup &group = context.processes->messages();
  int64_t tag = (*tags)(site, sequence, CollectiveTags::Header);
  auto &list = greetings[site];
  for (size_t i = 0; i < g.members.size(); ++i) {
    if (static_cast<int>(i) == g.self)
      continue;
    Greeting &greeting = *list.emplace_back(std::make_unique<Greeting>());
    greeting.member = i;
    greeting.sent = {sequence, g.fingerprint, site};
    greeting.incoming = group.receive(g.members[i], tag, &greeting.received,
                                      sizeof(CollectiveHeader));
    greeting.outgoing =
        group.send(g.members[i], tag, &greeting.sent, sizeof(CollectiveHeader));
  }
}

void GpuCommunicator::awaitGreetings(int64_t site, MeetingPlace::Slot &slot) {
  const SiteGeometry &g = geometry[site];
  uint64_t sequence = underWay[site].sequence;
  auto members = static_cast<uint32_t>(g.members.size());
  auto round = static_cast<uint32_t>(sequence / MeetingPlace::kSlots);
  auto check = [&] { context.crew->checkStopped(); };
  auto begin = Crew::Clock::now();
  for (auto &greeting : greetings[site]) {
    std::chrono::duration<double> passed = Crew::Clock::now() - begin;
    double left = std::max(1e-3, context.crew->deadline() - passed.count());
    ProcessGroup::Ticket ticket = std::exchange(greeting->incoming, -1);
    if (!context.processes->finish(ticket, left, check)) {
      std::vector<bool> arrived(members, true);
      for (auto &other : greetings[site])
        arrived[other->member] =
            other->incoming < 0 && other.get() != greeting.get();
      stopMissing(*context.crew, site, sequence, arrived);
    }
    const CollectiveHeader &header = greeting->received;
    bool known =
        header.site >= 0 && header.site < static_cast<int64_t>(sites.size());
    MeetingPlace::Member &member = slot.members[greeting->member];
    member.fingerprint =
        header.sequence == sequence && known ? header.fingerprint : 0;
    member.site = known ? header.site : site;
    member.published.store(sequence + 1, std::memory_order_relaxed);
    for (int phase = 0; phase <= phases(); ++phase)
      Crew::arrive(slot.passed[phase], (round + 1) * members);
    if (!context.processes->finish(std::exchange(greeting->outgoing, -1), 0,
                                   check))
      fail(exits::RankFailure, "communication",
           "MPI, rank " + std::to_string(rank()) + ", " + siteText(site) +
               ": " + context.processes->messages().failure());
  }
  greetings.erase(site);
}

void GpuCommunicator::endGreetings() noexcept {
  for (auto &[site, list] : greetings)
    for (auto &greeting : list)
      for (ProcessGroup::Ticket ticket :
           {greeting->incoming, greeting->outgoing})
        if (ticket >= 0)
          context.processes->messages().giveUp(ticket);
  greetings.clear();
}

void GpuCommunicator::await(int64_t site, MeetingPlace::Slot &slot, int phase) {
  if (phase == 0 && context.processes)
    awaitGreetings(site, slot);
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
  if (context.processes)
    greet(site, sequence);
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
