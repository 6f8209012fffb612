// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/simulator/Reference.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

using namespace mtp::bench;
using namespace mtp::plan;

static std::vector<std::string> cells(const std::string &line, char separator) {
  std::vector<std::string> result;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, separator);)
    result.push_back(cell);
  return result;
}

static std::vector<std::string> linesOf(const std::string &path) {
  std::ifstream stream(path);
  if (!stream)
    throw std::runtime_error(path + " cannot be read");
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    while (!line.empty() && line.back() == '\r')
      line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

Reference::Reference(const std::string &data, const std::string &clusters) {
  readVtrain(data + "/vtrain/ground_truth_single.csv", false);
  readVtrain(data + "/vtrain/ground_truth_multi.csv", true);
  readPublished(data + "/published.csv");
  for (const ReferenceRow &row : rows)
    needCluster(row.cluster, clusters);
}

void Reference::needCluster(const std::string &name,
                            const std::string &folder) {
  if (clusters.count(name))
    return;
  std::string error;
  auto cluster = readCluster(folder + "/" + name + ".json", error);
  if (!cluster)
    throw std::runtime_error(error);
  clusters[name] = *cluster;
}

void Reference::readPublished(const std::string &path) {
  int number = 0;
  for (const std::string &line : linesOf(path)) {
    ++number;
    if (line.empty() || line[0] == '#')
      continue;
    std::vector<std::string> cell = cells(line, ';');
    std::string error = "6 columns are needed";
    std::optional<TrainingJob> job;
    if (cell.size() == 6)
      job = parseJob(cell[4], error);
    if (!job || !setMesh(*job, cell[3], error) || !job->check(error))
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " +
                               error);
    rows.push_back({cell[0], cell[1], cell[2], *job, std::stod(cell[5])});
  }
}

/// The single-node runs recompute nothing: their rates, counted with
/// recomputation, would be above what the products alone can reach. The others
/// do not fit into memory without. One rank has the vocabulary of 50257 as it
/// is, more have it padded.
void Reference::readVtrain(const std::string &path, bool multi) {
  for (const std::string &line : linesOf(path)) {
    std::vector<std::string> cell = cells(line, ',');
    if (cell.size() != (multi ? 12u : 11u) ||
        cell[0].find_first_not_of("0123456789.") != std::string::npos)
      continue; // the header
    size_t at = multi ? 1 : 0;
    auto next = [&] { return int64_t(std::stod(cell[at++])); };
    ReferenceRow row;
    row.table = multi ? "vtrain-multi" : "vtrain-single";
    row.cluster = "a100-hdr4";
    next(); // ranks
    TrainingJob &job = row.job;
    job.batch = next();
    job.microBatch = next();
    job.hidden = next();
    job.heads = next();
    job.layers = next();
    job.sequence = next();
    int64_t tp = next(), dp = next(), pp = next();
    job.mesh = {{"pp", pp}, {"dp", dp}, {"tp", tp}};
    job.vocabulary = multi || tp > 1 ? 51200 : 50257;
    if (multi)
      job.recompute = TrainingJob::Recompute::Full;
    row.measured = std::stod(cell[at]) / 1000;
    row.name = (multi ? cell[0] + "B" : "h" + std::to_string(job.hidden)) +
               " t" + std::to_string(tp) + " d" + std::to_string(dp) + " p" +
               std::to_string(pp) + " b" + std::to_string(job.microBatch);
    std::string error;
    if (!job.check(error))
      throw std::runtime_error(path + ": " + row.name + ": " + error);
    rows.push_back(row);
  }
}

std::vector<const ReferenceRow *>
Reference::table(const std::string &name) const {
  std::vector<const ReferenceRow *> result;
  for (const ReferenceRow &row : rows)
    if (row.table == name)
      result.push_back(&row);
  return result;
}

double Reference::predicted(const ReferenceRow &row) const {
  const Cluster &cluster = clusters.at(row.cluster);
  Simulation simulation = simulate(cluster, row.job);
  if (row.table == "megatron-core")
    return simulation.flopsPerRank * 1e-12;
  if (row.table == "megatron-mp" || row.table == "megatron-mp-dp") {
    const ReferenceRow &base = *table("megatron-mp").front();
    return 100 * simulation.flopsPerRank /
           simulate(cluster, base.job).flopsPerRank;
  }
  if (row.table == "megatron-strong")
    return 100 * simulation.efficiency;
  return double(simulation.step) * 1e-12;
}

std::vector<double> Reference::errors(const std::string &name) const {
  std::vector<double> result;
  for (const ReferenceRow *row : table(name))
    result.push_back(predicted(*row) / row->measured - 1);
  return result;
}

std::vector<double> Reference::differences(const std::string &name) const {
  std::vector<double> result;
  for (const ReferenceRow *row : table(name))
    result.push_back(predicted(*row) - row->measured);
  return result;
}

double mtp::bench::meanAbsolute(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values)
    sum += std::abs(value);
  return values.empty() ? 0 : sum / double(values.size());
}

double mtp::bench::largestAbsolute(const std::vector<double> &values) {
  double largest = 0;
  for (double value : values)
    largest = std::max(largest, std::abs(value));
  return largest;
}
