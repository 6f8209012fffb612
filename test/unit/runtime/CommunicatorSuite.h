// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CommunicatorSuite.h - the communicators that a suite runs on -------===//
#ifndef MTP_TEST_UNIT_RUNTIME_COMMUNICATORSUITE_H
#define MTP_TEST_UNIT_RUNTIME_COMMUNICATORSUITE_H

#include "runtime/comm/Communicator.h"

#include <functional>
#include <memory>
#include <vector>

namespace mtp::test {

struct Implementation {
  const char *name;
  std::function<std::vector<std::unique_ptr<Communicator>>(
      std::shared_ptr<Crew>, const Mesh &, const std::vector<CollectiveSite> &)>
      make;
  bool spin = false;
  /// Connecting takes long: every other size and type will do.
  bool few = false;
  /// Where `make` gives the rank of this process only, and none to a process
  /// beyond the mesh: how many ranks there may be, and what is called when the
  /// rank here is done: waits for the others, gives the first error of all.
  int mostRanks = 8;
  std::function<Error(const Error &)> meet = nullptr;
};

/// Each executable with the suite has its own.
std::vector<Implementation> communicators();

} // namespace mtp::test

#endif // MTP_TEST_UNIT_RUNTIME_COMMUNICATORSUITE_H
