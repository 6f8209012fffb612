// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/session/Assembly.h"

#include <cstring>

using namespace mtp;

std::optional<BlockMap> mtp::writtenBlock(const TensorLayout &layout,
                                          const Mesh &mesh, int rank,
                                          const std::vector<int> &partial,
                                          const std::vector<int64_t> &at) {
  std::vector<int64_t> coordinates = mesh.coordinates(rank);
  for (int axis : partial) {
    if (coordinates[axis] != at[axis])
      return std::nullopt;
    coordinates[axis] = 0;
  }
  BlockMap map(layout, mesh, coordinates);
  if (!map.writesOutput() || map.bytes() == 0)
    return std::nullopt;
  return map;
}

bool mtp::assemble(World &world, const TensorLayout &layout, char *whole,
                   const std::vector<int> &partial,
                   const std::vector<int64_t> &at, Error &error) {
  Processes *processes = world.options.processes.get();
  if (!processes)
    return true;
  std::vector<char> block;
  for (int rank = 1; rank < processes->size(); ++rank) {
    if (!processes->isFirst() && processes->rank() != rank)
      continue;
    auto map = writtenBlock(layout, world.artifact.axes, rank, partial, at);
    if (!map)
      continue;
    block.resize(static_cast<size_t>(map->bytes()));
    if (!processes->isFirst())
      map->cut(whole, block.data());
    if (!processes->collect(rank, block.data(), block.size(),
                            world.options.collectiveTimeout,
                            "to assemble a tensor", error))
      return false;
    if (processes->isFirst())
      map->assemble(block.data(), whole);
  }
  return true;
}

bool mtp::assembleOutputs(World &world, const Entry &entry,
                          const std::vector<HostTensor *> &outputs,
                          Error &error) {
  Processes *processes = world.options.processes.get();
  if (!processes)
    return true;
  std::string scalars;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!assemble(world, entry.outputs[i].layout, outputs[i]->bytes.data(), {},
                  {}, error))
      return false;
    if (outputs[i]->elements() == 1)
      scalars.append(outputs[i]->bytes.data(), outputs[i]->bytes.size());
  }
  if (scalars.empty())
    return true;
  if (!processes->share(scalars, world.options.collectiveTimeout,
                        "to share what a step gives", error))
    return false;
  const char *next = scalars.data();
  for (HostTensor *output : outputs) {
    if (output->elements() != 1)
      continue;
    std::memcpy(output->bytes.data(), next, output->bytes.size());
    next += output->bytes.size();
  }
  return true;
}

/// A number that differs where bytes do, but for one in 2^64.
static uint64_t digest(const HostTensor &tensor, uint64_t hash) {
  const char *at = tensor.bytes.data();
  size_t left = tensor.bytes.size();
  while (left) {
    uint64_t word = 0;
    size_t part = left < sizeof(word) ? left : sizeof(word);
    std::memcpy(&word, at, part);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
    at += part;
    left -= part;
  }
  return hash;
}

bool mtp::checkSameInputs(World &world,
                          const std::vector<const HostTensor *> &given,
                          Error &error) {
  Processes *processes = world.options.processes.get();
  if (!processes)
    return true;
  uint64_t mine = given.size();
  for (const HostTensor *tensor : given)
    mine = digest(*tensor, mine);
  std::vector<uint64_t> all;
  if (!processes->exchange(mine, all, world.options.collectiveTimeout,
                           "to compare inputs", error))
    return false;
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0]) {
      error = {exits::BadInput,
               "input",
               "rank " + std::to_string(rank) +
                   " was given other inputs than rank 0: every process needs "
                   "the same files",
               {}};
      return false;
    }
  return true;
}
