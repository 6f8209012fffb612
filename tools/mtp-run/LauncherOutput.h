// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LauncherOutput.h - what mpirun and the ranks say -------------------===//
//
// Standard error of mpirun carries what the ranks write, which is passed on
// line by line, and remarks of mpirun between lines of dashes, which are kept:
//
//   --------------------------------------------------------------------------
//   mpirun noticed that process rank 1 with PID 0 on node n exited on signal 9
//   (Killed).
//   --------------------------------------------------------------------------
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TOOLS_MTP_RUN_LAUNCHEROUTPUT_H
#define MTP_TOOLS_MTP_RUN_LAUNCHEROUTPUT_H

#include <string>

namespace mtp {

class LauncherOutput {
public:
  void take(const char *bytes, size_t size);
  /// There is no more.
  void end();

  /// "rank 1 was ended by signal 9", empty if mpirun has said no such thing.
  std::string killed() const;
  /// A rank has written something.
  bool ranksSpoke() const { return spoke; }
  /// What has not been passed on.
  const std::string &swallowed() const { return remarks; }

private:
  void line(const std::string &text);

  std::string rest, remarks;
  bool inside = false, spoke = false;
};

} // namespace mtp

#endif // MTP_TOOLS_MTP_RUN_LAUNCHEROUTPUT_H
