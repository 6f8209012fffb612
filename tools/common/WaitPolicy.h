// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- WaitPolicy.h - how idle threads of a rank wait ---------------------===//
#ifndef MTP_TOOLS_COMMON_WAITPOLICY_H
#define MTP_TOOLS_COMMON_WAITPOLICY_H

namespace mtp {

/// Starts the program again with GOMP_SPINCOUNT set, unless the user has chosen
/// a policy. libgomp, which oneDNN brings, lets idle threads spin for
/// milliseconds and reads its settings before main: on a machine with other
/// work a step of 100 ms became one of 2 s. Returns if there is nothing to do
/// or it cannot.
void limitSpinning(char *const *argv);

} // namespace mtp

#endif // MTP_TOOLS_COMMON_WAITPOLICY_H
