// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Footprint.h - the bytes that a rank holds --------------------------===//
#ifndef MTP_RUNTIME_ARTIFACT_FOOTPRINT_H
#define MTP_RUNTIME_ARTIFACT_FOOTPRINT_H

#include "runtime/artifact/Artifact.h"

namespace mtp {

/// Bytes that the runtime passes to its allocator for one rank, padding of
/// blocks included, by what they are for. Sums saturate. A memory budget is
/// about `total`. Not in it: copies of weights that library kernels pack for
/// themselves and their scratch (Session::libraryBytesPerRank), stacks, code.
struct Footprint {
  int64_t parameters = 0; ///< blocks of weights and constants
  /// `gradientBlocks`, and the part of the arena that gradients have when
  /// their norm is taken, or those of a micro-batch before they are added.
  int64_t gradients = 0;
  int64_t optimizer = 0;   ///< states of the optimizer
  int64_t activations = 0; ///< the rest of the arena
  int64_t workspace = 0;   ///< blocks of inputs and outputs
  /// Accumulators, and gradients that are kept to be read.
  int64_t gradientBlocks = 0;
  int64_t arena = 0; ///< part of gradients and activations
  int64_t total = 0; ///< of the first five; the last two are in them
};
Footprint footprintOf(const Artifact &artifact);

} // namespace mtp

#endif // MTP_RUNTIME_ARTIFACT_FOOTPRINT_H
