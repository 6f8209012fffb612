// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Recipe.h - the shape that a load-time recipe leads to --------------===//
#ifndef MTP_RUNTIME_ARTIFACT_RECIPE_H
#define MTP_RUNTIME_ARTIFACT_RECIPE_H

#include "runtime/artifact/Artifact.h"

namespace mtp {

/// Applies `step` to `shape`; false and one sentence if it doesn't fit.
bool applyToShape(const RecipeStep &step, std::vector<int64_t> &shape,
                  std::string &error);

} // namespace mtp

#endif // MTP_RUNTIME_ARTIFACT_RECIPE_H
