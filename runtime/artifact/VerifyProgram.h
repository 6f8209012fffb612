// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- VerifyProgram.h - parts of the artifact's verifier -----------------===//
#ifndef MTP_RUNTIME_ARTIFACT_VERIFYPROGRAM_H
#define MTP_RUNTIME_ARTIFACT_VERIFYPROGRAM_H

#include "runtime/artifact/Artifact.h"

#include <stdexcept>

namespace mtp::verify {

struct Invalid : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Throws Invalid with `message` unless `condition`.
void require(bool condition, const std::string &message);
std::string quoted(const std::string &name);
/// Bytes of a tensor; throws if an extent is negative or the size too large.
int64_t checkedBytes(DType type, const std::vector<int64_t> &shape,
                     const std::string &what);
void checkSharding(const Mesh &mesh, const DimSharding &sharding,
                   int64_t extent, const std::string &what);
void checkLayout(const Mesh &mesh, const TensorLayout &layout,
                 const std::string &what);

/// How many of its last buffers a kernel or a call of a known site writes.
int64_t resultsOf(const Artifact &artifact, const Instruction &step);

void checkLibrarySite(const LibrarySite &site, const std::string &what);
/// Shapes against kind, extents and cuts.
void checkCollectiveSite(const Mesh &mesh, const CollectiveSite &site,
                         const std::string &what);
/// Operands lie inside their buffers; what an instruction writes is no input
/// and no parameter but an updated one; loops nest; each start has its done, in
/// the same loop, and nothing touches its result in between.
void checkProgram(const Artifact &artifact, const Entry &entry);
/// Device "cuda": PTX with an entry for every kernel, launches that a GPU
/// accepts, library calls that it has. Other devices: no GPU code.
void checkGpuCode(const Artifact &artifact);

/// Collectives that may be under way at once.
inline constexpr int kMaxOutstanding = 16;

} // namespace mtp::verify

#endif // MTP_RUNTIME_ARTIFACT_VERIFYPROGRAM_H
