// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Headers.h - how members of a group name a collective ---------------===//
#ifndef MTP_RUNTIME_PROCESSES_HEADERS_H
#define MTP_RUNTIME_PROCESSES_HEADERS_H

#include "runtime/artifact/Artifact.h"
#include "runtime/processes/Processes.h"

#include <map>

namespace mtp {

/// Comes before the data of a collective, from each member to each other.
struct CollectiveHeader {
  uint64_t sequence = 0; ///< in the group
  uint64_t fingerprint = 0;
  int64_t site = 0;
};

/// Tags of the messages of collectives. Groups that vary over the same axes
/// share theirs: they have no pair of members in common.
class CollectiveTags {
public:
  enum Kind { Header, Data, Result, Kinds };
  /// More than an artifact may have under way at once in a group.
  static constexpr uint64_t kWindow = 64;

  /// Sets of axes of a session, where there are several sessions.
  static constexpr int64_t kMostGroups = 256;

  /// `epoch`: sessions of one run after each other don't meet each other's
  /// messages. Throws RuntimeError if the library has too few tags.
  CollectiveTags(ProcessGroup &group, const std::vector<CollectiveSite> &sites,
                 int64_t epoch = 0) {
    std::map<std::vector<int>, int64_t> numbers;
    for (const CollectiveSite &site : sites)
      numbers.emplace(site.axes, 0);
    int64_t next = kMostGroups * epoch;
    for (auto &[axes, number] : numbers)
      number = next++;
    for (const CollectiveSite &site : sites)
      groups.push_back(numbers[site.axes]);
    if (Processes::Collective + next * static_cast<int64_t>(kWindow) * Kinds >
        group.tags())
      fail(exits::RankFailure, "communication",
           "MPI has " + std::to_string(group.tags()) +
               " tags, too few for the collectives of " +
               std::to_string(numbers.size()) + " sets of mesh axes");
  }

  int64_t operator()(int64_t site, uint64_t sequence, Kind kind) const {
    return Processes::Collective +
           (groups[static_cast<size_t>(site)] * static_cast<int64_t>(kWindow) +
            static_cast<int64_t>(sequence % kWindow)) *
               Kinds +
           kind;
  }

private:
  std::vector<int64_t> groups; ///< one a site
};

} // namespace mtp

#endif // MTP_RUNTIME_PROCESSES_HEADERS_H
