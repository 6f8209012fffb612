// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/program/RankParameters.h"

using namespace mtp;

RankParameters::RankParameters(const Artifact &artifact,
                               const WeightFiles &files, int rank)
    : artifact(artifact), files(files),
      coordinates(artifact.axes.coordinates(rank)),
      blocks(artifact.parameters.size()) {}

const char *RankParameters::load(int64_t index) {
  LoadedBlock &block = blocks[index];
  if (!block.data) {
    block = loadBlock(artifact.parameters[index], files.bytes(index),
                      artifact.axes, coordinates);
    if (!block.owned.empty() && files.bytes(index))
      files.release(index);
  }
  return block.data;
}

void RankParameters::release(int64_t index) {
  if (blocks[index].data && blocks[index].owned.empty())
    files.release(index);
  blocks[index] = {};
}

int RankParameters::owner(int64_t index) const {
  std::vector<bool> cut(coordinates.size(), false);
  for (const DimSharding &dim : artifact.parameters[index].layout.dims)
    for (int axis : dim.axes)
      cut[axis] = true;
  int64_t rank = 0;
  for (size_t axis = 0; axis < cut.size(); ++axis)
    rank = rank * artifact.axes.axes[axis].size +
           (cut[axis] ? coordinates[axis] : 0);
  return static_cast<int>(rank);
}
