// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LoopbackCommunicator.cpp - several ranks on one GPU ----------------===//
//
// Ranks read each other's inputs where they lie, and sum them with the kernels
// of the artifact, in the order of the ranks: all get the same bits, and the
// same from run to run. Types of 16 bits are rounded after every addition.
//
//   phase 0   everybody's input is ready: read it; the result goes to `out`, or
//             to staging where `out` is the input that others still read
//   phase 1   everybody has read: staging goes to `out`
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/GpuCommunicator.h"

using namespace mtp;
using namespace mtp::cuda;
using Kind = CollectiveSite::Kind;

namespace {

class LoopbackCommunicator : public GpuCommunicator {
public:
  LoopbackCommunicator(GpuCommContext context, const Mesh &mesh,
                       const std::vector<CollectiveSite> &sites, int rank)
      : GpuCommunicator(std::move(context), mesh, sites, rank) {
    for (size_t i = 0; i < sites.size(); ++i) {
      if (isAlone(static_cast<int64_t>(i)))
        continue;
      if (sites[i].kind == Kind::AllReduce)
        needStaging(geometry[i].inBytes);
      if (sites[i].kind == Kind::ReduceScatter && !take[i][0].contiguous())
        needStaging(2 * deviceAligned(take[i][0].bytes()));
    }
    allocateStaging();
  }

  int phases() const override { return 2; }

protected:
  void give(int64_t site, int phase, MeetingPlace::Slot &slot) override {
    MeetingPlace::Member &self = mine(site, slot);
    bool staged = sites[site].kind == Kind::AllReduce && self.in == self.out;
    if (phase == 0) {
      for (MeetingPlace::Member &member : slot.members)
        if (&member != &self)
          wait(commStream(), member.ready);
      if (sites[site].kind == Kind::AllReduce)
        allReduce(site, slot, staged ? staging() : self.out);
      else if (sites[site].kind == Kind::ReduceScatter)
        reduceScatter(site, slot);
      else
        for (size_t i = 0; i < slot.members.size(); ++i)
          take[site][i].enqueue(driver, slot.members[i].in, self.out,
                                commStream());
      return record(self.read, commStream());
    }
    if (staged) {
      for (MeetingPlace::Member &member : slot.members)
        if (&member != &self)
          wait(commStream(), member.read);
      copyBytes(driver, staging(), self.out, geometry[site].inBytes,
                commStream());
    }
    record(self.finished, commStream());
  }

  void waitFor(int64_t site, MeetingPlace::Slot &slot) override {
    wait(context.compute, mine(site, slot).finished);
    // This rank's input may change only when the others have read it.
    for (MeetingPlace::Member &member : slot.members)
      if (&member != &mine(site, slot))
        wait(context.compute, member.read);
  }

private:
  void allReduce(int64_t site, MeetingPlace::Slot &slot, Address target) {
    const SiteGeometry &g = geometry[site];
    copyBytes(driver, slot.members[0].in, target, g.inBytes, commStream());
    for (size_t i = 1; i < slot.members.size(); ++i)
      context.reductions.enqueue(sites[site], target, slot.members[i].in,
                                 g.inElements, commStream());
  }

  void reduceScatter(int64_t site, MeetingPlace::Slot &slot) {
    const DeviceCopy &block = take[site][0];
    if (block.empty())
      return;
    Address out = mine(site, slot).out;
    int64_t elements = block.bytes() / byteSize(sites[site].type);
    if (block.contiguous()) {
      Address target = out + static_cast<Address>(block.targetStart());
      block.enqueue(driver, slot.members[0].in, out, commStream());
      for (size_t i = 1; i < slot.members.size(); ++i)
        context.reductions.enqueue(
            sites[site], target,
            slot.members[i].in + static_cast<Address>(block.sourceStart()),
            elements, commStream());
      return;
    }
    DeviceCopy pack = block.packing();
    Address sum = staging(),
            term = sum + static_cast<Address>(deviceAligned(block.bytes()));
    pack.enqueue(driver, slot.members[0].in, sum, commStream());
    for (size_t i = 1; i < slot.members.size(); ++i) {
      pack.enqueue(driver, slot.members[i].in, term, commStream());
      context.reductions.enqueue(sites[site], sum, term, elements,
                                 commStream());
    }
    block.unpacking().enqueue(driver, sum, out, commStream());
  }
};

} // namespace

std::unique_ptr<GpuCommunicator>
mtp::cuda::makeLoopbackCommunicator(GpuCommContext context, const Mesh &mesh,
                                    const std::vector<CollectiveSite> &sites,
                                    int rank) {
  return std::make_unique<LoopbackCommunicator>(std::move(context), mesh, sites,
                                                rank);
}
