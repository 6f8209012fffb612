// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Cost.h"

#include <algorithm>
#include <optional>

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

Time plus(Time a, Time b) { return std::min(add(a, b), kLargestCost); }

struct Level {
  int64_t ranks;
  Link link;
  bool outer; ///< between hosts
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
      levels.push_back({inside, axis.inner, false});
    if (hosts > 1)
      levels.push_back({hosts, axis.outer, true});
  }
  return levels;
}

/// Straight between points, constant before the first, proportional to the
/// bytes behind the last.
Time interpolated(const std::vector<std::pair<int64_t, Time>> &points,
                  int64_t bytes) {
  auto right = std::lower_bound(
      points.begin(), points.end(), bytes,
      [](const auto &point, int64_t value) { return point.first < value; });
  if (right == points.begin())
    return right->second;
  auto left = right - 1;
  if (right == points.end())
    return left->first
               ? scaled(Wide(left->second), Wide(bytes), Wide(left->first))
               : left->second;
  return left->second + scaled(Wide(bytes - left->first),
                               Wide(right->second - left->second),
                               Wide(right->first - left->first));
}

/// The measured time, if the group lies on one host and its size was measured.
std::optional<Time> measuredTime(const Machine &machine, CollectiveKind kind,
                                 const std::vector<Level> &levels,
                                 int64_t bytes) {
  int64_t ranks = 1;
  for (const Level &level : levels) {
    if (level.outer)
      return std::nullopt;
    ranks *= level.ranks;
  }
  for (const MeasuredCollective &m : machine.measured)
    if (m.kind == kind && m.ranks == ranks)
      return interpolated(m.points, bytes);
  return std::nullopt;
}

/// `passes` (n-1)-step rings on every level, each outer level on what the inner
/// ones left of the bytes: 1 for gather and scatter, 2 for all_reduce.
Time rings(const Machine &machine, const std::vector<int> &axes, int64_t bytes,
           int passes, CollectiveKind kind) {
  std::vector<Level> levels = levelsOf(machine, axes);
  if (levels.empty())
    return 0;
  if (auto time = measuredTime(machine, kind, levels, bytes))
    return *time;
  Time total = machine.launch;
  Wide inner = 1;
  for (const Level &level : levels) {
    Time steps =
        scaled(Wide(passes) * Wide(level.ranks - 1), Wide(level.link.alpha), 1);
    Time data = scaled(Wide(passes) * Wide(bytes) * Wide(level.ranks - 1),
                       Wide(level.link.psPerKiB),
                       Wide(1024) * inner * Wide(level.ranks));
    total = plus(total, plus(steps, data));
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
  for (FlopKind kind : {FlopKind::F32, FlopKind::Half})
    machine.psPerGigaFlop[size_t(kind)] = 16'667'000'000;
  machine.psPerGigaFlop[size_t(FlopKind::F64)] = 33'333'000'000;
  machine.psPerGigaFlop[size_t(FlopKind::Other)] = 166'667'000'000;
  return machine;
}

Time allReduce(const Machine &machine, const std::vector<int> &axes,
               int64_t bytes) {
  return rings(machine, axes, bytes, 2, CollectiveKind::AllReduce);
}
Time allGather(const Machine &machine, const std::vector<int> &axes,
               int64_t bytes) {
  return rings(machine, axes, bytes, 1, CollectiveKind::AllGather);
}
Time reduceScatter(const Machine &machine, const std::vector<int> &axes,
                   int64_t bytes) {
  return rings(machine, axes, bytes, 1, CollectiveKind::ReduceScatter);
}

Time allToAll(const Machine &machine, const std::vector<int> &axes,
              int64_t bytes) {
  std::vector<Level> levels = levelsOf(machine, axes);
  if (levels.empty())
    return 0;
  if (auto time =
          measuredTime(machine, CollectiveKind::AllToAll, levels, bytes))
    return *time;
  Wide all = 1;
  for (const Level &level : levels)
    all *= Wide(level.ranks);
  // Of the bytes/all that a rank holds, (ranks - 1) * inner / all go to ranks
  // that differ on this level but on none outside of it.
  Time total = machine.launch;
  Wide inner = 1;
  for (const Level &level : levels) {
    Wide partners = Wide(level.ranks - 1);
    total = plus(total, scaled(partners, Wide(level.link.alpha), 1));
    total =
        plus(total, scaled(Wide(bytes) * partners * inner,
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
  if (auto time = measuredTime(machine, CollectiveKind::Permute, levels, bytes))
    return *time;
  Wide all = 1;
  Link slowest;
  for (const Level &level : levels) {
    all *= Wide(level.ranks);
    slowest.alpha = std::max(slowest.alpha, level.link.alpha);
    slowest.psPerKiB = std::max(slowest.psPerKiB, level.link.psPerKiB);
  }
  Time data = scaled(Wide(bytes), Wide(slowest.psPerKiB), Wide(1024) * all);
  return plus(machine.launch, plus(slowest.alpha, data));
}

Time compute(const Machine &machine, int64_t flops, FlopKind kind) {
  return scaled(Wide(flops), Wide(machine.psPerGigaFlop[size_t(kind)]),
                1'000'000'000);
}

Time product(const Machine &machine, int64_t batch, int64_t m, int64_t n,
             int64_t k, FlopKind kind) {
  const ProductShape &shape = machine.products;
  Wide terms = (Wide(batch) * Wide(m) * Wide(n) + Wide(shape.area)) *
               (Wide(k) + Wide(shape.depth));
  Wide rate = Wide(machine.psPerGigaFlop[size_t(kind)]);
  Time time = scaled(2 * terms, rate, 1'000'000'000);
  if (n % shape.granule || k % shape.granule)
    time = scaled(Wide(time), Wide(shape.unalignedPermille), 1000);
  return time;
}

Time memory(const Machine &machine, int64_t bytes) {
  return scaled(Wide(bytes), Wide(machine.psPerKiBOfMemory), 1024);
}

void makeConsistent(std::vector<MeasuredCollective> &measured) {
  std::erase_if(measured, [](const MeasuredCollective &m) {
    return m.points.empty() || m.ranks < 2;
  });
  auto find = [&](CollectiveKind kind, int64_t ranks) -> MeasuredCollective * {
    for (MeasuredCollective &m : measured)
      if (m.kind == kind && m.ranks == ranks)
        return &m;
    return nullptr;
  };
  for (MeasuredCollective &m : measured) {
    std::sort(m.points.begin(), m.points.end());
    m.points.erase(
        std::unique(m.points.begin(), m.points.end(),
                    [](auto &a, auto &b) { return a.first == b.first; }),
        m.points.end());
    // Other work on the machine makes some measurements slower, none faster.
    Time next = kLargestCost / 4;
    for (auto point = m.points.rbegin(); point != m.points.rend(); ++point)
      next = point->second = std::clamp<Time>(point->second, 1, next);
  }
  // The functions are straight between points, so it is enough to compare them
  // at the points of both, and to make those the points of both.
  auto align = [](MeasuredCollective &a, MeasuredCollective &b) {
    std::vector<std::pair<int64_t, Time>> both[2];
    for (const MeasuredCollective *m : {&a, &b})
      for (const auto &[bytes, time] : m->points) {
        both[0].push_back({bytes, interpolated(a.points, bytes)});
        both[1].push_back({bytes, interpolated(b.points, bytes)});
      }
    for (auto &points : both) {
      std::sort(points.begin(), points.end());
      points.erase(std::unique(points.begin(), points.end()), points.end());
    }
    a.points = both[0];
    b.points = both[1];
  };
  for (size_t i = 0; i < measured.size(); ++i) {
    if (measured[i].kind != CollectiveKind::AllReduce)
      continue;
    int64_t ranks = measured[i].ranks;
    MeasuredCollective *scatter = find(CollectiveKind::ReduceScatter, ranks),
                       *gather = find(CollectiveKind::AllGather, ranks);
    MeasuredCollective &reduce = measured[i];
    if (scatter && gather) {
      align(reduce, *scatter);
      align(reduce, *gather);
      align(reduce, *scatter);
    } else if (scatter) {
      align(reduce, *scatter);
    }
    for (size_t j = 0; j < reduce.points.size(); ++j) {
      Time &whole = reduce.points[j].second;
      if (scatter)
        scatter->points[j].second = std::min(scatter->points[j].second, whole);
      if (scatter && gather)
        whole = std::min(whole, scatter->points[j].second +
                                    gather->points[j].second - 1);
    }
  }
  for (MeasuredCollective &m : measured)
    if (m.kind == CollectiveKind::AllToAll)
      if (MeasuredCollective *gather =
              find(CollectiveKind::AllGather, m.ranks)) {
        align(m, *gather);
        for (size_t j = 0; j < m.points.size(); ++j)
          m.points[j].second =
              std::min(m.points[j].second, gather->points[j].second);
      }
}

} // namespace mtp::plan
