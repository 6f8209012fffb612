// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Reference.h - measured training steps and what is predicted --------===//
#ifndef MTP_BENCH_SIMULATOR_REFERENCE_H
#define MTP_BENCH_SIMULATOR_REFERENCE_H

#include "compiler/cost/Simulator.h"

#include <map>
#include <string>
#include <vector>

namespace mtp::bench {

/// One measurement. `measured` has the unit of its table: seconds, or percent,
/// or TFLOP/s (data/README.md).
struct ReferenceRow {
  std::string table, name, cluster;
  plan::TrainingJob job;
  double measured = 0;
};

/// All tables of a folder: "vtrain-single", "vtrain-multi" and those of
/// published.csv. Throws std::runtime_error that names file and line.
class Reference {
public:
  Reference(const std::string &data, const std::string &clusters);

  std::vector<ReferenceRow> rows;
  std::map<std::string, plan::Cluster> clusters;

  std::vector<const ReferenceRow *> table(const std::string &name) const;
  /// In the unit of the row.
  double predicted(const ReferenceRow &row) const;
  /// predicted / measured - 1, of every row of a table.
  std::vector<double> errors(const std::string &table) const;
  /// predicted - measured.
  std::vector<double> differences(const std::string &table) const;

private:
  void readPublished(const std::string &path);
  void readVtrain(const std::string &path, bool multi);
  void needCluster(const std::string &name, const std::string &folder);
};

double meanAbsolute(const std::vector<double> &values);
double largestAbsolute(const std::vector<double> &values);

} // namespace mtp::bench

#endif // MTP_BENCH_SIMULATOR_REFERENCE_H
