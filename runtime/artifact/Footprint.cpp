// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/artifact/Footprint.h"

#include "runtime/support/Checked.h"

#include <algorithm>
#include <map>

using namespace mtp;

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
} // namespace

Footprint mtp::footprintOf(const Artifact &artifact) {
  std::map<std::string, int64_t> states; // "": the parameters themselves
  Footprint result;
  for (const Parameter &parameter : artifact.parameters) {
    int64_t bytes = localBytes(artifact, parameter.layout);
    add(states[parameter.state], bytes);
    add(result.total, bytes);
  }
  for (const Entry &entry : artifact.entries) {
    result.arena = std::max(result.arena, entry.arenaBytes);
    for (const Input &input : entry.inputs)
      add(result.total, localBytes(artifact, input.layout));
    for (const Output &output : entry.outputs)
      add(result.total, localBytes(artifact, output.layout));
  }
  add(result.total, result.arena);

  result.parameters = states[""];
  result.optimizer = states["exp_avg"];
  add(result.optimizer, states["exp_avg_sq"]);
  add(result.optimizer, states["momentum"]);
  if (artifact.plan.is_object() && artifact.plan.contains("training"))
    result.gradients =
        artifact.plan["training"].value("gradient_bytes", int64_t(0));
  bool inArena = !states.count("accumulator");
  result.activations =
      std::max<int64_t>(result.arena - (inArena ? result.gradients : 0), 0);
  int64_t named = result.parameters;
  for (int64_t bytes : {result.gradients, result.optimizer, result.activations})
    add(named, bytes);
  result.workspace = std::max<int64_t>(result.total - named, 0);
  return result;
}
