// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/Gpu.h"

#include <algorithm>

namespace mtp::plan {

static Cluster hostOf(int capability) {
  Cluster host;
  host.ranksPerNode = 8;
  if (capability >= 90) {
    host.flopsPerSecond = 989e12;
    host.memoryBytesPerSecond = 3.35e12;
    host.innerBytesPerSecond = 450e9;
    host.outerBytesPerSecond = 50e9;
    host.achieved.products = 0.796;
    host.achieved.memory = 0.8;
    host.achieved.launchUs = 20.2;
  } else if (capability >= 80) {
    host.flopsPerSecond = 312e12;
    host.memoryBytesPerSecond = 2.039e12;
    host.innerBytesPerSecond = 300e9;
    host.outerBytesPerSecond = 25e9;
  } else {
    host.flopsPerSecond = 130e12;
    host.memoryBytesPerSecond = 0.981e12;
    host.innerBytesPerSecond = 150e9;
    host.outerBytesPerSecond = 6.25e9;
  }
  return host;
}

Machine gpuMachine(int capability,
                   const std::vector<std::pair<std::string, int64_t>> &axes) {
  Machine machine = machineFor(hostOf(capability), axes);
  for (FlopKind kind : {FlopKind::F32, FlopKind::F64, FlopKind::Other})
    machine.psPerGigaFlop[size_t(kind)] *= 16;
  return machine;
}

Time timeInParts(const Machine &machine, const SummedProduct &summed,
                 int64_t parts) {
  Time multiply = product(machine, 1, (summed.m + parts - 1) / parts, summed.n,
                          summed.k, summed.kind);
  Time sum = allReduce(machine, summed.axes, summed.bytes / parts);
  Time time = add(multiply, sum);
  for (int64_t i = 1; i < parts; ++i)
    time = add(time, std::max(multiply, sum));
  return time;
}

int64_t bestParts(const Machine &machine, const SummedProduct &summed,
                  int64_t most) {
  Time whole = timeInParts(machine, summed, 1), least = whole - whole / 20;
  int64_t best = 1;
  for (int64_t parts = 2; parts <= std::min(most, summed.m); parts *= 2)
    if (Time time = timeInParts(machine, summed, parts); time < least) {
      least = time;
      best = parts;
    }
  return best;
}

} // namespace mtp::plan
