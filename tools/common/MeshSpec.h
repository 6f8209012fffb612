// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MeshSpec.h - the mesh of the command line --------------------------===//
//
//   mesh := axis (',' axis)*        axis := name '=' size
//   name := [A-Za-z_][A-Za-z0-9_]*  size := decimal, at least 1
//
// "dp=2,tp=4": slowest axis first, 8 ranks.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_COMMON_MESHSPEC_H
#define MTP_TOOLS_COMMON_MESHSPEC_H

#include "runtime/artifact/Artifact.h"

#include <string>

namespace mtp {

/// More ranks than this in one process or job is taken for a mistake.
inline constexpr int64_t kMaxRanks = 1024;

/// Parses `text`; on failure returns false and `error` is one sentence that
/// names the axis or size that is wrong.
bool parseMesh(const std::string &text, Mesh &mesh, std::string &error);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_MESHSPEC_H
