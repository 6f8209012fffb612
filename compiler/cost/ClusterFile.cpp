// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/Cluster.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

using nlohmann::json;

namespace mtp::plan {

const std::vector<AchievedField> &achievedFields() {
  static const std::vector<AchievedField> fields = {
      {"products", &Achieved::products, 1e-6, 1},
      {"product_depth", &Achieved::depth},
      {"product_area", &Achieved::area},
      {"unaligned", &Achieved::unaligned, 1, 1e3},
      {"memory", &Achieved::memory, 1e-6, 1},
      {"inner", &Achieved::inner, 1e-6, 1},
      {"outer", &Achieved::outer, 1e-6, 1},
      {"launch_us", &Achieved::launchUs},
      {"inner_step_us", &Achieved::innerStepUs},
      {"outer_step_us", &Achieved::outerStepUs},
      {"send_us", &Achieved::sendUs},
      {"layer_us", &Achieved::layerUs},
      {"head_us", &Achieved::headUs},
      {"logit_bytes", &Achieved::logitBytes},
      {"update_bytes", &Achieved::updateBytes},
      {"update_layer_us", &Achieved::updateLayerUs},
      {"update_us", &Achieved::updateUs}};
  return fields;
}

namespace {
struct Field {
  const char *name;
  double Cluster::*number = nullptr;
  int64_t Cluster::*integer = nullptr;
  double most = 1e18;
  bool mayBeZero = false;
};
} // namespace

static const std::vector<Field> &fields() {
  static const std::vector<Field> all = {
      {"nodes", nullptr, &Cluster::nodes, 1 << 20, true},
      {"ranks_per_node", nullptr, &Cluster::ranksPerNode, 1 << 20},
      {"memory_bytes", nullptr, &Cluster::memoryBytes, 1e18, true},
      {"flops_per_second", &Cluster::flopsPerSecond},
      {"memory_bytes_per_second", &Cluster::memoryBytesPerSecond},
      {"inner_bytes_per_second", &Cluster::innerBytesPerSecond},
      {"outer_bytes_per_second", &Cluster::outerBytesPerSecond}};
  return all;
}

static bool readNumber(const json &value, double least, double most,
                       double &number) {
  if (!value.is_number())
    return false;
  number = value.get<double>();
  return number >= least && number <= most; // not NaN
}

static bool readAchieved(const json &object, Achieved &achieved,
                         std::string &error) {
  if (!object.is_object()) {
    error = "'achieved' is no object";
    return false;
  }
  for (const auto &[key, value] : object.items()) {
    auto field =
        std::find_if(achievedFields().begin(), achievedFields().end(),
                     [&](const AchievedField &f) { return key == f.name; });
    if (field == achievedFields().end()) {
      error = "'achieved' has no '" + key + "'";
      return false;
    }
    if (!readNumber(value, field->least, field->most,
                    achieved.*(field->value))) {
      std::ostringstream range;
      range << field->least << " to " << field->most;
      error = "'achieved." + key + "' is no number from " + range.str();
      return false;
    }
  }
  return true;
}

std::optional<Cluster> parseCluster(const json &file, std::string &error) {
  Cluster cluster;
  if (!file.is_object()) {
    error = "it is no JSON object";
    return std::nullopt;
  }
  if (file.value("format", json()) != "mtp-cluster" ||
      file.value("version", json()) != 1) {
    error = "it has no \"format\": \"mtp-cluster\", \"version\": 1";
    return std::nullopt;
  }
  std::vector<std::string> seen;
  for (const auto &[key, value] : file.items()) {
    seen.push_back(key);
    if (key == "format" || key == "version")
      continue;
    if (key == "name" || key == "source") {
      if (!value.is_string()) {
        error = "'" + key + "' is no text";
        return std::nullopt;
      }
      (key == "name" ? cluster.name : cluster.source) =
          value.get<std::string>();
      continue;
    }
    if (key == "achieved") {
      if (!readAchieved(value, cluster.achieved, error))
        return std::nullopt;
      continue;
    }
    auto field = std::find_if(fields().begin(), fields().end(),
                              [&](const Field &f) { return key == f.name; });
    if (field == fields().end()) {
      error = "it has an unknown key '" + key + "'";
      return std::nullopt;
    }
    double number;
    double least = field->mayBeZero ? 0 : field->integer ? 1 : 1e-3;
    if (!readNumber(value, least, field->most, number) ||
        (field->integer && number != std::floor(number))) {
      error = "'" + key + "' is no " + (field->integer ? "whole " : "") +
              "number " + (field->mayBeZero ? "from 0 on" : "above 0") +
              ", or too large";
      return std::nullopt;
    }
    if (field->integer)
      cluster.*(field->integer) = int64_t(number);
    else
      cluster.*(field->number) = number;
  }
  for (const Field &field : fields())
    if (!field.mayBeZero &&
        std::find(seen.begin(), seen.end(), field.name) == seen.end()) {
      error = std::string("it has no '") + field.name + "'";
      return std::nullopt;
    }
  return cluster;
}

std::optional<Cluster> readCluster(const std::string &path,
                                   std::string &error) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream) {
    error = "cluster file '" + path + "' cannot be read";
    return std::nullopt;
  }
  json file = json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  std::string reason = "it is no JSON";
  std::optional<Cluster> cluster;
  if (!file.is_discarded())
    cluster = parseCluster(file, reason);
  if (!cluster)
    error = "cluster file '" + path + "': " + reason;
  else if (cluster->name.empty())
    cluster->name = path;
  return cluster;
}

json toJson(const Cluster &cluster) {
  json file = {{"format", "mtp-cluster"},
               {"version", 1},
               {"name", cluster.name},
               {"source", cluster.source}};
  for (const Field &field : fields())
    if (field.integer)
      file[field.name] = cluster.*(field.integer);
    else
      file[field.name] = cluster.*(field.number);
  for (const AchievedField &field : achievedFields())
    file["achieved"][field.name] = cluster.achieved.*(field.value);
  return file;
}

} // namespace mtp::plan
