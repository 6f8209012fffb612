// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProcessCommunicator.cpp - collectives as messages ------------------===//
//
// When a collective starts, every member sends every other one a header and
// what that member takes of its input: in the same message if it is small, in
// one of its own if it is large. Large ones are received when the header has
// been seen to mean the same collective.
//
//   start   header [+ small] ->     large ->
//   done    headers compared, large received, boxes copied or sums made
//
// Sums are made by the receiver, in the order of the members. A large
// all_reduce has each member sum its slice of all inputs and send the result to
// the others: a second message. What has come is taken on at every start, done
// and instruction in between, so that transfers run beside computation.
//
//===----------------------------------------------------------------------===//
#include "runtime/processes/ProcessCommunicator.h"
#include "runtime/comm/Reduce.h"
#include "runtime/processes/Headers.h"
#include "runtime/processes/Pause.h"
#include "runtime/support/AlignedBuffer.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace mtp;
using Kind = CollectiveSite::Kind;
using State = ProcessGroup::State;
using Ticket = ProcessGroup::Ticket;

namespace {

/// What goes with the header.
constexpr int64_t kSmallBytes = 16 << 10;
/// Slices of an all_reduce begin on a cache line.
constexpr int64_t kSliceElements = 64;
constexpr size_t kHeaderBytes = 64;
static_assert(sizeof(CollectiveHeader) <= kHeaderBytes);

/// The runs of a box one after the other: what is sent of a tensor.
struct Parcel {
  BoxCopy box;
  int64_t bytes = 0;

  Parcel() = default;
  explicit Parcel(const BoxCopy &box) : box(box), bytes(box.runBytes()) {
    for (const BoxCopy::Loop &loop : box.loops())
      bytes *= loop.count;
  }
  bool oneRun() const { return bytes == box.runBytes(); }
  void pack(const char *source, char *packed) const {
    box.forEachRun([&](int64_t from, int64_t) {
      std::memcpy(packed, source + from, box.runBytes());
      packed += box.runBytes();
    });
  }
  void unpack(const char *packed, char *target) const {
    box.forEachRun([&](int64_t, int64_t to) {
      std::memcpy(target + to, packed, box.runBytes());
      packed += box.runBytes();
    });
  }
};

/// A collective under way.
struct Flight {
  struct Peer {
    Ticket header = -1, data = -1, result = -1; ///< to be received
    AlignedBuffer inbox, outbox;                ///< header and small data
    AlignedBuffer packed, block;                ///< large data
    bool arrived = false;                       ///< its header
    bool delivered = false;                     ///< its data
  };
  int64_t site = 0;
  uint64_t sequence = 0;
  const char *in = nullptr;
  char *out = nullptr;
  std::vector<Peer> peers;   ///< by position in the group
  std::vector<Ticket> sends; ///< not known to be over
  bool summed = false;       ///< this member's slice of an all_reduce
};

class ProcessCommunicator : public Communicator {
public:
  ProcessCommunicator(std::shared_ptr<Crew> crew,
                      std::shared_ptr<Processes> processes, const Mesh &mesh,
                      const std::vector<CollectiveSite> &sites, int64_t epoch);
  ~ProcessCommunicator() override;

  void progress() override;

protected:
  void begin(int64_t site, const char *in, char *out) override;
  void finish(int64_t site) override;

private:
  int members(int64_t site) const {
    return static_cast<int>(geometry[site].members.size());
  }
  bool inSlices(int64_t site) const {
    return sites[site].kind == Kind::AllReduce && members(site) > 1 &&
           geometry[site].inBytes > kSmallBytes;
  }
  std::pair<int64_t, int64_t> slice(int64_t site, int member) const;
  /// Bytes that this member sends to `member`, and gets from it.
  int64_t bytesTo(int64_t site, int member) const;
  int64_t bytesFrom(int64_t site, int member) const;
  const char *blockOf(Flight &flight, int member);

  void sendTo(Flight &flight, int member);
  /// Takes on what has come; true when nothing is missing.
  bool advance(Flight &flight);
  void openHeader(Flight &flight, int member);
  void deliver(Flight &flight);
  void reduceInto(Flight &flight, const char *own, char *target,
                  int64_t elements);
  void reduceBlocks(Flight &flight);
  void spread(Flight &flight);
  bool over(Flight &flight, Ticket &ticket);
  void dropSent(Flight &flight);
  [[noreturn]] void stopBroken(int64_t site);
  void giveUp(Flight &flight);

  std::shared_ptr<Crew> crew;
  std::shared_ptr<Processes> processes;
  ProcessGroup &group;
  CollectiveTags tags;
  std::map<std::vector<int>, uint64_t> next;   ///< sequence, by axes
  std::vector<std::vector<Parcel>> send, take; ///< by site and member
  std::vector<std::unique_ptr<Flight>> flights, idle;
  std::vector<std::string> texts; ///< one a site
  std::vector<const char *> inputs;
};

ProcessCommunicator::ProcessCommunicator(
    std::shared_ptr<Crew> given, std::shared_ptr<Processes> others,
    const Mesh &mesh, const std::vector<CollectiveSite> &sites, int64_t epoch)
    : Communicator(mesh, sites, others->rank()), crew(std::move(given)),
      processes(std::move(others)), group(processes->messages()),
      tags(group, sites, epoch) {
  for (size_t i = 0; i < sites.size(); ++i) {
    const SiteGeometry &g = geometry[i];
    send.emplace_back();
    take.emplace_back(g.take.begin(), g.take.end());
    for (int member : g.members)
      send.back().emplace_back(
          SiteGeometry(mesh, sites[i], member).take[g.self]);
    texts.push_back(describe(static_cast<int64_t>(i)));
  }
}

ProcessCommunicator::~ProcessCommunicator() {
  for (auto &flight : flights)
    giveUp(*flight);
  // The crew may outlive the texts.
  for (int i = 0; i < crew->ranks(); ++i)
    if (i != rank())
      crew->note(i, nullptr);
}

void ProcessCommunicator::giveUp(Flight &flight) {
  for (Flight::Peer &peer : flight.peers)
    for (Ticket ticket : {peer.header, peer.data, peer.result})
      if (ticket >= 0)
        group.giveUp(ticket);
  for (Ticket ticket : flight.sends)
    group.giveUp(ticket);
}

void ProcessCommunicator::stopBroken(int64_t site) {
  crew->report({exits::RankFailure,
                "communication",
                "MPI, rank " + std::to_string(rank()) + ", " + texts[site] +
                    ": " + group.failure(),
                {sites[site].node}});
  throw RankStopped();
}

/// First element and number of elements.
std::pair<int64_t, int64_t> ProcessCommunicator::slice(int64_t site,
                                                       int member) const {
  int64_t total = geometry[site].inElements;
  int64_t size =
      ceilDiv(ceilDiv(total, members(site)), kSliceElements) * kSliceElements;
  int64_t begin = std::min(member * size, total);
  return {begin, std::min(size, total - begin)};
}

int64_t ProcessCommunicator::bytesTo(int64_t site, int member) const {
  if (inSlices(site))
    return slice(site, member).second * byteSize(sites[site].type);
  return sites[site].kind == Kind::AllReduce ? geometry[site].inBytes
                                             : send[site][member].bytes;
}

int64_t ProcessCommunicator::bytesFrom(int64_t site, int member) const {
  if (inSlices(site))
    return slice(site, geometry[site].self).second * byteSize(sites[site].type);
  return sites[site].kind == Kind::AllReduce ? geometry[site].inBytes
                                             : take[site][member].bytes;
}

void ProcessCommunicator::sendTo(Flight &flight, int member) {
  int64_t site = flight.site, bytes = bytesTo(site, member);
  const SiteGeometry &g = geometry[site];
  Flight::Peer &peer = flight.peers[member];
  int process = g.members[member];
  CollectiveHeader header{flight.sequence, g.fingerprint, site};
  std::memcpy(peer.outbox.data(), &header, sizeof(header));
  bool small = bytes <= kSmallBytes;
  bool dense =
      sites[site].kind == Kind::AllReduce || send[site][member].oneRun();
  const char *from = flight.in;
  if (inSlices(site))
    from += slice(site, member).first * byteSize(sites[site].type);
  else if (sites[site].kind != Kind::AllReduce && dense)
    from += send[site][member].box.sourceStart();
  if (!small && !dense && static_cast<int64_t>(peer.packed.size()) < bytes)
    peer.packed = AlignedBuffer(static_cast<size_t>(bytes));
  char *packed = small ? peer.outbox.data() + kHeaderBytes : peer.packed.data();
  if (!dense)
    send[site][member].pack(flight.in, packed);
  else if (small && bytes)
    std::memcpy(packed, from, static_cast<size_t>(bytes));
  flight.sends.push_back(
      group.send(process, tags(site, flight.sequence, CollectiveTags::Header),
                 peer.outbox.data(),
                 kHeaderBytes + (small ? static_cast<size_t>(bytes) : 0)));
  if (!small)
    flight.sends.push_back(
        group.send(process, tags(site, flight.sequence, CollectiveTags::Data),
                   dense ? from : packed, static_cast<size_t>(bytes)));
}

void ProcessCommunicator::begin(int64_t site, const char *in, char *out) {
  const SiteGeometry &g = geometry[site];
  if (idle.empty())
    idle.push_back(std::make_unique<Flight>());
  std::unique_ptr<Flight> flight = std::move(idle.back());
  idle.pop_back();
  flight->site = site;
  flight->sequence = next[sites[site].axes]++;
  flight->in = in;
  flight->out = out;
  flight->summed = false;
  flight->peers.resize(g.members.size());
  Flight &started = *flight;
  flights.push_back(std::move(flight));
  for (int i = 0; i < members(site); ++i) {
    Flight::Peer &peer = started.peers[i];
    peer.arrived = peer.delivered = i == g.self;
    if (i == g.self)
      continue;
    if (peer.inbox.empty()) {
      peer.inbox = AlignedBuffer(kHeaderBytes + kSmallBytes);
      peer.outbox = AlignedBuffer(kHeaderBytes + kSmallBytes);
    }
    peer.header = group.receive(
        g.members[i], tags(site, started.sequence, CollectiveTags::Header),
        peer.inbox.data(), kHeaderBytes + kSmallBytes);
  }
  for (int step = 1; step < members(site); ++step)
    sendTo(started, (g.self + step) % members(site));
  progress();
}

/// Whether what the ticket stands for has ended; -1 then.
bool ProcessCommunicator::over(Flight &flight, Ticket &ticket) {
  State state = group.ask(ticket);
  if (state == State::UnderWay)
    return false;
  ticket = -1;
  if (state == State::Failed)
    stopBroken(flight.site);
  return true;
}

/// What a header says is of another process: it is compared, and used as index
/// for a message only.
void ProcessCommunicator::openHeader(Flight &flight, int member) {
  const SiteGeometry &g = geometry[flight.site];
  Flight::Peer &peer = flight.peers[member];
  CollectiveHeader header;
  std::memcpy(&header, peer.inbox.data(), sizeof(header));
  peer.arrived = true;
  bool known =
      header.site >= 0 && header.site < static_cast<int64_t>(sites.size());
  if (header.fingerprint != g.fingerprint ||
      header.sequence != flight.sequence || !known)
    stopMismatch(*crew, flight.site, flight.sequence, g.members[member],
                 known ? header.site : flight.site);
  crew->note(g.members[member], &texts[header.site]);
  int64_t bytes = bytesFrom(flight.site, member);
  if (bytes <= kSmallBytes) {
    peer.delivered = true;
    return;
  }
  if (static_cast<int64_t>(peer.block.size()) < bytes)
    peer.block = AlignedBuffer(static_cast<size_t>(bytes));
  peer.data =
      group.receive(g.members[member],
                    tags(flight.site, flight.sequence, CollectiveTags::Data),
                    peer.block.data(), static_cast<size_t>(bytes));
}

void ProcessCommunicator::dropSent(Flight &flight) {
  std::erase_if(flight.sends,
                [&](Ticket ticket) { return over(flight, ticket); });
}

bool ProcessCommunicator::advance(Flight &flight) {
  bool all = true;
  for (size_t i = 0; i < flight.peers.size(); ++i) {
    Flight::Peer &peer = flight.peers[i];
    if (peer.header >= 0 && over(flight, peer.header))
      openHeader(flight, static_cast<int>(i));
    if (peer.data >= 0 && over(flight, peer.data))
      peer.delivered = true;
    if (peer.result >= 0)
      over(flight, peer.result);
    all &= peer.delivered && peer.result < 0;
  }
  dropSent(flight);
  // Slices come back to where inputs are still being read from, if `out` is
  // `in`: only when those have been sent.
  if (all && !flight.summed && inSlices(flight.site) && flight.sends.empty()) {
    spread(flight);
    return false;
  }
  return all && flight.sends.empty() &&
         (flight.summed || !inSlices(flight.site));
}

void ProcessCommunicator::progress() {
  for (auto &flight : flights)
    advance(*flight);
}

/// What member `member` has sent.
const char *ProcessCommunicator::blockOf(Flight &flight, int member) {
  Flight::Peer &peer = flight.peers[member];
  return bytesFrom(flight.site, member) <= kSmallBytes
             ? peer.inbox.data() + kHeaderBytes
             : peer.block.data();
}

void ProcessCommunicator::reduceInto(Flight &flight, const char *own,
                                     char *target, int64_t elements) {
  const CollectiveSite &site = sites[flight.site];
  inputs.clear();
  for (int i = 0; i < members(flight.site); ++i)
    inputs.push_back(i == geometry[flight.site].self ? own
                                                     : blockOf(flight, i));
  reduceMembers(site.type, site.reduction, inputs.data(), members(flight.site),
                target, elements);
}

/// Sums this member's slice and exchanges it for those of the others.
void ProcessCommunicator::spread(Flight &flight) {
  int64_t site = flight.site, element = byteSize(sites[site].type);
  const SiteGeometry &g = geometry[site];
  int64_t tag = tags(site, flight.sequence, CollectiveTags::Result);
  auto [begin, elements] = slice(site, g.self);
  char *mine = flight.out + begin * element;
  reduceInto(flight, flight.in + begin * element, mine, elements);
  flight.summed = true;
  for (int step = 1; step < members(site); ++step) {
    int i = (g.self + step) % members(site);
    auto [at, count] = slice(site, i);
    if (count)
      flight.peers[i].result =
          group.receive(g.members[i], tag, flight.out + at * element,
                        static_cast<size_t>(count * element));
    if (elements)
      flight.sends.push_back(group.send(
          g.members[i], tag, mine, static_cast<size_t>(elements * element)));
  }
}

void ProcessCommunicator::reduceBlocks(Flight &flight) {
  int64_t site = flight.site, at = 0;
  const BoxCopy &box = geometry[site].take[0];
  int64_t elements = box.runBytes() / byteSize(sites[site].type);
  box.forEachRun([&](int64_t from, int64_t to) {
    inputs.clear();
    for (int i = 0; i < members(site); ++i)
      inputs.push_back(i == geometry[site].self ? flight.in + from
                                                : blockOf(flight, i) + at);
    reduceMembers(sites[site].type, sites[site].reduction, inputs.data(),
                  members(site), flight.out + to, elements);
    at += box.runBytes();
  });
}

void ProcessCommunicator::deliver(Flight &flight) {
  int64_t site = flight.site;
  const SiteGeometry &g = geometry[site];
  if (inSlices(site))
    return;
  if (sites[site].kind == Kind::AllReduce)
    return reduceInto(flight, flight.in, flight.out, g.inElements);
  if (sites[site].kind == Kind::ReduceScatter)
    return reduceBlocks(flight);
  g.take[g.self](flight.in, flight.out);
  for (int i = 0; i < members(site); ++i)
    if (i != g.self && take[site][i].bytes)
      take[site][i].unpack(blockOf(flight, i), flight.out);
}

void ProcessCommunicator::finish(int64_t site) {
  auto it = std::find_if(flights.begin(), flights.end(),
                         [&](auto &flight) { return flight->site == site; });
  if (it == flights.end())
    return;
  Flight &flight = **it;
  for (Pause pause; !advance(flight); pause()) {
    crew->checkStopped();
    progress();
    if (pause.seconds() < crew->deadline())
      continue;
    std::vector<bool> arrived;
    for (const Flight::Peer &peer : flight.peers)
      arrived.push_back(peer.arrived);
    stopMissing(*crew, site, flight.sequence, arrived);
  }
  deliver(flight);
  it = std::find_if(flights.begin(), flights.end(),
                    [&](auto &other) { return other.get() == &flight; });
  idle.push_back(std::move(*it));
  flights.erase(it);
}

} // namespace

std::unique_ptr<Communicator> mtp::makeProcessCommunicator(
    std::shared_ptr<Crew> crew, std::shared_ptr<Processes> processes,
    const Mesh &mesh, const std::vector<CollectiveSite> &sites, int64_t epoch) {
  return std::make_unique<ProcessCommunicator>(
      std::move(crew), std::move(processes), mesh, sites, epoch);
}
