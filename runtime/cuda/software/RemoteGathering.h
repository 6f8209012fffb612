// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RemoteGathering.h - ranks of a communicator in other processes -----===//
//
// Each rank leaves what it brings to a collective as a file in a folder of the
// communicator, and takes what the others left. The folder is in memory, its
// name can't be guessed, and only its owner may look into it.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_SOFTWARE_REMOTEGATHERING_H
#define MTP_RUNTIME_CUDA_SOFTWARE_REMOTEGATHERING_H

#include <cstdint>
#include <string>
#include <vector>

namespace mtp::software {

/// Whether each rank is a process of its own: MPI has started several.
bool ranksAreProcesses();
/// 128 random bits, as text.
std::string randomName();

class RemoteGathering {
public:
  /// Throws RuntimeError if the folder can't be had.
  RemoteGathering(const std::string &name, int ranks, int rank);
  ~RemoteGathering();
  RemoteGathering(const RemoteGathering &) = delete;

  /// Leaves `mine` and waits for the others: what each rank left, by rank.
  /// Throws RuntimeError if they don't come.
  std::vector<std::string> exchange(const std::string &mine);

  /// All ranks have joined; some may have left since.
  bool complete();

private:
  std::string file(int rank, uint64_t number) const;
  void leave(uint64_t number, const std::string &bytes) const;

  std::string folder;
  int ranks, rank;
  int joined = 0; ///< ranks that have been seen
  uint64_t next = 1; ///< file 0 says that a rank has joined
};

} // namespace mtp::software

#endif // MTP_RUNTIME_CUDA_SOFTWARE_REMOTEGATHERING_H
