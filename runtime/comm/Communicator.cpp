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
  counts[site].count += 1;
  counts[site].bytes += geometry[site].inBytes;
  counts[site].wireBytes += geometry[site].wireBytes;
  begin(site, in, out);
}

void Communicator::done(int64_t site) { finish(site); }
