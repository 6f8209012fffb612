// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SimulateCommand.h - mtp-run --simulate, --calibrate ----------------===//
#ifndef MTP_TOOLS_MTP_RUN_SIMULATECOMMAND_H
#define MTP_TOOLS_MTP_RUN_SIMULATECOMMAND_H

#include "tools/common/Report.h"

namespace mtp {

/// Predicts a training run (docs/simulator.md), prints it, adds it to the
/// report.
bool simulateCommand(const Options &options, Report &report, Error &error);

/// Measures this machine (docs/calibration.md) and writes the file.
bool calibrateCommand(const Options &options, Report &report, Error &error);

} // namespace mtp

#endif // MTP_TOOLS_MTP_RUN_SIMULATECOMMAND_H
