// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- World.h - what all ranks of a session share ------------------------===//
#ifndef MTP_RUNTIME_PROGRAM_WORLD_H
#define MTP_RUNTIME_PROGRAM_WORLD_H

#include "runtime/comm/Communicator.h"
#include "runtime/kernels/LibraryKernel.h"
#include "runtime/loader/ObjectLoader.h"
#include "runtime/loader/WeightFiles.h"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace mtp {

struct WorldOptions {
  std::string weightsDir;
  double collectiveTimeout = 60;
  int threadsPerRank = 1;
  bool spin = false;
  bool poison = false;
  bool checkSources = true;
  bool profile = false; ///< take the time of every step of a program
  int64_t seed = 0;
};

/// The artifact, its files and its code, the crew. Ranks hold references to it.
struct World {
  /// Opens files and loads the object; throws RuntimeError.
  World(Artifact given, const WorldOptions &options)
      : artifact(std::move(given)), options(options),
        files(artifact, options.weightsDir), object(artifact),
        crew(std::make_shared<Crew>(static_cast<int>(artifact.axes.ranks()),
                                    options.collectiveTimeout, options.spin)),
        packs(crew->ranks()) {
    std::string().swap(artifact.object);
  }

  /// A number for the bytes at `offset` of the block of `parameter` that rank
  /// `owner` holds: equal for equal bytes.
  uint64_t constantKey(int64_t parameter, int owner, int64_t offset) {
    std::lock_guard lock(keyMutex);
    return keys.try_emplace({parameter, owner, offset}, keys.size() + 1)
        .first->second;
  }

  Artifact artifact;
  const WorldOptions options;
  WeightFiles files;
  LoadedObject object;
  std::shared_ptr<Crew> crew;
  /// Packed constants by the owner of their block: ranks that hold the same
  /// block share a copy, others don't wait for each other.
  std::vector<PackCache> packs;

private:
  std::mutex keyMutex;
  std::map<std::tuple<int64_t, int, int64_t>, uint64_t> keys;
};

} // namespace mtp

#endif // MTP_RUNTIME_PROGRAM_WORLD_H
