// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ArtifactFile.h - one artifact for several sizes --------------------===//
//
// `--dim seq=16,32` compiles one program a size into one file: magic "MTPM",
// u32 version, u64 count, then for each artifact u64 bytes and the artifact as
// Artifact::serialize writes it (little endian). A single artifact is written
// as it is.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_COMMON_ARTIFACTFILE_H
#define MTP_TOOLS_COMMON_ARTIFACTFILE_H

#include "runtime/artifact/Artifact.h"
#include "runtime/io/HostTensor.h"
#include "runtime/support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace mtp {

std::string serializeArtifacts(const std::vector<Artifact> &artifacts);

/// All artifacts of the file's `bytes`, checked. At least one on success.
bool parseArtifacts(const std::string &bytes, std::vector<Artifact> &artifacts,
                    std::string &error);

/// The first artifact that is compiled for the shapes of `inputs`, -1 if none
/// is (then `error` names compiled and given dimensions). Names that an
/// artifact doesn't have are left to the session.
int chooseArtifact(const std::vector<Artifact> &artifacts,
                   const TensorMap &inputs, std::string &error);

/// Every combination of the values, the last name fastest:
/// {a: 1,2; b: 3,4} gives {1,3} {1,4} {2,3} {2,4}.
std::vector<std::map<std::string, int64_t>> dimCombinations(
    const std::vector<std::pair<std::string, std::vector<int64_t>>> &dims);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_ARTIFACTFILE_H
