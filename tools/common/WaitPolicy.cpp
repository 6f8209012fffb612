// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/WaitPolicy.h"
#include "runtime/support/System.h"

#include <cstdlib>
#include <initializer_list>
#include <unistd.h>

/// About 20 us, a few times what it takes to start a parallel region.
static constexpr const char *kSpins = "10000";

void mtp::limitSpinning(char *const *argv) {
  for (const char *name : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"})
    if (getenv(name))
      return;
  std::string path = programPath();
  if (!path.empty() && setenv("GOMP_SPINCOUNT", kSpins, 0) == 0)
    execv(path.c_str(), argv);
}
