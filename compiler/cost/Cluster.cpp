// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/Cluster.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>

namespace mtp::plan {

int64_t psPerKiB(double bytesPerSecond) {
  if (!(bytesPerSecond > 0))
    return 0;
  double ps = 1024e12 / bytesPerSecond;
  return std::max<int64_t>(1, std::llround(std::min(ps, 1e15)));
}

Time fromMicroseconds(double us) {
  return us > 0 ? Time(std::llround(std::min(us * 1e6, double(kLargestCost))))
                : 0;
}

/// Ranks of a group of `size`, `stride` apart, that surely share a host.
static int64_t ranksOnHost(int64_t size, int64_t stride, int64_t host) {
  if (stride >= host || host % stride != 0)
    return 1;
  // `inside` neighbours begin on every host; a group whose size does not divide
  // them may begin in their midst.
  int64_t inside = host / stride;
  return std::gcd(size, inside);
}

void placeAxes(Machine &machine, int64_t ranksPerNode, Link inner, Link outer) {
  int64_t stride = 1;
  for (auto axis = machine.axes.rbegin(); axis != machine.axes.rend(); ++axis) {
    axis->inner = inner;
    axis->outer = outer;
    axis->ranksPerHost =
        ranksOnHost(axis->size, stride, std::max<int64_t>(1, ranksPerNode));
    if (__builtin_mul_overflow(stride, axis->size, &stride))
      stride = INT64_MAX;
  }
}

Machine machineFor(const Cluster &cluster,
                   const std::vector<std::pair<std::string, int64_t>> &axes) {
  const Achieved &a = cluster.achieved;
  Machine machine;
  for (const auto &[name, size] : axes)
    machine.axes.push_back({name, size, size, {}, {}});
  Link inner{fromMicroseconds(a.innerStepUs),
             psPerKiB(cluster.innerBytesPerSecond * a.inner)};
  Link outer{fromMicroseconds(a.outerStepUs),
             psPerKiB(cluster.outerBytesPerSecond * a.outer)};
  placeAxes(machine, cluster.ranksPerNode, inner, outer);
  machine.launch = fromMicroseconds(a.launchUs);
  double rate = cluster.flopsPerSecond * a.products;
  machine.psPerGigaFlop.fill(
      rate > 0 ? std::max<int64_t>(1, std::llround(1e21 / rate)) : 0);
  machine.products = {std::llround(a.depth), std::llround(a.area), 8,
                      std::llround(a.unaligned * 1000)};
  machine.psPerKiBOfMemory = psPerKiB(cluster.memoryBytesPerSecond * a.memory);
  return machine;
}

//===----------------------------------------------------------------------===//
// Topologies
//===----------------------------------------------------------------------===//

/// A number with one of the endings of `units` ("" among them) or nothing.
static std::optional<double>
quantity(const std::string &text,
         std::initializer_list<std::pair<const char *, double>> units) {
  double value = 0;
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || !std::isfinite(value) || value <= 0)
    return std::nullopt;
  std::string rest(end, text.data() + text.size());
  for (const auto &[unit, factor] : units)
    if (rest == unit)
      return value * factor;
  return std::nullopt;
}

std::optional<Topology> parseTopology(const std::string &text,
                                      std::string &error) {
  Machine usual = Machine::cpuThreads({{"", 2}});
  Topology topology;
  topology.inner = usual.axes[0].inner;
  topology.outer = {fromMicroseconds(20), psPerKiB(1e9)};
  topology.launch = usual.launch;
  std::vector<std::string> seen;
  for (size_t start = 0; start <= text.size();) {
    size_t comma = std::min(text.find(',', start), text.size());
    std::string entry = text.substr(start, comma - start);
    start = comma + 1;
    size_t colon = entry.find(':');
    std::string key = entry.substr(0, colon);
    std::string value =
        colon == std::string::npos ? "" : entry.substr(colon + 1);
    auto speed = quantity(
        value, {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}});
    auto time =
        quantity(value, {{"", 1}, {"us", 1}, {"ns", 1e-3}, {"ms", 1e3}});
    auto count = quantity(value, {{"", 1}});
    bool ok = true;
    if (key == "nodes" || key == "ranks") {
      ok = count && *count == std::floor(*count) && *count <= 1 << 20;
      if (ok)
        (key == "nodes" ? topology.nodes : topology.ranksPerNode) =
            int64_t(*count);
    } else if (key == "inner" || key == "outer") {
      ok = speed.has_value();
      if (ok)
        (key == "inner" ? topology.inner : topology.outer).psPerKiB =
            psPerKiB(*speed);
    } else if (key == "inner-step" || key == "outer-step") {
      ok = time.has_value();
      if (ok)
        (key == "inner-step" ? topology.inner : topology.outer).alpha =
            fromMicroseconds(*time);
    } else if (key == "launch") {
      ok = time.has_value();
      if (ok)
        topology.launch = fromMicroseconds(*time);
    } else {
      error = "topology '" + text + "': '" + key +
              "' is none of nodes, ranks, inner, outer, inner-step, "
              "outer-step, launch";
      return std::nullopt;
    }
    if (!ok) {
      error = "topology '" + text + "': '" + value + "' is no value of " + key;
      return std::nullopt;
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      error = "topology '" + text + "': " + key + " is given twice";
      return std::nullopt;
    }
    seen.push_back(key);
  }
  for (const char *needed : {"nodes", "ranks"})
    if (std::find(seen.begin(), seen.end(), needed) == seen.end()) {
      error = "topology '" + text + "': " + needed + " is missing";
      return std::nullopt;
    }
  return topology;
}

bool readTopology(std::string &text, std::string &error) {
  if (text.size() < 6 || text.compare(text.size() - 5, 5, ".json") != 0)
    return parseTopology(text, error).has_value();
  std::ifstream stream(text);
  auto file = nlohmann::json::parse(stream, nullptr, false);
  if (!stream.is_open() || !file.is_object()) {
    error = "topology '" + text + "' is no JSON object that can be read";
    return false;
  }
  std::string entries;
  for (const auto &[key, value] : file.items())
    entries += (entries.empty() ? "" : ",") + key + ":" +
               (value.is_string() ? value.get<std::string>() : value.dump());
  if (!parseTopology(entries, error)) {
    error = text + ": " + error;
    return false;
  }
  text = entries;
  return true;
}

bool applyTopology(Machine &machine, const Topology &topology,
                   std::string &error) {
  int64_t ranks = 1;
  for (const AxisLinks &axis : machine.axes)
    if (__builtin_mul_overflow(ranks, axis.size, &ranks))
      ranks = INT64_MAX;
  if (ranks > topology.nodes * topology.ranksPerNode) {
    error = "the mesh has " + std::to_string(ranks) +
            " ranks, the topology only " +
            std::to_string(topology.nodes * topology.ranksPerNode) + " (" +
            std::to_string(topology.nodes) + " nodes of " +
            std::to_string(topology.ranksPerNode) + ")";
    return false;
  }
  placeAxes(machine, topology.ranksPerNode, topology.inner, topology.outer);
  machine.launch = topology.launch;
  machine.measured.clear();
  return true;
}

} // namespace mtp::plan
