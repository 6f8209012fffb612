// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/report/ReportPage.h"

#include "runtime/artifact/Footprint.h"
#include "runtime/io/Npz.h"
#include "tools/common/PlanTable.h"
#include "tools/common/Text.h"
#include "tools/report/Difference.h"
#include "tools/report/ExplainFile.h"
#include "tools/report/Html.h"
#include "tools/report/MemoryChart.h"
#include "tools/report/Picture.h"
#include "tools/report/Tables.h"

#include <set>

using nlohmann::json;

namespace mtp::report {
namespace {

/// More boxes in a row that no layer repeats are no picture any more.
constexpr int kMostBoxes = 2500;

std::string fact(const std::string &value, const std::string &name) {
  return "<div class=\"fact\"><b>" + escaped(value) + "</b><span>" +
         escaped(name) + "</span></div>\n";
}

std::string micros(const json &plan, const char *key) {
  auto it = plan.find(key);
  return it != plan.end() && it->is_number() ? microsText(*it) : "";
}

std::string baseName(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string header(const Artifact &artifact, const json &plan) {
  bool trains = plan.contains("training");
  return "<h1>" + escaped(baseName(artifact.model)) +
         "</h1><p class=\"soft\">" + escaped(artifact.model) +
         "</p><p>Mesh <code>" + escaped(artifact.mesh) + "</code>, " +
         std::to_string(artifact.axes.ranks()) + " rank" +
         (artifact.axes.ranks() == 1 ? "" : "s") + ", " +
         escaped(artifact.precision) + " on " + escaped(artifact.device) +
         (trains ? ", one training step" : ", forward pass") + ".</p>\n";
}

std::string facts(const Artifact &artifact, const json &plan) {
  std::string text = "<div class=\"facts\">\n";
  auto add = [&](const char *key, const std::string &name) {
    if (std::string value = micros(plan, key); !value.empty())
      text += fact(value, name);
  };
  add("cost_us", "predicted time, forward and backward");
  bool proven = plan.contains("cost_us") && plan.contains("lower_bound_us") &&
                plan["cost_us"] == plan["lower_bound_us"];
  std::string bound =
      proven ? "lower bound: the plan is proven optimal" : "lower bound";
  if (json within = plan.value("certificate", json::object())
                        .value("within_bytes", json());
      within.is_number())
    bound += " among layouts within " + within.dump() +
             " bytes by the planner's sum";
  add("lower_bound_us", bound);
  add("all_replicated_us", "everything on every rank");
  add("megatron_us", "Megatron's plan");
  Footprint footprint = footprintOf(artifact);
  text += fact(bytesText(footprint.total), "memory of a rank");
  text += fact(bytesText(footprint.parameters), "weights of a rank");
  int64_t bytes = 0, collectives = 0;
  for (const CollectiveSite &site : artifact.collectiveSites)
    if (site.partOf < 0) {
      bytes += predictedWireBytes(artifact, site);
      ++collectives;
    }
  text += fact(std::to_string(collectives), "collectives of the program");
  text += fact(bytesText(bytes), "sent by a rank in a step");
  text += "</div>\n";
  if (plan.contains("costs"))
    text += "<p class=\"soft\">Costs: " +
            escaped(plan["costs"].is_string() ? plan["costs"].get<std::string>()
                                              : plan["costs"].dump()) +
            ".</p>\n";
  return text;
}

std::string legend(const std::vector<Scene> &scenes, const Artifact &artifact) {
  std::set<std::string> used;
  for (const Scene &scene : scenes)
    for (const SceneValue &value : scene.values)
      for (const std::string &state : value.states)
        used.insert(stateClass(state));
  std::string text = "<div class=\"legend\">";
  for (const std::string &state : legendStates())
    if (used.count(stateClass(state)))
      text += "<span class=\"key\"><span class=\"swatch b" + stateClass(state) +
              "\"></span>" + escaped(stateMeaning(state)) + "</span>";
  text += "<span class=\"key\"><span class=\"swatch\" "
          "style=\"background:#fff3e8;border:1.5px solid "
          "#d55e00\"></span>a collective: payload of a rank, "
          "time</span></div>\n";
  std::string axes;
  for (const Mesh::Axis &axis : artifact.axes.axes)
    axes += (axes.empty() ? "" : ", ") + axis.name;
  if (artifact.axes.axes.size() > 1)
    text +=
        "<p class=\"soft\">Bars and strands, left to right: " + escaped(axes) +
        ".</p>\n";
  return text;
}

/// The phases that a scene's collectives and their conjugates pair.
std::string pairs(const Scene &scene) {
  std::set<std::string> names;
  for (const Box &box : scene.boxes)
    if (box.kind == Box::Kind::Conversion)
      names.insert(box.conversion.op + " ↔ " + box.conversion.conjugate);
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + escaped(name);
  return text.empty()
             ? ""
             : "<p class=\"soft\">Conversions and their conjugates: " + text +
                   ".</p>\n";
}

std::string picture(const std::vector<Scene> &scenes,
                    const Artifact &artifact) {
  std::string text = "<h2>The model</h2>\n" + legend(scenes, artifact);
  for (const Scene &scene : scenes) {
    bool several = scenes.size() > 1;
    if (several)
      text += "<h3>" +
              escaped(scene.phase == "update"     ? "Update"
                      : scene.phase == "backward" ? "Backward"
                                                  : "Forward") +
              "</h3>" + pairs(scene);
    int collectives = 0;
    for (const Box &box : scene.boxes)
      collectives +=
          box.kind == Box::Kind::Conversion && !box.conversion.kind.empty();
    if (scene.phase == "update")
      text += "<p>The optimizer: " + std::to_string(scene.boxes.size()) +
              " groups of ops, each on the block of a weight that the rank "
              "has, and " +
              std::to_string(collectives) +
              (collectives == 1 ? " collective" : " collectives") +
              " of the table.</p>\n";
    else if (int(scene.boxes.size()) > kMostBoxes &&
             segmentsOf(scene).size() == 1)
      text += "<p>" + std::to_string(scene.boxes.size()) +
              " boxes without equal layers: too many for a picture.</p>\n";
    else
      text += "<div class=\"card\">" + scenePicture(scene) + "</div>\n";
  }
  return text;
}

} // namespace

std::string reportPage(const Artifact &artifact, const json &explain) {
  json plan = artifact.plan.is_object() ? artifact.plan : json::object();
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>" +
      escaped(baseName(artifact.model) + " on " + artifact.mesh) +
      "</title><style>" + styleSheet() + "</style></head><body><main>\n" +
      header(artifact, plan) + facts(artifact, plan);
  if (explain.contains("notes"))
    for (const json &note : explain["notes"])
      text += "<p>" + escaped(note) + "</p>\n";
  if (explain.contains("constraint"))
    text += "<p>" +
            escaped("Constraint: " +
                    explain["constraint"]["text"].get<std::string>()) +
            ".</p>\n";
  std::vector<std::string> weights; // in the order in which they are read
  if (explain.contains("graph")) {
    std::vector<Scene> scenes = scenesOf(explain["graph"]);
    text += picture(scenes, artifact);
    for (const Scene &scene : scenes)
      for (const Box &box : scene.boxes)
        for (const SceneWeight &weight : box.weights)
          weights.push_back(weight.name);
  } else {
    text += "<p>An artifact has no graph; a report of the model itself has a "
            "picture.</p>\n";
  }
  text += "<h2>Weights</h2>\n" + weightSection(artifact, explain, weights) +
          "<h2>Collectives</h2>\n" + collectiveSection(artifact, explain) +
          "<h2>Memory of a rank over time</h2>\n" + memorySection(artifact);
  std::string reasons = reasonSection(explain);
  if (!reasons.empty())
    text += "<h2>Reasons</h2>\n" + reasons;
  return text + "</main></body></html>\n";
}

bool deliverReports(const Options &options, const Artifact &artifact,
                    const json &explain, Error &error) {
  if (!options.explainAgainst.empty()) {
    json before;
    if (!readExplanation(options.explainAgainst, before, error))
      return false;
    if (explain.value("format", std::string()).empty()) {
      error = {kUsage,
               "usage",
               "--explain-against: " + options.model +
                   " has its layouts already; there is no plan to compare",
               {}};
      return false;
    }
    if (!options.quiet)
      printf("%s", differenceText(before, explain).c_str());
  }
  return options.report.empty() ||
         writeFileAtomically(options.report, reportPage(artifact, explain),
                             error);
}

} // namespace mtp::report
