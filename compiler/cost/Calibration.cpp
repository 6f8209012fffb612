// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/Calibration.h"

#include "compiler/cost/Cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

using nlohmann::json;

namespace mtp::plan {

static constexpr std::array kinds = {
    CollectiveKind::AllReduce, CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
    CollectiveKind::Permute};

const char *name(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return "all_reduce";
  case CollectiveKind::AllGather:
    return "all_gather";
  case CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveKind::AllToAll:
    return "all_to_all";
  case CollectiveKind::Permute:
    return "permute";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Fits
//===----------------------------------------------------------------------===//

/// Launches, steps and KiB that the alpha-beta model counts for a collective.
static std::array<double, 3> terms(CollectiveKind kind, double n,
                                   double bytes) {
  double kib = bytes / 1024;
  switch (kind) {
  case CollectiveKind::AllReduce:
    return {1, 2 * (n - 1), 2 * (n - 1) / n * kib};
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
    return {1, n - 1, (n - 1) / n * kib};
  case CollectiveKind::AllToAll:
    return {1, n - 1, (n - 1) / n * kib / n};
  case CollectiveKind::Permute:
    return {1, 1, kib / n};
  }
  return {};
}

void fitLink(Calibration &calibration) {
  makeConsistent(calibration.collectives);
  // Three unknowns, each at least a picosecond: coordinate descent on the
  // squares of relative errors, which is convex.
  std::array<double, 3> x = {1e6, 1e6, 1e5};
  std::vector<std::array<double, 3>> rows;
  for (const MeasuredCollective &m : calibration.collectives)
    for (const auto &[bytes, time] : m.points) {
      auto row = terms(m.kind, double(m.ranks), double(bytes));
      for (double &value : row)
        value /= double(time);
      rows.push_back(row);
    }
  if (rows.empty())
    return;
  for (int round = 0; round < 2000; ++round)
    for (size_t i = 0; i < 3; ++i) {
      double numerator = 0, denominator = 0;
      for (const auto &row : rows) {
        double rest = 1;
        for (size_t j = 0; j < 3; ++j)
          if (j != i)
            rest -= row[j] * x[j];
        numerator += row[i] * rest;
        denominator += row[i] * row[i];
      }
      if (denominator > 0)
        x[i] = std::max(1.0, numerator / denominator);
    }
  calibration.launch = std::llround(x[0]);
  calibration.link = {std::llround(x[1]), std::llround(x[2])};
}

double fitProducts(const std::vector<ProductTime> &times, ProductShape &shape) {
  // For a given depth and area the best rate is in closed form; those two are
  // searched on a grid of powers.
  double bestError = INFINITY, bestRate = 0;
  auto attempt = [&](double depth, double area) {
    double ab = 0, bb = 0;
    for (const ProductTime &t : times) {
      double work = 2 * (double(t.m) * double(t.n) + area) *
                    (double(t.k) + depth) / t.seconds;
      ab += work;
      bb += work * work;
    }
    double error = double(times.size()) - ab * ab / bb;
    if (error < bestError) {
      bestError = error;
      bestRate = bb / ab;
      shape.depth = std::llround(depth);
      shape.area = std::llround(area);
    }
  };
  if (times.empty())
    return 0;
  for (double depth = 0; depth <= 2048; depth = depth ? depth * 1.25 : 1)
    for (double area = 0; area <= 1 << 20; area = area ? area * 1.5 : 16)
      attempt(std::floor(depth), std::floor(area));
  return bestRate;
}

Machine machineFor(const Calibration &calibration,
                   const std::vector<std::pair<std::string, int64_t>> &axes) {
  Machine machine = Machine::cpuThreads(axes);
  int64_t ranks = 1;
  for (const auto &[name, size] : axes)
    ranks = std::min(ranks * size, int64_t(1) << 20);
  // More ranks than cores take turns.
  double share = ranks <= calibration.cores
                     ? double(calibration.cores / ranks)
                     : double(calibration.cores) / double(ranks);
  auto set = [&](FlopKind kind, double rate) {
    if (rate > 0)
      machine.psPerGigaFlop[size_t(kind)] =
          std::max<int64_t>(1, std::llround(1e21 / (rate * share)));
  };
  set(FlopKind::F32, calibration.f32);
  set(FlopKind::F64, calibration.f64);
  set(FlopKind::Half, calibration.bf16);
  machine.products = calibration.products;
  machine.psPerKiBOfMemory = psPerKiB(calibration.memoryBytesPerSecond * share);
  machine.launch = calibration.launch;
  for (AxisLinks &axis : machine.axes)
    axis.inner = axis.outer = calibration.link;
  machine.measured = calibration.collectives;
  return machine;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static double microseconds(Time time) { return double(time) * 1e-6; }

json toJson(const Calibration &c) {
  json collectives = json::array();
  for (const MeasuredCollective &m : c.collectives) {
    json points = json::array();
    for (const auto &[bytes, time] : m.points)
      points.push_back({bytes, microseconds(time)});
    collectives.push_back(
        {{"kind", name(m.kind)}, {"ranks", m.ranks}, {"bytes_us", points}});
  }
  return {{"format", "mtp-calibration"},
          {"version", 1},
          {"fingerprint", c.fingerprint},
          {"machine", c.machine},
          {"measured", c.measured},
          {"cores", c.cores},
          {"core_flops_per_second",
           {{"f32", c.f32}, {"f64", c.f64}, {"bf16", c.bf16}}},
          {"product_depth", c.products.depth},
          {"product_area", c.products.area},
          {"core_memory_bytes_per_second", c.memoryBytesPerSecond},
          {"kernel_us", c.kernelUs},
          {"launch_us", microseconds(c.launch)},
          {"step_us", microseconds(c.link.alpha)},
          {"link_ps_per_kib", c.link.psPerKiB},
          {"collectives", collectives}};
}

namespace {
/// Reads members of a JSON object; the first that is missing or out of range is
/// kept in `error`.
class Members {
public:
  Members(const json &object, std::string &error)
      : object(object), error(error) {}

  double number(const char *key, double least, double most) {
    auto found = object.find(key);
    if (found != object.end() && found->is_number()) {
      double value = found->get<double>();
      if (value >= least && value <= most) // not NaN
        return value;
    }
    return fail(key), least;
  }
  int64_t integer(const char *key, int64_t least, int64_t most) {
    double value = number(key, double(least), double(most));
    if (value != std::floor(value))
      fail(key);
    return int64_t(value);
  }
  std::string text(const char *key) {
    auto found = object.find(key);
    if (found != object.end() && found->is_string())
      return found->get<std::string>();
    return fail(key), "";
  }

private:
  void fail(const char *key) {
    if (error.empty())
      error = std::string("'") + key + "' is missing or out of range";
  }
  const json &object;
  std::string &error;
};
} // namespace

static bool readCollective(const json &item, MeasuredCollective &measured,
                           std::string &error) {
  auto wrong = [&](const char *what) {
    error = std::string("'collectives': ") + what;
    return false;
  };
  if (!item.is_object())
    return wrong("an entry is no object");
  Members members(item, error);
  std::string kind = members.text("kind");
  measured.ranks = members.integer("ranks", 2, 1 << 20);
  if (!error.empty())
    return false;
  auto found = std::find_if(kinds.begin(), kinds.end(),
                            [&](CollectiveKind k) { return kind == name(k); });
  if (found == kinds.end())
    return wrong("a kind is unknown");
  measured.kind = *found;
  auto points = item.find("bytes_us");
  if (points == item.end() || !points->is_array() || points->empty() ||
      points->size() > 1000)
    return wrong("'bytes_us' is no list");
  for (const json &point : *points) {
    if (!point.is_array() || point.size() != 2 ||
        !point[0].is_number_integer() || !point[1].is_number())
      return wrong("a point is not [bytes, microseconds]");
    int64_t bytes = point[0].get<int64_t>();
    double us = point[1].get<double>();
    if (bytes < 0 || !(us > 0) || us > 1e9)
      return wrong("a point is out of range");
    measured.points.push_back({bytes, fromMicroseconds(us)});
  }
  return true;
}

std::optional<Calibration> parseCalibration(const json &file,
                                            std::string &error) {
  error.clear();
  if (!file.is_object() || file.value("format", json()) != "mtp-calibration" ||
      file.value("version", json()) != 1) {
    error = "it has no \"format\": \"mtp-calibration\", \"version\": 1";
    return std::nullopt;
  }
  Calibration c;
  Members members(file, error);
  c.fingerprint = members.text("fingerprint");
  c.machine = members.text("machine");
  c.measured = members.text("measured");
  c.cores = members.integer("cores", 1, 1 << 16);
  c.products.depth = members.integer("product_depth", 0, 1 << 20);
  c.products.area = members.integer("product_area", 0, 1 << 30);
  c.memoryBytesPerSecond =
      members.number("core_memory_bytes_per_second", 1e3, 1e15);
  c.kernelUs = members.number("kernel_us", 0, 1e6);
  c.launch = fromMicroseconds(members.number("launch_us", 1e-6, 1e9));
  c.link.alpha = fromMicroseconds(members.number("step_us", 1e-6, 1e9));
  c.link.psPerKiB = members.integer("link_ps_per_kib", 1, int64_t(1) << 50);
  auto rates = file.find("core_flops_per_second");
  const json none = json::object();
  Members speed(rates == file.end() || !rates->is_object() ? none : *rates,
                error);
  c.f32 = speed.number("f32", 1e3, 1e18);
  c.f64 = speed.number("f64", 1e3, 1e18);
  c.bf16 = speed.number("bf16", 1e3, 1e18);
  auto collectives = file.find("collectives");
  if (error.empty() && (collectives == file.end() || !collectives->is_array() ||
                        collectives->size() > 1000))
    error = "'collectives' is no list";
  if (error.empty())
    for (const json &item : *collectives) {
      MeasuredCollective measured;
      if (!readCollective(item, measured, error))
        break;
      c.collectives.push_back(measured);
    }
  if (!error.empty())
    return std::nullopt;
  makeConsistent(c.collectives);
  return c;
}

std::optional<Calibration> readCalibration(const std::string &path,
                                           std::string &error) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream) {
    error = "calibration '" + path + "' cannot be read";
    return std::nullopt;
  }
  json file = json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  std::string reason = "it is no JSON";
  std::optional<Calibration> calibration;
  if (!file.is_discarded())
    calibration = parseCalibration(file, reason);
  if (!calibration)
    error = "calibration '" + path + "': " + reason;
  return calibration;
}

} // namespace mtp::plan
