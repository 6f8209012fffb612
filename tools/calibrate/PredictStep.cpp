// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/calibrate/PredictStep.h"

#include "compiler/cost/Cluster.h"

#include <algorithm>

using namespace mtp;
using plan::FlopKind;
using plan::Time;

static int64_t elements(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

static FlopKind kindOf(const LibrarySite &site) {
  if (site.attributes.value("compute", "") == "bf16")
    return FlopKind::Half;
  switch (site.operands[0].type) {
  case DType::F64:
    return FlopKind::F64;
  case DType::F32:
    return FlopKind::F32;
  case DType::F16:
  case DType::BF16:
    return FlopKind::Half;
  default:
    return FlopKind::Other;
  }
}

/// The products of a library call; 0 if it has none.
static Time productTime(const LibrarySite &site, const plan::Machine &machine) {
  auto shape = [&](size_t i) { return site.operands[i].shape; };
  FlopKind kind = kindOf(site);
  if (site.kind == "matmul") {
    std::vector<int64_t> a = shape(0), y = shape(site.operands.size() - 1);
    bool transposed = site.attributes.value("transposeA", false);
    int64_t n = y.back(), m = y[y.size() - 2],
            k = a[a.size() - (transposed ? 2 : 1)];
    return plan::product(machine, elements(y) / std::max<int64_t>(m * n, 1), m,
                         n, k, kind);
  }
  if (site.kind == "attention" || site.kind == "attention_gradient") {
    std::vector<int64_t> q = shape(0), key = shape(1), value = shape(2);
    int64_t batch = q[0] * q[1], s = q[2], t = key[2];
    if (site.attributes.value("causal", false))
      t = (t + 1) / 2; // about half of the keys are skipped
    Time scores = plan::product(machine, batch, s, t, q[3], kind),
         context = plan::product(machine, batch, s, value[3], t, kind);
    if (site.kind == "attention")
      return plan::add(scores, context);
    // The scores again, and two products for each of the two.
    return plan::add(plan::add(scores, scores),
                     plan::add(scores, plan::add(context, context)));
  }
  return 0;
}

Time mtp::predictCollective(const Artifact &artifact,
                            const CollectiveSite &site,
                            const plan::Machine &machine) {
  int64_t ranks = 1, local = elements(site.inShape) * byteSize(site.type);
  for (int axis : site.axes)
    ranks *= artifact.axes.axes[size_t(axis)].size;
  switch (site.kind) {
  case CollectiveSite::Kind::AllReduce:
    return plan::allReduce(machine, site.axes, local);
  case CollectiveSite::Kind::AllGather:
    return plan::allGather(machine, site.axes, local * ranks);
  case CollectiveSite::Kind::ReduceScatter:
    return plan::reduceScatter(machine, site.axes, local);
  case CollectiveSite::Kind::AllToAll:
    return plan::allToAll(machine, site.axes, local * ranks);
  case CollectiveSite::Kind::Permute:
    return plan::permute(machine, site.axes, local * ranks);
  }
  return 0;
}

PredictedStep mtp::predictStep(const Artifact &artifact, const Entry &entry,
                               const plan::Calibration &calibration) {
  std::vector<std::pair<std::string, int64_t>> axes;
  for (const Mesh::Axis &axis : artifact.axes.axes)
    axes.push_back({axis.name, axis.size});
  plan::Machine machine = machineFor(calibration, axes);
  Time least = plan::fromMicroseconds(calibration.kernelUs);
  PredictedStep step;
  std::vector<int64_t> loops = {1}; // how often the current instruction runs
  auto charge = [&](Time &sum, Time time) {
    for (int64_t i = 0, n = std::min<int64_t>(loops.back(), 1 << 20); i < n;
         ++i)
      sum = plan::add(sum, time);
  };
  for (const Instruction &instruction : entry.program) {
    int64_t bytes = 0;
    for (const BufferRef &buffer : instruction.buffers)
      bytes += buffer.bytes;
    switch (instruction.kind) {
    case Instruction::Kind::Kernel:
      charge(step.kernels, std::max(least, plan::memory(machine, bytes)));
      break;
    case Instruction::Kind::Library: {
      Time time = productTime(artifact.librarySites[size_t(instruction.index)],
                              machine);
      charge(time ? step.products : step.kernels,
             std::max(least, time ? time : plan::memory(machine, bytes)));
      break;
    }
    case Instruction::Kind::Start:
      charge(step.collectives,
             predictCollective(
                 artifact, artifact.collectiveSites[size_t(instruction.index)],
                 machine));
      break;
    case Instruction::Kind::Done:
      break;
    case Instruction::Kind::LoopBegin:
      loops.push_back(loops.back() * instruction.count);
      break;
    case Instruction::Kind::LoopEnd:
      loops.pop_back();
      break;
    }
  }
  return step;
}
