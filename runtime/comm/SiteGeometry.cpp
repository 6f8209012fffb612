// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/SiteGeometry.h"
#include "runtime/support/Checked.h"

using namespace mtp;
using Kind = CollectiveSite::Kind;

namespace {

/// Ranks that differ from `coordinates` only on `axes`, the last of which is
/// the fastest.
std::vector<int> groupOf(const Mesh &mesh, const std::vector<int> &axes,
                         std::vector<int64_t> coordinates) {
  int64_t size = 1;
  for (int axis : axes)
    size *= mesh.axes[axis].size;
  std::vector<int> members;
  for (int64_t i = 0; i < size; ++i) {
    int64_t rest = i;
    for (size_t k = axes.size(); k-- > 0;) {
      coordinates[axes[k]] = rest % mesh.axes[axes[k]].size;
      rest /= mesh.axes[axes[k]].size;
    }
    int64_t rank = 0;
    for (size_t k = 0; k < mesh.axes.size(); ++k)
      rank = rank * mesh.axes[k].size + coordinates[k];
    members.push_back(static_cast<int>(rank));
  }
  return members;
}

/// The block of `member` inside the block that its group shares.
Block blockInGroup(const Mesh &mesh, int64_t extent,
                   const DimSharding &sharding, size_t groupAxes,
                   int64_t member) {
  DimSharding outer = sharding;
  outer.axes.resize(sharding.axes.size() - groupAxes);
  auto coordinates = mesh.coordinates(member);
  Block block = blockOf(extent, sharding, mesh, coordinates);
  block.offset -= blockOf(extent, outer, mesh, coordinates).offset;
  return block;
}

class Mixer {
public:
  void add(uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  void add(const std::vector<int64_t> &values) {
    add(values.size());
    for (int64_t value : values)
      add(static_cast<uint64_t>(value));
  }
  uint64_t hash = 0x6d7470;
};

uint64_t fingerprintOf(const CollectiveSite &site) {
  Mixer mixer;
  mixer.add(static_cast<uint64_t>(site.kind));
  mixer.add(static_cast<uint64_t>(site.reduction));
  mixer.add(static_cast<uint64_t>(site.type));
  mixer.add(site.inShape);
  mixer.add(site.outShape);
  mixer.add(static_cast<uint64_t>(site.dim));
  mixer.add(static_cast<uint64_t>(site.splitDim));
  mixer.add(site.sourceOf);
  for (char c : site.op + "/" + site.node)
    mixer.add(static_cast<uint8_t>(c));
  return mixer.hash;
}

} // namespace

int64_t mtp::wireBytesOf(Kind kind, int64_t bytes, int64_t members) {
  switch (kind) {
  case Kind::AllReduce:
    return ceilDiv(2 * (members - 1) * bytes, members);
  case Kind::AllGather:
    return (members - 1) * bytes;
  case Kind::ReduceScatter:
  case Kind::AllToAll:
    return ceilDiv((members - 1) * bytes, members);
  case Kind::Permute:
    return bytes;
  }
  return bytes;
}

SiteGeometry::SiteGeometry(const Mesh &mesh, const CollectiveSite &site,
                           int64_t rank) {
  members = groupOf(mesh, site.axes, mesh.coordinates(rank));
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i] == rank)
      self = static_cast<int>(i);
  int64_t element = byteSize(site.type);
  inElements = elementCount(site.inShape);
  inBytes = inElements * element;
  outBytes = elementCount(site.outShape) * element;
  wireBytes =
      wireBytesOf(site.kind, inBytes, static_cast<int64_t>(members.size()));
  fingerprint = fingerprintOf(site);

  const std::vector<int64_t> zero(site.inShape.size(), 0);
  auto block = [&](int64_t extent, const DimSharding &sharding, int member) {
    return blockInGroup(mesh, extent, sharding, site.axes.size(), member);
  };
  take.resize(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    std::vector<int64_t> size = site.inShape, from = zero, to = zero;
    switch (site.kind) {
    case Kind::AllReduce:
      continue;
    case Kind::AllGather: {
      Block theirs = block(site.extent, site.sharding, members[i]);
      size[site.dim] = theirs.valid;
      to[site.dim] = theirs.offset;
      break;
    }
    case Kind::ReduceScatter: {
      Block mine = block(site.extent, site.sharding, static_cast<int>(rank));
      size[site.dim] = mine.valid;
      from[site.dim] = mine.offset;
      break;
    }
    case Kind::AllToAll: {
      Block theirs = block(site.extent, site.sharding, members[i]);
      Block mine =
          block(site.splitExtent, site.splitSharding, static_cast<int>(rank));
      size[site.dim] = theirs.valid;
      to[site.dim] = theirs.offset;
      size[site.splitDim] = mine.valid;
      from[site.splitDim] = mine.offset;
      break;
    }
    case Kind::Permute:
      if (site.sourceOf[self] != static_cast<int64_t>(i))
        continue;
    }
    // Whoever has nothing valid starts past the end; an empty box has no place.
    take[i] = BoxCopy(size, site.inShape, from, site.outShape, to, element);
  }
}
