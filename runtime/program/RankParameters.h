// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RankParameters.h - the weights that one rank keeps -----------------===//
#ifndef MTP_RUNTIME_PROGRAM_RANKPARAMETERS_H
#define MTP_RUNTIME_PROGRAM_RANKPARAMETERS_H

#include "runtime/loader/ParameterLoader.h"
#include "runtime/loader/WeightFiles.h"

#include <vector>

namespace mtp {

/// Blocks are loaded when they are first asked for and let go when all that
/// read them have packed them.
class RankParameters {
public:
  RankParameters(const Artifact &artifact, const WeightFiles &files, int rank);

  /// Loads the block if it isn't there; its address.
  const char *load(int64_t index);
  /// The address, null if it isn't loaded.
  const char *address(int64_t index) const { return blocks[index].data; }
  /// The address of the rank's own copy of an updated parameter.
  char *updatedAddress(int64_t index) { return blocks[index].owned.data(); }
  void release(int64_t index);
  /// The least rank that holds the same block of parameter `index`.
  int owner(int64_t index) const;

private:
  const Artifact &artifact;
  const WeightFiles &files;
  std::vector<int64_t> coordinates;
  std::vector<LoadedBlock> blocks;
};

} // namespace mtp

#endif // MTP_RUNTIME_PROGRAM_RANKPARAMETERS_H
