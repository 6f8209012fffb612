// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Calibration.h - what was measured on a machine ---------------------===//
//
// `mtp-run --calibrate` measures (tools/common/Measure.h) and writes a small
// JSON file (docs/calibration.md) under the user's configuration folder, named
// after a fingerprint of the machine. A plan made there is made with these
// numbers instead of those of Machine::cpuThreads.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_COST_CALIBRATION_H
#define MTP_COMPILER_COST_CALIBRATION_H

#include "compiler/plan/Cost.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace mtp::plan {

/// A product [m, k] x [k, n] and how long it took.
struct ProductTime {
  int64_t m = 0, n = 0, k = 0;
  double seconds = 0;
};

struct Calibration {
  std::string fingerprint; ///< of the machine
  std::string machine;     ///< for people: processor, cores
  std::string measured;    ///< day, "2026-01-31"
  int64_t cores = 1;
  /// Operations a second of one core with all cores busy, large products.
  double f32 = 0, f64 = 0, bf16 = 0;
  ProductShape products; ///< fitted to f32
  /// Bytes read and written a second by one core with all cores busy.
  double memoryBytesPerSecond = 0;
  double kernelUs = 0; ///< least time of a kernel
  /// Fitted to all collectives, for ranks that were not measured.
  Link link;
  Time launch = 0;
  std::vector<MeasuredCollective> collectives;
};

/// Fits link and launch (least squares of relative errors) to `collectives`,
/// and makes those consistent.
void fitLink(Calibration &calibration);

/// Fits rate (returned), depth and area to the times of products.
double fitProducts(const std::vector<ProductTime> &times, ProductShape &shape);

/// Costs of ranks that are threads of the calibrated machine, each with its
/// share of the cores.
Machine machineFor(const Calibration &calibration,
                   const std::vector<std::pair<std::string, int64_t>> &axes);

nlohmann::json toJson(const Calibration &calibration);
std::optional<Calibration> parseCalibration(const nlohmann::json &file,
                                            std::string &error);
/// `error` names the file and what is wrong with it.
std::optional<Calibration> readCalibration(const std::string &path,
                                           std::string &error);

const char *name(CollectiveKind kind); ///< "all_reduce"

} // namespace mtp::plan

#endif // MTP_COMPILER_COST_CALIBRATION_H
