// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Launch.h - one process for each rank -------------------------------===//
//
//   mtp-run --launch 4 ...        mpirun -n 4 mtp-run ... (each with
//   MTP_LAUNCHED)
//     signals        ->             SIGUSR1 for SIGINT, SIGUSR2 for SIGTERM
//     standard error <-  errors and warnings, without what mpirun adds
//     exit code      <-  that of the ranks; 4 if one was killed, with its name
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_MTP_RUN_LAUNCH_H
#define MTP_TOOLS_MTP_RUN_LAUNCH_H

#include "tools/common/CommandLine.h"

namespace mtp {

/// Starts this program again as `options.launch` processes with the arguments
/// of `argv`, and ends when they have ended. Its exit code; `error` is what
/// nobody else has said.
int launchProcesses(const Options &options, int argc, const char *const *argv,
                    Error &error);

/// Whether this process was started by launchProcesses(). Then signals come as
/// above, and SIGTERM means that another rank is gone.
bool isLaunched();
/// Before anything runs.
void exitOnLauncherSignals();
/// While ranks run.
void installLauncherSignals();
/// SIGTERM has come to a launched process.
bool otherRankGone();

} // namespace mtp

#endif // MTP_TOOLS_MTP_RUN_LAUNCH_H
