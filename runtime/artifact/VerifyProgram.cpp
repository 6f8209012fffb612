// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- VerifyProgram.cpp - the data program and its sites -----------------===//
#include "runtime/artifact/VerifyProgram.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

using namespace mtp;
using namespace mtp::verify;

namespace {

/// Bytes from the first to past the last element that `desc` reaches.
int64_t reach(const TensorDesc &desc, const std::string &what) {
  int64_t dense = checkedBytes(desc.type, desc.shape, what);
  if (desc.strides.empty() || dense == 0)
    return dense;
  int64_t last = 0;
  for (size_t i = 0; i < desc.shape.size(); ++i) {
    int64_t step;
    require(desc.strides[i] >= 0 &&
                checkedMul(desc.shape[i] - 1, desc.strides[i], step) &&
                checkedAdd(last, step, last),
            what + " has an invalid stride");
  }
  int64_t bytes;
  require(checkedAdd(last, 1, bytes) &&
              checkedMul(bytes, byteSize(desc.type), bytes),
          what + " has an invalid stride");
  return bytes;
}

struct Extents {
  int64_t whole;   ///< of the side that is not cut by the site's axes
  int64_t sharded; ///< of the side that is
};

/// Capacities of a dimension before and after the cut by the site's axes.
Extents extentsOf(const Mesh &mesh, const CollectiveSite &site, int64_t extent,
                  const DimSharding &sharding, const std::string &what) {
  checkSharding(mesh, sharding, extent, what);
  require(sharding.axes.size() >= site.axes.size() &&
              std::equal(site.axes.begin(), site.axes.end(),
                         sharding.axes.end() - site.axes.size()),
          what + " does not end with the axes of the collective");
  DimSharding outer = sharding;
  outer.axes.resize(sharding.axes.size() - site.axes.size());
  std::vector<int64_t> origin(mesh.axes.size(), 0);
  return {blockOf(extent, outer, mesh, origin).capacity,
          blockOf(extent, sharding, mesh, origin).capacity};
}

int64_t groupSize(const Mesh &mesh, const std::vector<int> &axes) {
  int64_t size = 1;
  for (int axis : axes)
    size *= mesh.axes[axis].size;
  return size;
}

void checkPermutation(const CollectiveSite &site, int64_t members,
                      const std::string &what) {
  require(site.inShape == site.outShape, what + " changes the shape");
  std::set<int64_t> used;
  for (int64_t source : site.sourceOf)
    require(source >= 0 && source < members && used.insert(source).second,
            what + " is not a permutation of its group");
  require(static_cast<int64_t>(used.size()) == members,
          what + " is not a permutation of its group");
}

std::span<const BufferRef> writtenBy(const Artifact &artifact,
                                     const Instruction &step) {
  return std::span(step.buffers)
      .last(static_cast<size_t>(resultsOf(artifact, step)));
}

/// A loop that is open, and the collectives under way in it.
struct ProgramChecker {
  const Artifact &artifact;
  const Entry &entry;
  struct Outstanding {
    const Instruction *start;
    size_t depth;
  };
  std::map<int64_t, Outstanding> outstanding;
  std::vector<size_t> loops;

  int64_t spaceBytes(const BufferRef &ref, const std::string &what) const {
    const Mesh &mesh = artifact.axes;
    auto local = [&](const TensorLayout &layout) {
      return elementCount(layout.localShape(mesh)) * byteSize(layout.type);
    };
    auto at = [&](const auto &list) -> const auto & {
      require(ref.index >= 0 && ref.index < static_cast<int64_t>(list.size()),
              what + " refers to number " + std::to_string(ref.index) + " of " +
                  std::to_string(list.size()));
      return list[ref.index];
    };
    switch (ref.space) {
    case BufferRef::Space::Arena:
      return entry.arenaBytes;
    case BufferRef::Space::Parameter:
      return local(at(artifact.parameters).layout);
    case BufferRef::Space::Input:
      return local(at(entry.inputs).layout);
    case BufferRef::Space::Output:
      return local(at(entry.outputs).layout);
    case BufferRef::Space::RankValue:
      at(artifact.rankValues);
      return sizeof(int64_t);
    }
    throw Invalid(what + " lies in an unknown space");
  }

  void checkRef(const BufferRef &ref, const std::string &what) const {
    int64_t end, space = spaceBytes(ref, what);
    require(checkedAdd(ref.offset, ref.bytes, end) && end <= space,
            what + " reaches past its space of " + std::to_string(space) +
                " bytes");
  }

  static bool overlap(const BufferRef &a, const BufferRef &b) {
    return a.space == b.space &&
           (a.space == BufferRef::Space::Arena || a.index == b.index) &&
           a.bytes > 0 && b.bytes > 0 && a.offset < b.offset + b.bytes &&
           b.offset < a.offset + a.bytes;
  }

  /// The buffer has been checked.
  bool writable(const BufferRef &ref) const {
    return ref.space == BufferRef::Space::Arena ||
           ref.space == BufferRef::Space::Output ||
           (ref.space == BufferRef::Space::Parameter &&
            artifact.parameters[ref.index].updated);
  }

  void checkUntouched(const Instruction &step, const std::string &what) const {
    for (const auto &[site, pending] : outstanding)
      for (const BufferRef &ref : step.buffers)
        require(!overlap(ref, pending.start->buffers[1]),
                what + " touches the result of collective site " +
                    std::to_string(site) + " before it is done");
  }

  /// What a collective reads stays as it is until it is done.
  void checkUnchanged(std::span<const BufferRef> written,
                      const std::string &what) const {
    for (const auto &[site, pending] : outstanding)
      for (const BufferRef &ref : written)
        require(!overlap(ref, pending.start->buffers[0]),
                what + " writes the operand of collective site " +
                    std::to_string(site) + " before it is done");
  }

  /// The instructions that a library call stands for write what it writes, and
  /// nothing that outlives the step: both are tried before the first one.
  void checkOtherwise(const Instruction &step, size_t position,
                      const std::string &what) const {
    if (step.otherwise == 0)
      return;
    require(artifact.device != "cpu",
            what + " has another form, which a CPU doesn't choose from");
    const std::vector<Instruction> &program = entry.program;
    require(step.otherwise > 0 &&
                step.otherwise <
                    static_cast<int64_t>(program.size() - position),
            what + " has another form of " + std::to_string(step.otherwise) +
                " instructions, more than follow");
    std::vector<BufferRef> wanted(writtenBy(artifact, step).begin(),
                                  writtenBy(artifact, step).end());
    for (size_t i = position + 1;
         i <= position + static_cast<size_t>(step.otherwise); ++i) {
      const Instruction &other = program[i];
      bool isLibrary = other.kind == Instruction::Kind::Library;
      require((isLibrary || other.kind == Instruction::Kind::Kernel) &&
                  other.otherwise == 0,
              what + " has another form that neither calls nor launches");
      require(!isLibrary || (other.index >= 0 &&
                             other.index < static_cast<int64_t>(
                                               artifact.librarySites.size())),
              what + " has another form that calls an unknown library site");
      int64_t results = resultsOf(artifact, other);
      require(results >= 0 &&
                  results <= static_cast<int64_t>(other.buffers.size()),
              what + " has another form with more results than operands");
      for (const BufferRef &ref : writtenBy(artifact, other)) {
        require(ref.space == BufferRef::Space::Arena ||
                    ref.space == BufferRef::Space::Output,
                what + " has another form that writes a parameter");
        std::erase_if(wanted, [&](const BufferRef &result) {
          return result.space == ref.space && result.index == ref.index &&
                 result.offset == ref.offset && result.bytes == ref.bytes;
        });
      }
    }
    require(wanted.empty(),
            what + " has another form that leaves out a result");
  }

  void checkKernel(const Instruction &step, const std::string &what) const {
    auto buffers = static_cast<int64_t>(step.buffers.size());
    require(step.results >= 0 && step.results <= buffers,
            what + " has more results than operands");
    for (int64_t i = buffers - step.results; i < buffers; ++i)
      require(writable(step.buffers[i]),
              what + " writes a parameter that is not updated, or an input");
    checkUnchanged(writtenBy(artifact, step), what);
  }

  void checkLibrary(const Instruction &step, const std::string &what) const {
    require(step.index >= 0 &&
                step.index < static_cast<int64_t>(artifact.librarySites.size()),
            what + " calls an unknown library site");
    const LibrarySite &site = artifact.librarySites[step.index];
    require(step.buffers.size() == site.operands.size(),
            what + " has " + std::to_string(step.buffers.size()) +
                " operands, its site " + std::to_string(site.operands.size()));
    int64_t inputs = static_cast<int64_t>(site.operands.size()) - site.results;
    for (size_t i = 0; i < site.operands.size(); ++i) {
      require(reach(site.operands[i], what) <= step.buffers[i].bytes,
              what + " operand " + std::to_string(i) +
                  " is larger than its buffer");
      require(static_cast<int64_t>(i) < inputs || writable(step.buffers[i]),
              what + " writes a parameter that is not updated, or an input");
    }
    checkUnchanged(writtenBy(artifact, step), what);
  }

  void checkStart(const Instruction &step, const std::string &what) {
    require(step.index >= 0 &&
                step.index <
                    static_cast<int64_t>(artifact.collectiveSites.size()),
            what + " starts an unknown collective site");
    const CollectiveSite &site = artifact.collectiveSites[step.index];
    require(step.buffers.size() == 2, what + " needs an input and an output");
    const BufferRef &in = step.buffers[0], &out = step.buffers[1];
    require(in.bytes == checkedBytes(site.type, site.inShape, what) &&
                out.bytes == checkedBytes(site.type, site.outShape, what),
            what + " has buffers of another size than its shapes");
    require(writable(out),
            what + " writes a parameter that is not updated, or an input");
    bool inPlace = site.kind == CollectiveSite::Kind::AllReduce &&
                   in.space == out.space && in.index == out.index &&
                   in.offset == out.offset;
    require(inPlace || !overlap(in, out), what + " overlaps its own input");
    checkUnchanged(std::span(&out, 1), what);
    require(outstanding.size() < kMaxOutstanding,
            what + " is one too many: more than " +
                std::to_string(kMaxOutstanding) + " collectives under way");
    require(outstanding.emplace(step.index, Outstanding{&step, loops.size()})
                .second,
            what + " starts a site that is under way");
  }

  void checkStep(const Instruction &step, size_t position) {
    std::string what = entry.name + " step " + std::to_string(position) + " " +
                       quoted(step.name);
    for (const BufferRef &ref : step.buffers)
      checkRef(ref, what);
    using Kind = Instruction::Kind;
    if (step.kind != Kind::Done)
      checkUntouched(step, what);
    switch (step.kind) {
    case Kind::Kernel:
      require(step.index >= 0 && step.index < static_cast<int64_t>(
                                                  artifact.kernelNames.size()),
              what + " launches an unknown kernel");
      require(step.count >= 0 && step.grain >= 1,
              what + " has a negative count or no grain");
      return checkKernel(step, what);
    case Kind::Library:
      checkLibrary(step, what);
      return checkOtherwise(step, position, what);
    case Kind::Start:
      return checkStart(step, what);
    case Kind::Done: {
      auto it = outstanding.find(step.index);
      require(it != outstanding.end() && it->second.depth == loops.size(),
              what + " ends a collective that was not started here");
      outstanding.erase(it);
      return;
    }
    case Kind::LoopBegin:
      require(step.count >= 0 && loops.size() < 16,
              what + " has a negative count or nests too deep");
      require(outstanding.empty(),
              what + " begins a loop with collectives under way");
      loops.push_back(position);
      return;
    case Kind::LoopEnd:
      require(!loops.empty(), what + " ends no loop");
      require(outstanding.empty(),
              what + " ends a loop with collectives under way");
      loops.pop_back();
      return;
    }
  }
};

} // namespace

int64_t verify::resultsOf(const Artifact &artifact, const Instruction &step) {
  return step.kind == Instruction::Kind::Library
             ? artifact.librarySites[step.index].results
             : step.results;
}

void verify::checkLibrarySite(const LibrarySite &site,
                              const std::string &what) {
  require(site.results >= 0 &&
              site.results <= static_cast<int64_t>(site.operands.size()),
          what + " has more results than operands");
  for (const TensorDesc &desc : site.operands) {
    require(desc.strides.empty() || desc.strides.size() == desc.shape.size(),
            what + " has another number of strides than dims");
    reach(desc, what);
  }
}

void verify::checkCollectiveSite(const Mesh &mesh, const CollectiveSite &site,
                                 const std::string &what) {
  using Kind = CollectiveSite::Kind;
  checkedBytes(site.type, site.inShape, what);
  checkedBytes(site.type, site.outShape, what);
  checkSharding(mesh, DimSharding{site.axes, 1}, 0, what);
  require(!site.axes.empty(), what + " has no mesh axis");
  if (site.kind == Kind::AllReduce)
    return require(site.inShape == site.outShape, what + " changes the shape");
  if (site.kind == Kind::Permute)
    return checkPermutation(site, groupSize(mesh, site.axes), what);

  int64_t rank = static_cast<int64_t>(site.inShape.size());
  require(site.dim >= 0 && site.dim < rank,
          what + " has dim " + std::to_string(site.dim) + " of a tensor with " +
              std::to_string(rank));
  Extents along = extentsOf(mesh, site, site.extent, site.sharding, what);
  std::vector<int64_t> in = site.inShape, out = site.inShape;
  switch (site.kind) {
  case Kind::AllGather:
    in[site.dim] = along.sharded;
    out[site.dim] = along.whole;
    break;
  case Kind::ReduceScatter:
    in[site.dim] = along.whole;
    out[site.dim] = along.sharded;
    break;
  default: {
    require(site.splitDim >= 0 && site.splitDim < rank &&
                site.splitDim != site.dim,
            what + " has split dim " + std::to_string(site.splitDim));
    Extents split =
        extentsOf(mesh, site, site.splitExtent, site.splitSharding, what);
    in[site.dim] = along.sharded;
    out[site.dim] = along.whole;
    in[site.splitDim] = split.whole;
    out[site.splitDim] = split.sharded;
  }
  }
  require(site.inShape == in && site.outShape == out,
          what +
              " has local shapes that do not follow from its extent and cut");
}

void verify::checkProgram(const Artifact &artifact, const Entry &entry) {
  require(entry.arenaBytes >= 0 && entry.arenaBytes <= (int64_t(1) << 56),
          entry.name + " has an arena of " + std::to_string(entry.arenaBytes) +
              " bytes");
  ProgramChecker checker{artifact, entry, {}, {}};
  for (size_t i = 0; i < entry.program.size(); ++i)
    checker.checkStep(entry.program[i], i);
  require(checker.loops.empty(), entry.name + " has a loop without an end");
  require(checker.outstanding.empty(),
          entry.name + " ends with a collective under way");
}
