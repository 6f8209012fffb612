// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ParameterLoader.h - the block of a weight that a rank has ----------===//
#ifndef MTP_RUNTIME_LOADER_PARAMETERLOADER_H
#define MTP_RUNTIME_LOADER_PARAMETERLOADER_H

#include "runtime/artifact/Artifact.h"
#include "runtime/support/AlignedBuffer.h"

namespace mtp {

/// One rank's block of a parameter, in the shape of its layout's localShape().
struct LoadedBlock {
  /// Aligned to its element at least (to 64 if owned); never null.
  const char *data = nullptr;
  /// Empty if `data` points into the source itself.
  AlignedBuffer owned;
};

/// Applies recipe, conversion and cut of `parameter` to its stored bytes (null:
/// all zero) for the rank with `coordinates`. Padding is zero. Touches only
/// what the block needs, except where a reshape has to copy first. The block of
/// an updated parameter is always owned.
LoadedBlock loadBlock(const Parameter &parameter, const char *source,
                      const Mesh &mesh,
                      const std::vector<int64_t> &coordinates);

/// The inverse of a recipe: writes the elements of `piece`, a dense tensor of
/// the shape that `recipe` leads to, to where they come from in `whole`, a
/// dense tensor of `shape`. Elements outside of the piece stay.
void undoRecipe(const std::vector<RecipeStep> &recipe, int64_t elementBytes,
                const char *piece, char *whole,
                const std::vector<int64_t> &shape);

} // namespace mtp

#endif // MTP_RUNTIME_LOADER_PARAMETERLOADER_H
