// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SiteGeometry.h - a collective site as one rank sees it -------------===//
#ifndef MTP_RUNTIME_COMM_SITEGEOMETRY_H
#define MTP_RUNTIME_COMM_SITEGEOMETRY_H

#include "runtime/artifact/Artifact.h"
#include "runtime/support/Box.h"

#include <vector>

namespace mtp {

/// The group, and which bytes go where. Padding is left out of every copy, so
/// it is stripped where blocks are put together and inserted where they are
/// cut.
struct SiteGeometry {
  SiteGeometry(const Mesh &mesh, const CollectiveSite &site, int64_t rank);

  std::vector<int> members; ///< ranks of the group, in its order
  int self = 0;             ///< position of this rank in `members`
  int64_t inElements = 0, inBytes = 0, outBytes = 0;
  int64_t wireBytes = 0; ///< what this rank must send at least
  /// What this rank takes from the input of each member:
  ///   AllGather     the member's block
  ///   AllToAll      the member's block along `dim`, mine along `splitDim`
  ///   ReduceScatter my block (the same for every member)
  ///   Permute       everything, of one member
  /// Empty boxes for the others; unused for AllReduce.
  std::vector<BoxCopy> take;
  /// Equal for all ranks that mean the same collective.
  uint64_t fingerprint = 0;
};

/// What one of `members` ranks must send in a collective to which it
/// contributes `bytes` (its share of the ring algorithms, rounded up).
int64_t wireBytesOf(CollectiveSite::Kind kind, int64_t bytes, int64_t members);

} // namespace mtp

#endif // MTP_RUNTIME_COMM_SITEGEOMETRY_H
