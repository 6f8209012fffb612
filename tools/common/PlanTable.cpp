// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/PlanTable.h"

#include "runtime/comm/Communicator.h"
#include "runtime/comm/SiteGeometry.h"
#include "runtime/io/HostTensor.h"
#include "tools/common/Report.h"
#include "tools/common/Table.h"
#include "tools/common/Text.h"

#include <algorithm>
#include <map>

using namespace mtp;
using namespace nlohmann::literals;

static int64_t bytesOf(DType type, const std::vector<int64_t> &shape) {
  int64_t bytes = byteSize(type);
  for (int64_t extent : shape)
    bytes *= extent;
  return bytes;
}

static std::string splitText(const std::string &layout,
                             const std::string &how) {
  if (layout.empty())
    return how.empty() ? "whole on every rank" : how;
  return how.empty() ? layout : layout + "  (" + how + ")";
}

static std::vector<PlannedWeight> weightsOf(const Artifact &artifact) {
  std::vector<PlannedWeight> weights;
  for (const Parameter &parameter : artifact.parameters) {
    if (!parameter.state.empty())
      continue;
    PlannedWeight weight;
    weight.name = parameter.name;
    weight.layout = parameter.layout.text;
    weight.shape = parameter.layout.shape;
    weight.bytes = bytesOf(parameter.layout.type, weight.shape);
    std::vector<int64_t> local = parameter.layout.localShape(artifact.axes);
    weight.bytesPerRank = bytesOf(parameter.layout.type, local);
    if (local != weight.shape)
      weight.how = "blocks of " + shapeText(local);
    weights.push_back(weight);
  }
  return weights;
}

static std::string weightTable(const std::vector<PlannedWeight> &weights,
                               int64_t ranks) {
  Table table({{"weight"}, {"shape"}, {"on each rank", true}, {"split"}});
  int64_t whole = 0, each = 0;
  for (const PlannedWeight &weight : weights) {
    whole += weight.bytes;
    each += weight.bytesPerRank;
    table.add({weight.name, shapeText(weight.shape),
               bytesText(weight.bytesPerRank),
               splitText(weight.layout, weight.how)});
  }
  std::string text = "Weights: " + bytesText(whole);
  if (ranks > 1)
    text += ", " + bytesText(each) + " of it on each of " +
            std::to_string(ranks) + " ranks";
  return text + "\n" + (table.empty() ? "" : table.text());
}

int64_t mtp::predictedWireBytes(const Artifact &artifact,
                                const CollectiveSite &site) {
  int64_t members = 1;
  for (int axis : site.axes)
    members *= artifact.axes.axes[size_t(axis)].size;
  return wireBytesOf(site.kind, site.predictedBytes, members);
}

static std::string collectiveTable(const Artifact &artifact) {
  Table table({{"where"},
               {"what"},
               {"payload", true},
               {"sent", true},
               {"why", false, true}});
  int64_t sites = 0, sent = 0;
  bool trains = artifact.plan.is_object() && artifact.plan.contains("training");
  for (const CollectiveSite &site : artifact.collectiveSites) {
    if (site.partOf >= 0)
      continue;
    ++sites;
    int64_t wire = predictedWireBytes(artifact, site);
    sent += wire;
    int64_t count = site.predictedCount;
    table.add({site.node.empty() ? "-" : site.node,
               (count > 1 ? std::to_string(count) + " times " : "") +
                   name(site.kind) + " on " + site.axisName + " (" + site.op +
                   ")" + (trains ? ", " + site.phase : ""),
               bytesText(site.predictedBytes), bytesText(wire), site.reason});
  }
  if (!sites)
    return "Collectives: none\n";
  return "Collectives: " + std::to_string(sites) + " a step, " +
         bytesText(sent) + " sent by each rank\n" + table.text();
}

/// The weights in the order in which the model lists its initializers.
static std::vector<PlannedWeight> inModelOrder(const CompileResult &compiled) {
  std::map<std::string, size_t> position;
  for (const nlohmann::json &parameter : compiled.parameters)
    position.insert({parameter.value("name", ""), position.size()});
  auto key = [&](const PlannedWeight &weight) {
    auto found = position.find(weight.name);
    return found == position.end() ? position.size() : found->second;
  };
  std::vector<PlannedWeight> weights = compiled.weights;
  std::stable_sort(weights.begin(), weights.end(),
                   [&](const PlannedWeight &a, const PlannedWeight &b) {
                     return key(a) < key(b);
                   });
  return weights;
}

std::string mtp::planTable(const Artifact &artifact,
                           const CompileResult *compiled) {
  bool planned = compiled && !compiled->weights.empty();
  std::string costs, memory;
  if (artifact.plan.is_object()) {
    costs = artifact.plan.value("costs", "default");
    memory = artifact.plan.value("/budget/text"_json_pointer, "");
  }
  if (costs == "default")
    costs.clear();
  return (costs.empty() ? "" : "Costs: " + costs + "\n") +
         (memory.empty() ? "" : "M" + memory.substr(1) + "\n") +
         weightTable(planned ? inModelOrder(*compiled) : weightsOf(artifact),
                     artifact.axes.ranks()) +
         collectiveTable(artifact);
}
