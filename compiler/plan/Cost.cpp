// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Cost.h"

#include <algorithm>

namespace mtp::plan {
namespace {

using Wide = unsigned __int128;

/// ceil(a * b / c), clamped to kLargestCost.
Time scaled(Wide a, Wide b, Wide c) {
  if (a == 0 || b == 0)
    return 0;
  if (a > (~Wide(0) - c) / b)
    return kLargestCost;
  Wide value = (a * b + c - 1) / c;
  return value > Wide(kLargestCost) ? kLargestCost : Time(value);
}

Time sum(Time a, Time b) { return std::min(add(a, b), kLargestCost); }

struct Level {
  int64_t ranks;
  Link link;
};

/// The levels of a group, innermost first: the last mesh axis has the nearest
/// neighbours.
std::vector<Level> levelsOf(const Machine &machine, std::vector<int> axes) {
  std::sort(axes.begin(), axes.end(), std::greater<int>());
  std::vector<Level> levels;
  for (int index : axes) {
    const AxisLinks &axis = machine.axes[index];
    int64_t inside = std::clamp<int64_t>(axis.ranksPerHost, 1, axis.size);
    int64_t hosts = (axis.size + inside - 1) / inside;
    if (inside > 1)
      levels.push_back({inside, axis.inner});
    if (hosts > 1)
      levels.push_back({hosts, axis.outer});
  }
  return levels;
}

/// `passes` (n-1)-step rings on every level, each outer level on what the inner
/// ones left of the bytes: 1 for gather and scatter, 2 for all_reduce.
Time rings(const Machine &machine, const std::vector<int> &axes, int64_t bytes,
           int passes) {
  std::vector<Level> levels = levelsOf(machine, axes);
  if (levels.empty())
    return 0;
  Time total = machine.launch;
  Wide inner = 1;
  for (const Level &level : levels) {
    Time steps =
        scaled(Wide(passes) * Wide(level.ranks - 1), Wide(level.link.alpha), 1);
    Time data = scaled(Wide(passes) * Wide(bytes) * Wide(level.ranks - 1),
                       Wide(level.link.psPerKiB),
                       Wide(1024) * inner * Wide(level.ranks));
    total = sum(total, sum(steps, data));
    inner *= Wide(level.ranks);
  }
  return total;
}

} // namespace

Machine
Machine::cpuThreads(const std::vector<std::pair<std::string, int64_t>> &axes) {
  Machine machine;
  const Link memory{1'000'000, 204'800}; // 1 us, 5 GB/s
  for (const auto &[name, size] : axes)
    machine.axes.push_back({name, size, size, memory, memory});
  machine.launch = 2'000'000;
  machine.psPerKiloFlopF32 = 16'667;
  machine.psPerKiloFlopF64 = 33'333;
  machine.psPerKiloFlopOther = 166'667;
  return machine;
}

Time allReduce(const Machine &machine, const std::vector<int> &axes,
               int64_t bytes) {
  return rings(machine, axes, bytes, 2);
}
Time allGather(const Machine &machine, const std::vector<int> &axes,
               int64_t bytes) {
  return rings(machine, axes, bytes, 1);
}
Time reduceScatter(const Machine &machine, const std::vector<int> &axes,
                   int64_t bytes) {
  return rings(machine, axes, bytes, 1);
}

Time allToAll(const Machine &machine, const std::vector<int> &axes,
              int64_t bytes) {
  std::vector<Level> levels = levelsOf(machine, axes);
  if (levels.empty())
    return 0;
  Wide all = 1;
  for (const Level &level : levels)
    all *= Wide(level.ranks);
  // Of the bytes/all that a rank holds, (ranks - 1) * inner / all go to ranks
  // that differ on this level but on none outside of it.
  Time total = machine.launch;
  Wide inner = 1;
  for (const Level &level : levels) {
    Wide partners = Wide(level.ranks - 1);
    total = sum(total, scaled(partners, Wide(level.link.alpha), 1));
    total =
        sum(total, scaled(Wide(bytes) * partners * inner,
                          Wide(level.link.psPerKiB), Wide(1024) * all * all));
    inner *= Wide(level.ranks);
  }
  return total;
}

Time permute(const Machine &machine, const std::vector<int> &axes,
             int64_t bytes) {
  std::vector<Level> levels = levelsOf(machine, axes);
  if (levels.empty())
    return 0;
  Wide all = 1;
  Link slowest;
  for (const Level &level : levels) {
    all *= Wide(level.ranks);
    slowest.alpha = std::max(slowest.alpha, level.link.alpha);
    slowest.psPerKiB = std::max(slowest.psPerKiB, level.link.psPerKiB);
  }
  Time data = scaled(Wide(bytes), Wide(slowest.psPerKiB), Wide(1024) * all);
  return sum(machine.launch, sum(slowest.alpha, data));
}

Time compute(const Machine &machine, int64_t flops, FlopKind kind) {
  int64_t rate = kind == FlopKind::F32   ? machine.psPerKiloFlopF32
                 : kind == FlopKind::F64 ? machine.psPerKiloFlopF64
                                         : machine.psPerKiloFlopOther;
  return scaled(Wide(flops), Wide(rate), 1000);
}

} // namespace mtp::plan
