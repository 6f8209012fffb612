// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PredictOptions.h - options of the simulator and the calibration ----===//
//
//   mtp-run --simulate --cluster FILE --mesh pp=8,dp=24,tp=8 --job JOB
//   mtp-run --calibrate[=FILE]
//
// Both run no model.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_COMMON_PREDICTOPTIONS_H
#define MTP_TOOLS_COMMON_PREDICTOPTIONS_H

#include <string>

namespace CLI {
class App;
}

namespace mtp {

struct PredictOptions {
  bool simulate = false;
  std::string cluster; ///< a file, or the name of one that ships
  bool meshGiven = false;
  std::string job; ///< text of a job, or a .json file
  bool calibrate = false;
  std::string calibrateTo; ///< "": the user's configuration folder

  bool wanted() const { return simulate || calibrate; }
};

void addPredictOptions(CLI::App &app, PredictOptions &options);

/// Settles what the flags left open; one sentence if the command line has an
/// option that means nothing here, or lacks one.
std::string finishPredictOptions(const CLI::App &app, PredictOptions &options);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_PREDICTOPTIONS_H
