// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ModelSizes.h - the sizes of a job from a model's graph -------------===//
//
// A model can be simulated if it is a stack of equal layers, each attention and
// a network behind it. That is told from shapes and from what feeds what; no op
// is known by name:
//
//   matrix      a product that reads a weight of rank 2
//   attention   products that read no weight, joined where one feeds the other;
//               rank 4 or more: [batch, heads.., tokens, width]
//   q, k, v     matrices that feed an attention with no product between
//   o           the first matrix behind it
//   network     matrices up to the q, k, v of the next attention
//   vocabulary  rows of the largest table that integers look up
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_MTP_RUN_MODELSIZES_H
#define MTP_TOOLS_MTP_RUN_MODELSIZES_H

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace mtp {

/// Keys of a job (compiler/cost/TrainingJob.h): layers, hidden, heads,
/// key-value-heads, feed-forward, gated, untied, sequence, vocabulary, as far
/// as the graph has them. `graph` is that of an explanation of one rank
/// (docs/explain-json.md). Nothing, and `error` with the ops that don't fit, if
/// the model is no stack of layers.
std::optional<nlohmann::json> sizesOfModel(const nlohmann::json &graph,
                                           std::string &error);

} // namespace mtp

#endif // MTP_TOOLS_MTP_RUN_MODELSIZES_H
