// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- StoredTensors.h - whole tensors from what ranks keep ---------------===//
//
// What a program updates lies in pieces (the recipe of each parameter) of
// blocks (its layout). Whole tensors are those of the model: an initializer in
// its own shape, an optimizer state in the shape of its initializer. Where
// ranks are processes, process 0 gets what is read.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_SESSION_STOREDTENSORS_H
#define MTP_RUNTIME_SESSION_STOREDTENSORS_H

#include "runtime/session/RankThreads.h"

namespace mtp {

class StoredTensors {
public:
  StoredTensors(World &world, RankThreads &threads)
      : world(world), artifact(world.artifact), threads(threads) {}

  /// Initializers by name, or with `states` "w/exp_avg".
  bool read(bool states, TensorMap &whole, Error &error);
  /// Replaces what stands in `whole`; other stored tensors keep their values.
  bool write(bool states, const TensorMap &whole, Error &error);

private:
  /// The parameters of each whole tensor, by its name.
  std::map<std::string, std::vector<int64_t>> pieces(bool states) const;
  bool readPiece(int64_t parameter, HostTensor &piece, Error &error);
  bool check(const std::string &name, const std::vector<int64_t> &parts,
             const HostTensor &tensor, Error &error) const;

  World &world;
  const Artifact &artifact;
  RankThreads &threads;
};

} // namespace mtp

#endif // MTP_RUNTIME_SESSION_STOREDTENSORS_H
