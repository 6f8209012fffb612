// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mtp-run/SimulateCommand.h"

#include "compiler/cost/Simulator.h"
#include "runtime/io/Npz.h"
#include "runtime/support/System.h"
#include "tools/common/Compile.h"
#include "tools/common/Table.h"
#include "tools/common/Text.h"
#include "tools/mtp-run/ModelSizes.h"

#include <filesystem>

using namespace mtp;
using plan::Time;

namespace fs = std::filesystem;

static fs::path clusterFolder() { return installedFile("share/mtp/clusters"); }

static std::optional<plan::Cluster> findCluster(const std::string &name,
                                                std::string &error) {
  std::error_code failure;
  if (fs::exists(name, failure))
    return plan::readCluster(name, error);
  fs::path shipped = clusterFolder() / (name + ".json");
  if (name.find('/') == std::string::npos && fs::exists(shipped, failure))
    return plan::readCluster(shipped, error);
  error = "cluster '" + name + "' is no file, nor one of those that ship:";
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(clusterFolder(), failure))
    names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  for (const std::string &known : names)
    error += " " + known;
  return std::nullopt;
}

/// What --job says, as an object.
static std::optional<nlohmann::json>
readJobText(const std::string &text, std::string &reason, Error &error) {
  if (text.size() <= 5 || text.compare(text.size() - 5, 5, ".json") != 0)
    return plan::jobObject(text, reason);
  std::string bytes;
  if (!readFile(text, bytes, error))
    return std::nullopt;
  nlohmann::json object = nlohmann::json::parse(bytes, nullptr, false);
  if (object.is_object())
    return object;
  reason = "it is no JSON object";
  return std::nullopt;
}

/// Sizes of the model: its graph on one rank.
static std::optional<nlohmann::json> readModel(const Options &options,
                                               Report &report, Error &error) {
  CompilerLibrary compiler;
  CompileResult compiled;
  CompileRequest request = options.compile;
  request.mesh = "tp=1";
  request.randomInputs = true; // dims that --dim doesn't give have defaults
  request.explain = true;
  for (const auto &[name, values] : options.dims)
    request.dims[name] = values[0];
  if (!compileModel("mtp-run", options, compiler, request, compiled, report,
                    error))
    return std::nullopt;
  std::string reason;
  auto sizes = sizesOfModel(compiled.explainJson["graph"], reason);
  if (!sizes)
    error = {kBadInput, "input", options.model + ": " + reason, {}};
  return sizes;
}

/// The job; what --job says goes before what the model has.
static std::optional<plan::TrainingJob> readJob(const Options &options,
                                                Report &report,
                                                std::string &reason,
                                                Error &error) {
  const std::string &text = options.predict.job;
  auto given = readJobText(text, reason, error);
  std::optional<plan::TrainingJob> job;
  if (given) {
    nlohmann::json object = nlohmann::json::object();
    if (!options.model.empty()) {
      auto sizes = readModel(options, report, error);
      if (!sizes)
        return std::nullopt;
      object = *sizes;
    }
    object.update(*given);
    job = plan::parseJob(object, reason);
  }
  if (!job)
    reason = (text.find(".json") == std::string::npos ? "--job" : text) + ": " +
             reason;
  return job;
}

static std::string milliseconds(Time time) {
  return timeText(double(time) * 1e-9);
}

static nlohmann::json toJson(const plan::Simulation &s,
                             const plan::TrainingJob &job,
                             const plan::Cluster &cluster) {
  auto ms = [](Time time) { return double(time) * 1e-9; };
  return {{"cluster", cluster.name},
          {"ranks", job.ranks()},
          {"parameters", job.parameters()},
          {"step_ms", ms(s.step)},
          {"step_ms_by",
           {{"compute", ms(s.compute)},
            {"tensor", ms(s.tensor)},
            {"bubble", ms(s.bubble)},
            {"imbalance", ms(s.imbalance)},
            {"sends", ms(s.sends)},
            {"gradients", ms(s.gradients)},
            {"update", ms(s.update)}}},
          {"bytes_per_rank", s.memory.total()},
          {"bytes_by",
           {{"parameters", s.memory.parameters},
            {"gradients", s.memory.gradients},
            {"optimizer", s.memory.optimizer},
            {"activations", s.memory.activations}}},
          {"efficiency", s.efficiency},
          {"flops_per_rank", s.flopsPerRank},
          {"hardware_flops_per_rank", s.hardwareFlopsPerRank},
          {"model_flops_utilization", s.flopsPerRank / cluster.flopsPerSecond},
          {"hardware_flops_utilization",
           s.hardwareFlopsPerRank / cluster.flopsPerSecond}};
}

/// What was read from a model.
static void printSizes(const plan::TrainingJob &job) {
  printf("Layers: %ld, %ld wide, %ld heads of which %ld of keys and values, "
         "network of %ld%s; vocabulary %ld, %ld tokens\n",
         long(job.layers), long(job.hidden), long(job.heads),
         long(job.keyValueHeads ? job.keyValueHeads : job.heads),
         long(job.network()), job.gated ? " with a gate" : "",
         long(job.vocabulary), long(job.sequence));
}

/// "145.6e9", "83.2e6", "72704".
static std::string countText(double count) {
  if (count < 1e6)
    return std::to_string(int64_t(count));
  return count < 1e9 ? numberText(count * 1e-6, 4) + "e6"
                     : numberText(count * 1e-9, 4) + "e9";
}

static void print(const plan::Simulation &s, const plan::TrainingJob &job,
                  const plan::Cluster &cluster, const std::string &mesh) {
  auto percent = [](double share) { return numberText(100 * share) + " %"; };
  printf("Cluster: %s\n", cluster.name.c_str());
  printf("Model: %s parameters, mesh %s, %ld ranks, %ld micro-batches of %ld "
         "sequences\n",
         countText(job.parameters()).c_str(), mesh.c_str(),
         long(job.ranks()), long(job.microBatches()), long(job.microBatch));
  printf("Step: %s, %s of a rank's peak (%s with what is computed again), "
         "scaling efficiency %s\n",
         milliseconds(s.step).c_str(),
         percent(s.flopsPerRank / cluster.flopsPerSecond).c_str(),
         percent(s.hardwareFlopsPerRank / cluster.flopsPerSecond).c_str(),
         percent(s.efficiency).c_str());
  Table parts({{"part"}, {"time", true}, {"of the step", true}, {"what"}});
  auto part = [&](const char *name, Time time, const char *what) {
    if (time)
      parts.add({name, milliseconds(time),
                 percent(double(time) / double(s.step)), what});
  };
  part("compute", s.compute, "products, memory, launches");
  part("tensor", s.tensor, "collectives over tp");
  part("bubble", s.bubble, "stages wait at both ends of the step");
  part("imbalance", s.imbalance, "stages wait for the one with the loss");
  part("sends", s.sends, "between stages");
  part("gradients", s.gradients, "over dp, and of the shared embedding");
  part("update", s.update, "optimizer");
  printf("%s", parts.text().c_str());
  printf("Memory: %s on the fullest rank\n",
         bytesText(s.memory.total()).c_str());
  Table memory({{"for"}, {"bytes", true}});
  memory.add({"parameters", bytesText(s.memory.parameters)});
  memory.add({"gradients", bytesText(s.memory.gradients)});
  memory.add({"optimizer", bytesText(s.memory.optimizer)});
  memory.add({"activations", bytesText(s.memory.activations)});
  printf("%s", memory.text().c_str());
}

bool mtp::simulateCommand(const Options &options, Report &report,
                          Error &error) {
  auto refuse = [&](int code, const std::string &message) {
    error = {code, code == kUsage ? "usage" : "input", message, {}};
    return false;
  };
  std::string reason;
  auto cluster = findCluster(options.predict.cluster, reason);
  if (!cluster)
    return refuse(kBadInput, reason);
  auto job = readJob(options, report, reason, error);
  if (!job)
    return error ? false : refuse(kUsage, reason);
  std::string mesh = options.compile.mesh;
  if (job->mesh.empty() || options.predict.meshGiven) {
    if (!plan::setMesh(*job, mesh, reason))
      return refuse(kUsage, reason);
  } else {
    mesh.clear();
    for (const auto &[name, size] : job->mesh)
      mesh += (mesh.empty() ? "" : ",") + name + "=" + std::to_string(size);
  }
  if (!job->check(reason))
    return refuse(kBadInput, reason);
  if (cluster->nodes && job->ranks() > cluster->nodes * cluster->ranksPerNode)
    return refuse(kBadInput,
                  "the mesh has " + std::to_string(job->ranks()) +
                      " ranks, cluster '" + cluster->name + "' only " +
                      std::to_string(cluster->nodes * cluster->ranksPerNode));
  plan::Simulation result = plan::simulate(*cluster, *job);
  report.add("mesh", mesh);
  report.add("simulation", toJson(result, *job, *cluster));
  if (!options.quiet && !options.model.empty())
    printSizes(*job);
  if (!options.quiet)
    print(result, *job, *cluster, mesh);
  if (cluster->memoryBytes && result.memory.total() > cluster->memoryBytes) {
    std::string warning = "a rank needs " + bytesText(result.memory.total()) +
                          ", the cluster's have " +
                          bytesText(cluster->memoryBytes);
    report.addWarning(warning);
    if (!options.quiet)
      fprintf(stderr, "mtp-run: warning: %s\n", warning.c_str());
  }
  return true;
}
