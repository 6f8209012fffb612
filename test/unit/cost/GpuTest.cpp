// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/Gpu.h"

#include <gtest/gtest.h>

using namespace mtp::plan;

namespace {

/// The down projection of a layer with h 4096 over `ranks` ranks.
SummedProduct projection(int64_t tokens, int64_t ranks) {
  return {tokens, 4096, 16384 / ranks, FlopKind::Half, tokens * 4096 * 2, {0}};
}

TEST(Gpu, NewerDevicesAreFaster) {
  Time before = kIllegal;
  for (int capability : {75, 80, 90, 120}) {
    Machine machine = gpuMachine(capability, {{"tp", 8}});
    Time time = timeInParts(machine, projection(8192, 8), 1);
    EXPECT_LE(time, before) << capability;
    before = time;
  }
}

TEST(Gpu, OnePartIsAProductAndItsSum) {
  Machine machine = gpuMachine(90, {{"tp", 2}});
  SummedProduct p = projection(8192, 2);
  EXPECT_EQ(timeInParts(machine, p, 1),
            product(machine, 1, p.m, p.n, p.k, p.kind) +
                allReduce(machine, p.axes, p.bytes));
}

TEST(Gpu, PartsPayForLargeProductsOnly) {
  for (int capability : {80, 90}) {
    Machine machine = gpuMachine(capability, {{"tp", 2}});
    EXPECT_GT(bestParts(machine, projection(8192, 2), 4), 1);
    EXPECT_EQ(bestParts(machine, projection(64, 2), 4), 1);
    EXPECT_EQ(bestParts(machine, projection(8192, 2), 1), 1);
    SummedProduct narrow = projection(1, 2);
    EXPECT_EQ(bestParts(machine, narrow, 4), 1);
  }
}

/// What is chosen saves a twentieth, and nothing that is tried takes less.
TEST(Gpu, TheBestNumberOfPartsTakesLeastTime) {
  Machine machine = gpuMachine(90, {{"dp", 2}, {"tp", 4}});
  for (int64_t tokens = 64; tokens <= 65536; tokens *= 2) {
    SummedProduct p = projection(tokens, 4);
    p.axes = {1};
    int64_t best = bestParts(machine, p, 4);
    Time whole = timeInParts(machine, p, 1);
    if (best > 1) {
      EXPECT_LT(timeInParts(machine, p, best), whole - whole / 20);
    }
    for (int64_t parts : {2, 4}) {
      Time time = timeInParts(machine, p, parts);
      EXPECT_TRUE(timeInParts(machine, p, best) <= time ||
                  time >= whole - whole / 20)
          << tokens << " tokens, " << parts << " parts";
    }
  }
}

} // namespace
