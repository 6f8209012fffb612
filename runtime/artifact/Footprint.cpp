// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/artifact/Footprint.h"

#include "runtime/artifact/VerifyProgram.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <set>
#include <span>

using namespace mtp;
using verify::resultsOf;

namespace {
/// Sizes come from an artifact: a sum stays at the largest number.
void add(int64_t &sum, int64_t bytes) {
  if (!checkedAdd(sum, bytes, sum))
    sum = INT64_MAX;
}

int64_t localBytes(const Artifact &artifact, const TensorLayout &layout) {
  int64_t bytes = byteSize(layout.type);
  for (int64_t extent : layout.localShape(artifact.axes))
    if (!checkedMul(bytes, extent, bytes))
      return INT64_MAX;
  return bytes;
}

/// Blocks of gradients that are kept, and in which the step has them, too: it
/// reads them there. (Others are copies, made at its end.)
int64_t bytesInKeptBlocks(const Artifact &artifact, const Entry &entry) {
  std::set<int64_t> read;
  for (const Instruction &step : entry.program) {
    size_t reads = step.buffers.size() - size_t(resultsOf(artifact, step));
    for (const BufferRef &buffer : std::span(step.buffers).first(reads))
      if (buffer.space == BufferRef::Space::Parameter)
        read.insert(buffer.index);
  }
  int64_t bytes = 0;
  for (int64_t index : read)
    if (const Parameter &kept = artifact.parameters[size_t(index)];
        kept.state == "gradient")
      add(bytes, localBytes(artifact, kept.layout));
  return bytes;
}

/// What gradients have of the arena at the end of the entry that needs most.
int64_t gradientsInArena(const Artifact &artifact) {
  auto largest =
      std::max_element(artifact.entries.begin(), artifact.entries.end(),
                       [](const Entry &a, const Entry &b) {
                         return a.arenaBytes < b.arenaBytes;
                       });
  nlohmann::json::json_pointer key("/training/gradient_bytes");
  if (largest == artifact.entries.end() || !artifact.plan.is_object() ||
      !artifact.plan.contains(key / largest->name) ||
      !artifact.plan[key / largest->name].is_number_integer())
    return 0;
  int64_t all = artifact.plan[key / largest->name];
  return std::clamp<int64_t>(all - bytesInKeptBlocks(artifact, *largest), 0,
                             largest->arenaBytes);
}
} // namespace

Footprint mtp::footprintOf(const Artifact &artifact) {
  Footprint result;
  for (const Parameter &parameter : artifact.parameters) {
    const std::string &state = parameter.state;
    bool isGradient = state == "accumulator" || state == "gradient";
    add(isGradient      ? result.gradientBlocks
        : state.empty() ? result.parameters
                        : result.optimizer,
        localBytes(artifact, parameter.layout));
  }
  for (const Entry &entry : artifact.entries) {
    result.arena = std::max(result.arena, entry.arenaBytes);
    for (const Input &input : entry.inputs)
      add(result.workspace, localBytes(artifact, input.layout));
    for (const Output &output : entry.outputs)
      add(result.workspace, localBytes(artifact, output.layout));
  }
  int64_t inArena = gradientsInArena(artifact);
  result.gradients = result.gradientBlocks;
  add(result.gradients, inArena);
  result.activations = result.arena - inArena;
  for (int64_t bytes : {result.parameters, result.gradients, result.optimizer,
                        result.activations, result.workspace})
    add(result.total, bytes);
  return result;
}
