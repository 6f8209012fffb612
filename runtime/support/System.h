// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- System.h - the machine and the process -----------------------------===//
#ifndef MTP_RUNTIME_SUPPORT_SYSTEM_H
#define MTP_RUNTIME_SUPPORT_SYSTEM_H

#include "runtime/support/Error.h"

#include <cstdint>
#include <string>

namespace mtp {

/// Usable cores: affinity mask and cgroup quota, at least 1.
int usableCores();
/// Bytes of memory that this process may use: the least of physical memory and
/// the limits of its cgroups.
int64_t availableMemory();
/// Peak resident memory of this process, bytes.
int64_t peakResidentBytes();

/// This program's file; "" if that can't be told.
std::string programPath();
/// The file of the build or installation that the program is of: PREFIX/NAME
/// for PREFIX/bin/program.
std::string installedFile(const std::string &name);

/// Ends every rank of every session at its next instruction or while it waits
/// in a collective; the call that is under way returns an error of exit code
/// 128 + `signal`, kind "signal". Async-signal-safe. 0 takes the order back.
void requestStop(int signal);
/// The signal given to requestStop, 0 if none.
int stopRequested();
/// The error of a run that a signal has ended.
Error endedBySignal(int signal);
/// Makes SIGINT and SIGTERM call requestStop; the second signal kills.
void installSignalHandlers();

} // namespace mtp

#endif // MTP_RUNTIME_SUPPORT_SYSTEM_H
