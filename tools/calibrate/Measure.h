// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Measure.h - measures this machine with the runtime's own parts -----===//
//
// Products by the library kernels, collectives by the communicators of thread
// ranks, all cores busy at once, as in a step. Each number is the lower
// quartile of repetitions: other work on the machine makes some slower, none
// faster.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_CALIBRATE_MEASURE_H
#define MTP_TOOLS_CALIBRATE_MEASURE_H

#include "compiler/cost/Calibration.h"
#include "runtime/support/Error.h"

#include <functional>
#include <string>
#include <vector>

namespace mtp {

struct MeasureOptions {
  double secondsPerPoint = 0.05;
  int64_t largestBytes = int64_t(64) << 20; ///< of a collective
  /// What is measured now, and the share of the work that is done.
  std::function<void(const std::string &, double)> progress;
};

/// Measures everything. False and `error` if a kernel or communicator fails or
/// a signal asks to stop.
bool measureMachine(const MeasureOptions &options, plan::Calibration &result,
                    Error &error);

/// Seconds of one collective over `ranks` thread ranks; `bytes` as in Cost.h.
bool measureCollective(plan::CollectiveKind kind, int64_t ranks, int64_t bytes,
                       double seconds, double &time, Error &error);

/// Numbers of ranks that collectives are measured for: powers of two up to the
/// cores (at least 4), and the cores.
std::vector<int64_t> measuredRanks();
std::vector<int64_t> measuredBytes(int64_t largest);

} // namespace mtp

#endif // MTP_TOOLS_CALIBRATE_MEASURE_H
