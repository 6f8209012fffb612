// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PlanTable.h - the plan as a person reads it ------------------------===//
#ifndef MTP_TOOLS_COMMON_PLANTABLE_H
#define MTP_TOOLS_COMMON_PLANTABLE_H

#include "compiler/driver/CompilerApi.h"

#include <string>

namespace mtp {

/// What a rank must send in a step for this collective.
int64_t predictedWireBytes(const Artifact &artifact,
                           const CollectiveSite &site);

/// Two tables: each weight and how it is split, each collective with place,
/// bytes and reason; identical layers in one row. `compiled` is null for a
/// program that was loaded from an artifact.
std::string planTable(const Artifact &artifact, const CompileResult *compiled);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_PLANTABLE_H
