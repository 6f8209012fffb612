// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Communicator.h - collectives between ranks -------------------------===//
//
//     all_reduce        all_gather         reduce_scatter     all_to_all
//   r0 [a]    [a+b]   r0 [a]    [a b]    r0 [a b]   [a+c]   r0 [a b]   [a c]
//   r1 [b] -> [a+b]   r1 [b] -> [a b]    r1 [c d] -> [b+d]  r1 [c d] -> [b d]
//
// One object serves one rank and all collective sites of an artifact. Every
// collective carries a sequence number, a fingerprint of its site and a
// deadline. If a rank doesn't come, or comes with another collective, the first
// rank that notices reports it to the crew and all ranks end.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_COMM_COMMUNICATOR_H
#define MTP_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/artifact/Artifact.h"
#include "runtime/comm/Crew.h"
#include "runtime/comm/SiteGeometry.h"

#include <memory>
#include <vector>

namespace mtp {

class Communicator {
public:
  struct Counter {
    int64_t count = 0, bytes = 0, wireBytes = 0;
  };

  Communicator(const Mesh &mesh, const std::vector<CollectiveSite> &sites,
               int rank);
  virtual ~Communicator() = default;

  /// Begins the collective `site`: doesn't wait for other ranks. `in` may not
  /// change and `out` may not be touched until done(). Throws RankStopped.
  void start(int64_t site, const char *in, char *out);
  /// Ends it: `out` holds the result, `in` may change. Throws RankStopped.
  void done(int64_t site);
  /// Takes on what has come of collectives under way; doesn't wait. Throws
  /// RankStopped.
  virtual void progress() {}

  /// Starts since resetCounters(), one entry a site. A part of a collective
  /// counts its bytes only (CollectiveSite::partOf).
  const std::vector<Counter> &counters() const { return counts; }
  void resetCounters() { counts.assign(counts.size(), {}); }
  int rank() const { return self; }

protected:
  virtual void begin(int64_t site, const char *in, char *out) = 0;
  virtual void finish(int64_t site) = 0;
  /// "all_reduce of 'h.0.mlp' over tp".
  std::string describe(int64_t site) const;
  /// Reports that collective number `sequence` of the group of `site` timed
  /// out; `arrived`: which members came.
  [[noreturn]] void stopMissing(Crew &crew, int64_t site, uint64_t sequence,
                                const std::vector<bool> &arrived) const;
  /// Reports that member `other` came with `otherSite`.
  [[noreturn]] void stopMismatch(Crew &crew, int64_t site, uint64_t sequence,
                                 int other, int64_t otherSite) const;

  const std::vector<CollectiveSite> &sites;
  std::vector<SiteGeometry> geometry; ///< of this rank, one a site

private:
  int self;
  std::vector<Counter> counts;
};

/// "all_reduce".
const char *name(CollectiveSite::Kind kind);

/// Communicators for all ranks of `mesh` that live as threads of this process
/// and read each other's memory. `mesh` and `sites` must outlive them.
std::vector<std::unique_ptr<Communicator>>
makeThreadCommunicators(std::shared_ptr<Crew> crew, const Mesh &mesh,
                        const std::vector<CollectiveSite> &sites);

} // namespace mtp

#endif // MTP_RUNTIME_COMM_COMMUNICATOR_H
