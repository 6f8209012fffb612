// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Cost.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace mtp::plan;

namespace {

/// Flat and two-level machines; the last one has 2 hosts of 1 rank on its outer
/// axis.
std::vector<Machine> machines() {
  std::vector<Machine> all;
  for (int64_t n : {1, 2, 3, 4, 8})
    all.push_back(Machine::cpuThreads({{"dp", 2}, {"tp", n}}));
  Machine hosts = Machine::cpuThreads({{"dp", 2}, {"tp", 8}});
  hosts.axes[0].ranksPerHost = 1;
  hosts.axes[0].outer = {20'000'000, 1'024'000};
  hosts.axes[1].ranksPerHost = 4;
  hosts.axes[1].outer = {20'000'000, 1'024'000};
  all.push_back(hosts);
  return all;
}

/// Times that a noisy machine could have measured.
Machine measuredMachine() {
  Machine machine = Machine::cpuThreads({{"dp", 2}, {"tp", 4}});
  uint64_t state = 1;
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::AllGather,
        CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
        CollectiveKind::Permute})
    for (int64_t ranks : {2, 4, 8}) {
      MeasuredCollective measured{kind, ranks, {}};
      for (int64_t bytes = 1024; bytes <= 1 << 26; bytes *= 4) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        measured.points.push_back(
            {bytes + int64_t(kind),
             Time(10'000'000 + bytes * 200 * (50 + state % 100) / 100)});
      }
      machine.measured.push_back(measured);
    }
  makeConsistent(machine.measured);
  return machine;
}

const std::vector<std::vector<int>> groups = {{0}, {1}, {0, 1}};

std::vector<Machine> allMachines() {
  std::vector<Machine> all = machines();
  all.push_back(measuredMachine());
  return all;
}

std::vector<int64_t> sizes() {
  std::vector<int64_t> all{0, 1, 7, 100, 1000};
  for (int64_t bytes = 1024; bytes <= int64_t(1) << 40; bytes *= 2)
    for (int64_t b : {bytes - 1, bytes, bytes + 1, bytes * 3 / 2})
      all.push_back(b);
  std::sort(all.begin(), all.end());
  return all;
}

TEST(Cost, IsMonotoneInBytes) {
  for (const Machine &machine : allMachines())
    for (const auto &group : groups)
      for (auto cost :
           {allReduce, allGather, reduceScatter, allToAll, permute}) {
        Time last = 0;
        for (int64_t bytes : sizes()) {
          Time now = cost(machine, group, bytes);
          EXPECT_GE(now, last) << bytes;
          last = now;
        }
      }
}

TEST(Cost, ReduceScatterIsAtMostAllReduceAndBothHalvesAreMore) {
  for (const Machine &machine : allMachines())
    for (const auto &group : groups)
      for (int64_t bytes : sizes()) {
        Time whole = allReduce(machine, group, bytes);
        Time scatter = reduceScatter(machine, group, bytes);
        Time gather = allGather(machine, group, bytes);
        EXPECT_LE(scatter, whole);
        if (whole == 0)
          EXPECT_EQ(scatter + gather, 0);
        else
          EXPECT_LT(whole, scatter + gather) << bytes;
      }
}

TEST(Cost, AllToAllIsAtMostAllGather) {
  for (const Machine &machine : allMachines())
    for (const auto &group : groups)
      for (int64_t bytes : sizes())
        EXPECT_LE(allToAll(machine, group, bytes),
                  allGather(machine, group, bytes));
}

TEST(Cost, OneCollectiveOverTwoAxesIsAtMostOneAfterTheOther) {
  for (const Machine &machine : machines())
    for (int64_t bytes : sizes()) {
      EXPECT_LE(allReduce(machine, {0, 1}, bytes),
                allReduce(machine, {1}, bytes) +
                    allReduce(machine, {0}, bytes));
      EXPECT_LE(allGather(machine, {0, 1}, bytes),
                allGather(machine, {1}, bytes) +
                    allGather(machine, {0}, bytes));
    }
}

/// A detour is never cheaper than the direct way: one collective over two axes
/// against two, moving a cut against gathering it.
TEST(Cost, TheDirectWayIsNeverDearer) {
  for (const Machine &machine : machines())
    for (int64_t bytes : sizes()) {
      for (auto cost : {allGather, reduceScatter, allReduce})
        EXPECT_LE(cost(machine, {0, 1}, bytes),
                  add(cost(machine, {0}, bytes), cost(machine, {1}, bytes)));
      for (const auto &group : groups)
        EXPECT_LE(permute(machine, group, bytes),
                  add(allGather(machine, group, bytes), machine.launch));
    }
}

/// autoparallel#457: 8 hosts of one rank, 4 MB.
TEST(Cost, ReduceScatterBetweenHostsIsHalfAnAllReduce) {
  Machine machine = Machine::cpuThreads({{"dp", 8}});
  machine.axes[0].ranksPerHost = 1;
  machine.axes[0].outer = {20'000'000, 1'024'000};
  Time whole = allReduce(machine, {0}, 4 << 20) - machine.launch;
  Time scatter = reduceScatter(machine, {0}, 4 << 20) - machine.launch;
  EXPECT_EQ(2 * scatter, whole);
}

TEST(Cost, MeasuredTimesAreTakenWhereTheyWereMeasured) {
  Machine machine = Machine::cpuThreads({{"dp", 3}, {"tp", 2}});
  machine.measured = {
      {CollectiveKind::AllGather, 2, {{1000, 5'000'000}, {3000, 9'000'000}}}};
  makeConsistent(machine.measured);
  EXPECT_EQ(allGather(machine, {1}, 10), 5'000'000);
  EXPECT_EQ(allGather(machine, {1}, 2000), 7'000'000);
  EXPECT_EQ(allGather(machine, {1}, 6000), 18'000'000); // proportional
  Machine usual = Machine::cpuThreads({{"dp", 3}, {"tp", 2}});
  EXPECT_EQ(allGather(machine, {0}, 2000), allGather(usual, {0}, 2000));
  EXPECT_EQ(allReduce(machine, {1}, 2000), allReduce(usual, {1}, 2000));
  machine.axes[1].ranksPerHost = 1; // two hosts: not what was measured
  machine.axes[1].outer = {20'000'000, 1'024'000};
  EXPECT_GT(allGather(machine, {1}, 2000), 20'000'000);
}

TEST(Cost, OfAProductDependsOnItsShape) {
  Machine machine = Machine::cpuThreads({{"tp", 2}});
  auto flops = [&](int64_t m, int64_t n, int64_t k) {
    return product(machine, 1, m, n, k, FlopKind::F32);
  };
  EXPECT_EQ(flops(64, 64, 64),
            compute(machine, 2 * 64 * 64 * 64, FlopKind::F32));
  machine.products = {100, 10'000, 8, 2000};
  // The same operations take longest where the sum is short.
  EXPECT_GT(flops(1024, 1024, 64), flops(512, 512, 256));
  EXPECT_EQ(flops(64, 63, 64) / flops(64, 64, 64), 1);
  EXPECT_GT(flops(64, 63, 64), flops(64, 64, 64));
  EXPECT_LT(flops(64, 64, 64), flops(65, 64, 64));
}

TEST(Cost, OfOneRankIsZero) {
  Machine machine = Machine::cpuThreads({{"tp", 1}});
  for (auto cost : {allReduce, allGather, reduceScatter, allToAll, permute})
    EXPECT_EQ(cost(machine, {0}, 1 << 20), 0);
}

TEST(Cost, CountsTheSlowestLinkOfAnAxisThatCrossesHosts) {
  Machine machine = Machine::cpuThreads({{"dp", 2}, {"tp", 8}});
  machine.axes[0].ranksPerHost = 1;
  machine.axes[0].outer = {20'000'000, 1'024'000};
  EXPECT_EQ(allReduce(machine, {0}, 4 << 20),
            machine.launch + 2 * 20'000'000 + Time(4 << 10) * 1'024'000);
}

TEST(Cost, SaturatesInsteadOfOverflowing) {
  Machine machine = Machine::cpuThreads({{"tp", int64_t(1) << 40}});
  EXPECT_EQ(allReduce(machine, {0}, INT64_MAX), kLargestCost);
  EXPECT_EQ(compute(machine, INT64_MAX, FlopKind::Other), kLargestCost);
  EXPECT_EQ(add(kIllegal, kIllegal), kIllegal);
}

TEST(Cost, OfProductsIsFlopsOverRate) {
  Machine machine = Machine::cpuThreads({{"tp", 2}});
  EXPECT_EQ(compute(machine, 60'000'000, FlopKind::F32),
            1'000'020'000); // about 1 ms
  EXPECT_GT(compute(machine, 1000, FlopKind::F64),
            compute(machine, 1000, FlopKind::F32));
}

} // namespace
