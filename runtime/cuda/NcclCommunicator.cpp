// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- NcclCommunicator.cpp - one rank a GPU, by NCCL ---------------------===//
//
// Each group of more than one rank has an NCCL communicator. All of them are
// non-blocking: a call may say "in progress", and nothing else is asked of the
// communicator until it is done, within the deadline.
//
// NCCL moves equal, dense blocks. Blocks that lie apart or are padded are
// packed into staging, and unpacked from it, by copies on the comm stream. What
// NCCL can't reduce as mtp means it (its maximum drops NaN; it has no 16-bit
// integers, no "or") is gathered and reduced by the artifact's kernels.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/GpuCommunicator.h"

#include <algorithm>
#include <sched.h>
#include <thread>

using namespace mtp;
using namespace mtp::cuda;
using Kind = CollectiveSite::Kind;

namespace {

/// The first rank waits for the last one to have loaded its weights.
constexpr double kConnectSeconds = 600;

/// The NCCL type that sums like mtp; -1 if there is none.
int sumType(const CollectiveSite &site) {
  if (site.reduction != CollectiveSite::Reduction::Sum)
    return -1;
  switch (site.type) {
  case DType::F64:
    return nccl::F64;
  case DType::F32:
    return nccl::F32;
  case DType::F16:
    return nccl::F16;
  case DType::BF16:
    return nccl::BF16;
  case DType::I64:
    return nccl::I64;
  case DType::U64:
    return nccl::U64;
  case DType::I32:
    return nccl::I32;
  case DType::U32:
    return nccl::U32;
  case DType::I8:
    return nccl::I8;
  case DType::U8:
    return nccl::U8;
  default:
    return -1;
  }
}

class NcclCommunicator : public GpuCommunicator {
public:
  NcclCommunicator(GpuCommContext context, const Mesh &mesh,
                   const std::vector<CollectiveSite> &sites, int rank);

  int phases() const override { return 1; }
  void checkHealth() override;
  void close(bool failed) noexcept override;
  ~NcclCommunicator() override { close(true); }

protected:
  void give(int64_t site, int phase, MeetingPlace::Slot &slot) override;
  void waitFor(int64_t site, MeetingPlace::Slot &slot) override {
    wait(context.compute, mine(site, slot).finished);
  }

private:
  using Clock = std::chrono::steady_clock;

  /// How a site is done.
  struct Plan {
    NcclHandle *comm = nullptr;
    int type = -1;      ///< of a sum that NCCL does
    bool dense = false; ///< the blocks of all members lie in their order
    /// What this rank sends to each member, as boxes of its input.
    std::vector<DeviceCopy> send;
  };

  void connect();
  NcclId groupId(const std::vector<int> &axes, const SiteGeometry &g);
  void plan(const Mesh &mesh, size_t site);
  int64_t stagingOf(size_t site) const;
  NcclStatus poll(NcclHandle *comm, NcclStatus status, double seconds) const;
  /// Waits for the end of a call; `seconds` at most, the deadline if 0.
  void complete(NcclHandle *comm, NcclStatus status, const std::string &what,
                double seconds = 0);
  void allReduce(int64_t site, Address in, Address out);
  void allGather(int64_t site, Address in, Address out);
  void reduceScatter(int64_t site, Address in, Address out);
  void exchange(int64_t site, Address in, Address out);
  void reduceExchanged(int64_t site, Address in, Address out);
  /// Sends packed blocks from `from`, receives into `to`, both one after the
  /// other at multiples of 256.
  void swapBlocks(int64_t site, Address in, Address from, Address to);

  const NcclApi &api;
  std::map<std::vector<int>, NcclHandle *> comms; ///< by axes
  std::vector<Plan> plans;                        ///< one a site
};

NcclCommunicator::NcclCommunicator(GpuCommContext given, const Mesh &mesh,
                                   const std::vector<CollectiveSite> &sites,
                                   int rank)
    : GpuCommunicator(std::move(given), mesh, sites, rank),
      api(context.libraries.nccl), plans(sites.size()) {
  for (size_t i = 0; i < sites.size(); ++i)
    if (geometry[i].members.size() > 1)
      comms.emplace(sites[i].axes, nullptr);
  try {
    connect();
  } catch (...) {
    close(true);
    throw;
  }
  for (size_t i = 0; i < sites.size(); ++i)
    if (geometry[i].members.size() > 1)
      plan(mesh, i);
  allocateStaging();
}

/// In the order of the axes, which is the same on all ranks.
void NcclCommunicator::connect() {
  for (auto &[axes, comm] : comms) {
    size_t site = 0;
    while (sites[site].axes != axes)
      ++site;
    const SiteGeometry &g = geometry[site];
    NcclConfig config;
    config.blocking = 0;
    NcclId id = groupId(axes, g);
    NcclStatus status = api.initRank(&comm, static_cast<int>(g.members.size()),
                                     id, g.self, &config);
    // The handle is there before the call is over.
    complete(comm, status, "connecting the ranks of " + sites[site].axisName,
             std::max(context.crew->deadline(), kConnectSeconds));
  }
}

/// Made by the first member of the group, which sends it to those in other
/// processes.
NcclId NcclCommunicator::groupId(const std::vector<int> &axes,
                                 const SiteGeometry &g) {
  if (!context.processes)
    return context.places->idOf(api, axes, g.members[0]);
  ProcessGroup &group = context.processes->messages();
  NcclId id{};
  std::vector<ProcessGroup::Ticket> tickets;
  if (g.self == 0) {
    id = context.places->idOf(api, axes, g.members[0]);
    for (size_t i = 1; i < g.members.size(); ++i)
      tickets.push_back(
          group.send(g.members[i], Processes::NcclId, id.bytes, sizeof(id)));
  } else {
    tickets.push_back(
        group.receive(g.members[0], Processes::NcclId, id.bytes, sizeof(id)));
  }
  for (ProcessGroup::Ticket ticket : tickets)
    if (!context.processes->finish(
            ticket, std::max(context.crew->deadline(), kConnectSeconds),
            [&] { context.crew->checkStopped(); }))
      fail(exits::RankFailure, "communication",
           "NCCL, rank " + std::to_string(rank()) +
               ": the id of a communicator did not come from rank " +
               std::to_string(g.members[0]));
  return id;
}

void NcclCommunicator::plan(const Mesh &mesh, size_t site) {
  const SiteGeometry &g = geometry[site];
  Plan &plan = plans[site];
  plan.comm = comms.at(sites[site].axes);
  plan.type = sumType(sites[site]);
  plan.dense = true;
  for (size_t i = 0; i < g.members.size(); ++i) {
    SiteGeometry theirs(mesh, sites[site], g.members[i]);
    plan.send.emplace_back(theirs.take[g.self]);
    int64_t block = static_cast<int64_t>(i);
    if (sites[site].kind == Kind::AllGather) {
      const DeviceCopy &copy = take[site][i];
      plan.dense &= copy.contiguous() && copy.bytes() == g.inBytes &&
                    copy.targetStart() == block * g.inBytes;
    } else {
      const DeviceCopy &copy = plan.send.back();
      plan.dense &= copy.contiguous() && copy.bytes() == g.outBytes &&
                    copy.sourceStart() == block * g.outBytes;
    }
  }
  needStaging(stagingOf(site));
}

int64_t NcclCommunicator::stagingOf(size_t site) const {
  const SiteGeometry &g = geometry[site];
  auto members = static_cast<int64_t>(g.members.size());
  const Plan &plan = plans[site];
  switch (sites[site].kind) {
  case Kind::AllReduce:
    return plan.type < 0 ? members * g.inBytes : 0;
  case Kind::AllGather:
    return plan.dense ? 0 : members * g.inBytes;
  case Kind::ReduceScatter:
    if (plan.type >= 0)
      return plan.dense ? 0 : members * g.outBytes;
    [[fallthrough]];
  default: {
    int64_t bytes = 0;
    for (size_t i = 0; i < g.members.size(); ++i)
      bytes += deviceAligned(plan.send[i].bytes()) +
               deviceAligned(take[site][i].bytes());
    return bytes;
  }
  }
}

/// The status when the call is over, or InProgress after the deadline.
NcclStatus NcclCommunicator::poll(NcclHandle *comm, NcclStatus status,
                                  double seconds) const {
  auto begin = Clock::now();
  while (status == nccl::InProgress) {
    context.crew->checkStopped();
    if (std::chrono::duration<double>(Clock::now() - begin).count() > seconds)
      return status;
    sched_yield();
    NcclStatus asked = api.asyncError(comm, &status);
    if (asked != nccl::Success)
      return asked;
  }
  return status;
}

void NcclCommunicator::complete(NcclHandle *comm, NcclStatus status,
                                const std::string &what, double seconds) {
  if (seconds == 0)
    seconds = context.crew->deadline();
  status = poll(comm, status, seconds);
  if (status == nccl::Success)
    return;
  std::string text =
      status == nccl::InProgress
          ? "timed out after " + std::to_string(context.crew->deadline()) + " s"
          : std::string("failed: ") + api.errorText(status);
  const char *last = api.lastError(comm);
  if (last && *last)
    text += std::string(" (") + last + ")";
  fail(exits::RankFailure, "communication",
       "NCCL, rank " + std::to_string(rank()) + ", " + what + ": " + text);
}

void NcclCommunicator::checkHealth() {
  for (auto &[axes, comm] : comms) {
    NcclStatus status = nccl::Success;
    NcclStatus asked = api.asyncError(comm, &status);
    if (asked == nccl::Success && status == nccl::InProgress)
      continue;
    complete(comm, asked == nccl::Success ? status : asked, "during a step");
  }
}

void NcclCommunicator::close(bool failed) noexcept {
  std::vector<NcclHandle *> open;
  for (auto &[axes, comm] : comms)
    if (comm)
      open.push_back(comm);
  comms.clear();
  if (open.empty())
    return;
  // Ranks that are gone don't answer: then every rank aborts, and whatever
  // hangs in there is left behind after the deadline.
  NcclApi functions = api;
  auto over = std::make_shared<std::atomic<uint32_t>>(0);
  auto end = [functions, open, failed, over] {
    if (!failed) {
      for (NcclHandle *comm : open)
        functions.finalize(comm);
      for (NcclHandle *comm : open) {
        NcclStatus status = nccl::InProgress;
        while (functions.asyncError(comm, &status) == nccl::Success &&
               status == nccl::InProgress)
          sched_yield();
        functions.destroy(comm);
      }
    } else {
      for (NcclHandle *comm : open)
        functions.abort(comm);
    }
    over->store(1, std::memory_order_release);
  };
  std::thread helper([end, &device = context.device] {
    try {
      device.makeCurrent();
    } catch (const RuntimeError &) {
      return; // the device is lost
    }
    end();
  });
  auto begin = Clock::now();
  while (over->load(std::memory_order_acquire) == 0 &&
         std::chrono::duration<double>(Clock::now() - begin).count() <
             context.crew->deadline())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (over->load(std::memory_order_acquire))
    helper.join();
  else
    helper.detach();
}

void NcclCommunicator::give(int64_t site, int, MeetingPlace::Slot &slot) {
  MeetingPlace::Member &self = mine(site, slot);
  switch (sites[site].kind) {
  case Kind::AllReduce:
    allReduce(site, self.in, self.out);
    break;
  case Kind::AllGather:
    allGather(site, self.in, self.out);
    break;
  case Kind::ReduceScatter:
    reduceScatter(site, self.in, self.out);
    break;
  default:
    exchange(site, self.in, self.out);
  }
  record(self.finished, commStream());
}

void NcclCommunicator::allReduce(int64_t site, Address in, Address out) {
  const SiteGeometry &g = geometry[site];
  const Plan &plan = plans[site];
  if (plan.type >= 0)
    return complete(plan.comm,
                    api.allReduce(pointerTo(in), pointerTo(out),
                                  static_cast<size_t>(g.inElements), plan.type,
                                  nccl::Sum, plan.comm, commStream()),
                    describe(site));
  complete(plan.comm,
           api.allGather(pointerTo(in), pointerTo(staging()),
                         static_cast<size_t>(g.inBytes), nccl::U8, plan.comm,
                         commStream()),
           describe(site));
  copyBytes(driver, staging(), out, g.inBytes, commStream());
  for (size_t i = 1; i < g.members.size(); ++i)
    context.reductions.enqueue(sites[site], out,
                               staging() + i * static_cast<Address>(g.inBytes),
                               g.inElements, commStream());
}

void NcclCommunicator::allGather(int64_t site, Address in, Address out) {
  const SiteGeometry &g = geometry[site];
  const Plan &plan = plans[site];
  Address target = plan.dense ? out : staging();
  complete(plan.comm,
           api.allGather(pointerTo(in), pointerTo(target),
                         static_cast<size_t>(g.inBytes), nccl::U8, plan.comm,
                         commStream()),
           describe(site));
  if (plan.dense)
    return;
  for (size_t i = 0; i < g.members.size(); ++i)
    take[site][i].enqueue(driver,
                          staging() + i * static_cast<Address>(g.inBytes), out,
                          commStream());
}

void NcclCommunicator::reduceScatter(int64_t site, Address in, Address out) {
  const SiteGeometry &g = geometry[site];
  const Plan &plan = plans[site];
  if (plan.type < 0)
    return reduceExchanged(site, in, out);
  Address source = in;
  if (!plan.dense) {
    source = staging();
    // Each block in the shape of its owner's result.
    for (size_t i = 0; i < g.members.size(); ++i)
      plan.send[i].enqueue(driver, in,
                           source + i * static_cast<Address>(g.outBytes),
                           commStream());
  }
  complete(plan.comm,
           api.reduceScatter(
               pointerTo(source), pointerTo(out),
               static_cast<size_t>(g.outBytes / byteSize(sites[site].type)),
               plan.type, nccl::Sum, plan.comm, commStream()),
           describe(site));
}

void NcclCommunicator::swapBlocks(int64_t site, Address in, Address from,
                                  Address to) {
  const SiteGeometry &g = geometry[site];
  const Plan &plan = plans[site];
  Address at = from;
  for (const DeviceCopy &block : plan.send) {
    block.packing().enqueue(driver, in, at, commStream());
    at += static_cast<Address>(deviceAligned(block.bytes()));
  }
  auto checkCall = [&](NcclStatus status) {
    if (status != nccl::Success && status != nccl::InProgress)
      complete(plan.comm, status, describe(site));
  };
  checkCall(api.groupStart());
  for (size_t i = 0; i < g.members.size(); ++i) {
    int peer = static_cast<int>(i);
    // A rank always brings something, if only nothing to itself.
    bool isSelf = peer == g.self;
    if (isSelf || !plan.send[i].empty())
      checkCall(api.send(pointerTo(from),
                         static_cast<size_t>(plan.send[i].bytes()), nccl::U8,
                         peer, plan.comm, commStream()));
    if (isSelf || !take[site][i].empty())
      checkCall(api.receive(pointerTo(to),
                            static_cast<size_t>(take[site][i].bytes()),
                            nccl::U8, peer, plan.comm, commStream()));
    from += static_cast<Address>(deviceAligned(plan.send[i].bytes()));
    to += static_cast<Address>(deviceAligned(take[site][i].bytes()));
  }
  complete(plan.comm, api.groupEnd(), describe(site));
}

void NcclCommunicator::exchange(int64_t site, Address in, Address out) {
  Address received = staging();
  for (const DeviceCopy &block : plans[site].send)
    received += static_cast<Address>(deviceAligned(block.bytes()));
  swapBlocks(site, in, staging(), received);
  for (const DeviceCopy &block : take[site]) {
    block.unpacking().enqueue(driver, received, out, commStream());
    received += static_cast<Address>(deviceAligned(block.bytes()));
  }
}

void NcclCommunicator::reduceExchanged(int64_t site, Address in, Address out) {
  Address received = staging();
  for (const DeviceCopy &block : plans[site].send)
    received += static_cast<Address>(deviceAligned(block.bytes()));
  swapBlocks(site, in, staging(), received);
  const DeviceCopy &block = take[site][0];
  if (block.empty())
    return;
  for (size_t i = 1; i < take[site].size(); ++i)
    context.reductions.enqueue(
        sites[site], received,
        received + i * static_cast<Address>(deviceAligned(block.bytes())),
        block.bytes() / byteSize(sites[site].type), commStream());
  block.unpacking().enqueue(driver, received, out, commStream());
}

} // namespace

std::unique_ptr<GpuCommunicator>
mtp::cuda::makeNcclCommunicator(GpuCommContext context, const Mesh &mesh,
                                const std::vector<CollectiveSite> &sites,
                                int rank) {
  return std::make_unique<NcclCommunicator>(std::move(context), mesh, sites,
                                            rank);
}
