// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/Report.h"

#include "runtime/artifact/Footprint.h"
#include "runtime/comm/Communicator.h"
#include "runtime/io/Npz.h"

#include <algorithm>
#include <cmath>

using namespace mtp;
using nlohmann::json;

Report::Report(const Options &options) {
  root = {{"model", options.model},
          {"mesh", options.compile.mesh},
          {"device", options.compile.device},
          {"comm", options.session.comm.empty()
                       ? defaultCommunicator(options.compile.device)
                       : options.session.comm},
          {"precision", options.compile.precision},
          {"seed", options.session.seed},
          {"compile_ms", {{"total", 0.0}}},
          {"cache", nullptr},
          {"plan", nullptr},
          {"parameter_bytes_per_rank", nullptr},
          {"arena_bytes_per_rank", nullptr},
          {"collectives", json::array()},
          {"step_ms", nullptr},
          {"peak_rss_bytes", nullptr},
          {"loss", json::array()},
          {"grad_norm", json::array()},
          {"check", json::object()},
          {"parameters", json::array()},
          {"warnings", json::array()}};
}

void Report::addCompile(const CompileResult &result, double milliseconds) {
  json &times = root["compile_ms"];
  for (auto &[stage, time] : result.stageMs)
    times[stage] = time + times.value(stage, 0.0);
  times["total"] = milliseconds + times["total"].get<double>();
  root["cache"] = result.cacheHit ? "hit" : "miss";
  if (!result.parameters.is_null())
    root["parameters"] = result.parameters;
  for (const std::string &warning : result.warnings)
    addWarning(warning);
}

static int64_t localBytes(const Artifact &artifact,
                          const Parameter &parameter) {
  int64_t bytes = byteSize(parameter.layout.type);
  for (int64_t extent : parameter.layout.localShape(artifact.axes))
    bytes *= extent;
  return bytes;
}

/// Bytes of a rank by what they are for.
static json bytesBy(const Footprint &bytes) {
  return {{"parameters", bytes.parameters},
          {"gradients", bytes.gradients},
          {"optimizer", bytes.optimizer},
          {"activations", bytes.activations},
          {"workspace", bytes.workspace}};
}

static json planOf(const Artifact &artifact) {
  json plan = artifact.plan.is_object() ? artifact.plan : json::object();
  for (const char *key : {"cost_us", "lower_bound_us", "all_replicated_us",
                          "megatron_us", "solve_ms"})
    if (!plan.contains(key))
      plan[key] = nullptr;
  Footprint bytes = footprintOf(artifact);
  plan["bytes_per_rank"] = bytes.total;
  plan["arena_bytes_per_rank"] = bytes.arena;
  plan["bytes_by"] = bytesBy(bytes);
  return plan;
}

/// `parameters` of an artifact, which has no record of what is not a weight.
static json parametersOf(const Artifact &artifact) {
  json list = json::array();
  for (const Parameter &parameter : artifact.parameters) {
    if (!parameter.state.empty())
      continue;
    list.push_back({{"name", parameter.name},
                    {"shape", parameter.layout.shape},
                    {"trainable", parameter.trainable},
                    {"reason", ""},
                    {"tied_to", nullptr},
                    {"layout", parameter.layout.text}});
  }
  return list;
}

void Report::addArtifact(const Artifact &artifact) {
  root["mesh"] = artifact.mesh;
  // An artifact brings its device, and with it the communicator.
  if (root["device"] != artifact.device &&
      root["comm"] == defaultCommunicator(root["device"]))
    root["comm"] = defaultCommunicator(artifact.device);
  root["device"] = artifact.device;
  root["precision"] = artifact.precision;
  root["plan"] = planOf(artifact);
  if (root["parameters"].empty())
    root["parameters"] = parametersOf(artifact);
  json list = json::array();
  entryOfSite.clear();
  for (const CollectiveSite &site : artifact.collectiveSites) {
    // Parts are counted with the first.
    entryOfSite.push_back(site.partOf < 0 ? list.size()
                                          : entryOfSite[size_t(site.partOf)]);
    if (site.partOf >= 0)
      continue;
    list.push_back({{"op", site.op},
                    {"kind", name(site.kind)},
                    {"axis", site.axisName},
                    {"dtype", name(site.type)},
                    {"phase", site.phase},
                    {"node", site.node},
                    {"count", 0},
                    {"bytes", 0},
                    {"wire_bytes", 0},
                    {"predicted_count", site.predictedCount},
                    {"predicted_bytes", site.predictedBytes}});
  }
  root["collectives"] = list;
}

void Report::addSession(const Session &session,
                        const std::vector<SiteCount> &counts) {
  int64_t states = 0;
  for (const Parameter &parameter : session.artifact().parameters)
    if (!parameter.state.empty())
      states += localBytes(session.artifact(), parameter);
  root["parameter_bytes_per_rank"] = session.parameterBytesPerRank() - states;
  root["arena_bytes_per_rank"] = session.arenaBytesPerRank();
  for (json &site : root["collectives"])
    for (const char *key : {"count", "bytes", "wire_bytes"})
      site[key] = 0;
  for (const SiteCount &counted : counts) {
    json &site = root["collectives"].at(entryOfSite.at(size_t(counted.site)));
    auto add = [&](const char *key, int64_t number) {
      site[key] = site[key].get<int64_t>() + number;
    };
    add("count", counted.count);
    add("bytes", counted.bytes);
    add("wire_bytes", counted.wireBytes);
  }
}

void Report::addTraining(const std::vector<double> &losses,
                         const std::vector<double> &norms) {
  auto list = [](const std::vector<double> &values) {
    json numbers = json::array();
    for (double value : values)
      numbers.push_back(std::isfinite(value) ? json(value) : json(nullptr));
    return numbers;
  };
  root["loss"] = list(losses);
  root["grad_norm"] = list(norms);
}

void Report::addTimes(const StepTimes &times) {
  root["step_ms"] = {{"min", times.min},
                     {"median", times.median},
                     {"max", times.max},
                     {"runs", times.runs}};
}

void Report::addCheck(const std::vector<Difference> &differences) {
  auto number = [](double value) {
    return std::isfinite(value) ? json(value) : json(nullptr);
  };
  for (const Difference &difference : differences) {
    json entry = {{"max_abs", number(difference.maxAbs)},
                  {"max_rel", number(difference.maxRel)}};
    if (!difference.problem.empty())
      entry = {{"max_abs", nullptr},
               {"max_rel", nullptr},
               {"problem", difference.problem}};
    root["check"][difference.name] = entry;
  }
}

void Report::add(const char *key, json value) { root[key] = std::move(value); }

void Report::addWarning(const std::string &text) {
  root["warnings"].push_back(text);
}

void Report::setPeakMemory() { root["peak_rss_bytes"] = peakResidentBytes(); }

void Report::setError(const Error &error) {
  root["error"] = {{"code", error.exitCode},
                   {"kind", error.kind},
                   {"message", error.message},
                   {"nodes", error.nodes}};
}

bool Report::write(const std::string &path, Error &error) const {
  if (path.empty())
    return true;
  // Names are bytes of a model file and may not be UTF-8.
  std::string text =
      root.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  return writeFileAtomically(path, text, error);
}

bool mtp::canWriteResults(const Options &options, Error &error) {
  const TrainOptions &training = options.training;
  for (const std::string *file :
       {&options.outputs, &options.saveInputs, &options.explainJson,
        &options.report, &options.artifactFile, &options.compile.savePlan,
        &training.dumpGrads, &training.dumpParams, &training.dumpInputGrads})
    if (!file->empty() && !isWritableFile(*file, error))
      return false;
  return true;
}
