// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Guard.h - nothing ends the process ---------------------------------===//
#ifndef MTP_COMPILER_DRIVER_GUARD_H
#define MTP_COMPILER_DRIVER_GUARD_H

#include <functional>
#include <string>

namespace mtp {

/// Runs `body` on a thread with a stack of its own. An exception, a fatal error
/// of LLVM or a crash in `body` ends it; false and one sentence in `error`
/// then. What `body` owned at a crash is not freed. Signal handlers are as
/// before afterwards. Not for two threads at the same time: callers wait for
/// each other.
bool runGuarded(const std::function<void()> &body, std::string &error);

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_GUARD_H
