// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- World.h - what all ranks of a session share ------------------------===//
#ifndef MTP_RUNTIME_PROGRAM_WORLD_H
#define MTP_RUNTIME_PROGRAM_WORLD_H

#include "runtime/comm/Communicator.h"
#include "runtime/loader/WeightFiles.h"
#include "runtime/processes/Processes.h"

#include <memory>
#include <vector>

namespace mtp {

class Rank;

struct WorldOptions {
  std::string weightsDir;
  double collectiveTimeout = 60;
  int threadsPerRank = 1;
  bool spin = false;
  bool poison = false;
  bool checkSources = true;
  bool profile = false; ///< take the time of every step of a program
  bool capture = true;  ///< steps on GPUs become graphs
  int64_t seed = 0;
  /// Whose rank is that of the one rank here; null: all ranks are threads.
  std::shared_ptr<Processes> processes;
};

/// The artifact, its files, the crew. Ranks hold references to it.
struct World {
  /// Opens files; throws RuntimeError.
  World(Artifact given, const WorldOptions &options)
      : artifact(std::move(given)), options(options),
        files(artifact, options.weightsDir),
        crew(std::make_shared<Crew>(static_cast<int>(artifact.axes.ranks()),
                                    options.collectiveTimeout, options.spin)) {
    if (options.processes)
      crew->connect(options.processes);
    for (int i = 0; i < crew->ranks(); ++i)
      if (!options.processes || options.processes->rank() == i)
        here.push_back(i);
  }
  virtual ~World() = default;

  /// The ranks of `here`, in order; throws RuntimeError.
  virtual std::vector<std::unique_ptr<Rank>> makeRanks() = 0;

  Artifact artifact;
  const WorldOptions options;
  WeightFiles files;
  std::shared_ptr<Crew> crew;
  std::vector<int> here; ///< the ranks of this process
};

} // namespace mtp

#endif // MTP_RUNTIME_PROGRAM_WORLD_H
