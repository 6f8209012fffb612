// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Communicator.h"

using namespace mtp;

const char *mtp::name(CollectiveSite::Kind kind) {
  switch (kind) {
  case CollectiveSite::Kind::AllReduce:
    return "all_reduce";
  case CollectiveSite::Kind::AllGather:
    return "all_gather";
  case CollectiveSite::Kind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveSite::Kind::AllToAll:
    return "all_to_all";
  case CollectiveSite::Kind::Permute:
    return "permute";
  }
  return "collective";
}

Communicator::Communicator(const Mesh &mesh,
                           const std::vector<CollectiveSite> &sites, int rank)
    : sites(sites), self(rank), counts(sites.size()) {
  geometry.reserve(sites.size());
  for (const CollectiveSite &site : sites)
    geometry.emplace_back(mesh, site, rank);
}

void Communicator::start(int64_t site, const char *in, char *out) {
  counts[site].count += sites[site].partOf < 0;
  counts[site].bytes += geometry[site].inBytes;
  counts[site].wireBytes += geometry[site].wireBytes;
  begin(site, in, out);
}

void Communicator::done(int64_t site) { finish(site); }

std::string Communicator::describe(int64_t site) const {
  const CollectiveSite &s = sites[site];
  std::string text = s.op.empty() ? name(s.kind) : s.op;
  if (!s.node.empty())
    text += " of '" + s.node + "'";
  return text + " over " + s.axisName;
}

void Communicator::stopMissing(Crew &crew, int64_t site, uint64_t sequence,
                               const std::vector<bool> &arrived) const {
  const SiteGeometry &g = geometry[site];
  std::string here, missing;
  for (size_t i = 0; i < g.members.size(); ++i) {
    std::string rank = "rank " + std::to_string(g.members[i]);
    if (arrived[i])
      here += (here.empty() ? "" : ", ") + rank;
    else
      missing += (missing.empty() ? "" : ", ") + rank + " (last in " +
                 crew.lastAction(g.members[i]) + ")";
  }
  if (missing.empty())
    missing = "none, but one did not finish";
  std::string seconds = std::to_string(crew.deadline());
  seconds.resize(seconds.find('.') + 3);
  crew.report({exits::RankFailure,
               "communication",
               describe(site) + " (collective " + std::to_string(sequence) +
                   " of its group) timed out after " + seconds +
                   " s; arrived: " + here + "; missing: " + missing,
               {sites[site].node}});
  throw RankStopped();
}

void Communicator::stopMismatch(Crew &crew, int64_t site, uint64_t sequence,
                                int other, int64_t otherSite) const {
  crew.report({exits::RankFailure,
               "communication",
               "ranks disagree on collective " + std::to_string(sequence) +
                   " of their group: rank " + std::to_string(rank()) +
                   " is in " + describe(site) + ", rank " +
                   std::to_string(other) + " in " + describe(otherSite),
               {sites[site].node, sites[otherSite].node}});
  throw RankStopped();
}
