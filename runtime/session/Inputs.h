// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Inputs.h - whole tensors to blocks and back ------------------------===//
#ifndef MTP_RUNTIME_SESSION_INPUTS_H
#define MTP_RUNTIME_SESSION_INPUTS_H

#include "runtime/artifact/Artifact.h"
#include "runtime/io/HostTensor.h"
#include "runtime/support/Box.h"

namespace mtp {

/// How the valid part of one rank's block lies in the whole tensor.
class BlockMap {
public:
  BlockMap(const TensorLayout &layout, const Mesh &mesh,
           const std::vector<int64_t> &coordinates);

  void cut(const char *whole, char *block) const { toBlock(whole, block); }
  void assemble(const char *block, char *whole) const { toWhole(block, whole); }

  int64_t bytes() const { return blockBytes; }
  /// One rank of those that hold the same block writes it: the one that is
  /// first on every mesh axis that doesn't cut the tensor.
  bool writesOutput() const { return writes; }

private:
  BoxCopy toBlock, toWhole;
  int64_t blockBytes = 0;
  bool writes = true;
};

/// Fills memory of `type` with what must not reach a result: NaN and infinity
/// in turn, large integers, true.
void poison(DType type, char *bytes, int64_t size);
/// The same for memory of unknown type: NaN in every float type.
void poisonArena(char *bytes, int64_t size);

} // namespace mtp

#endif // MTP_RUNTIME_SESSION_INPUTS_H
