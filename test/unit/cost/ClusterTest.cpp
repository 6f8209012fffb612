// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/Cluster.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

using namespace mtp::plan;

namespace {

const Link fast{1'000'000, 4'000}, slow{10'000'000, 40'000};

/// Ranks of each axis that share a host.
std::vector<int64_t> placed(std::vector<std::pair<std::string, int64_t>> axes,
                            int64_t host) {
  Machine machine;
  for (const auto &[name, size] : axes)
    machine.axes.push_back({name, size, size, {}, {}});
  placeAxes(machine, host, fast, slow);
  std::vector<int64_t> result;
  for (const AxisLinks &axis : machine.axes)
    result.push_back(axis.ranksPerHost);
  return result;
}

TEST(Cluster, FillsHostsFromTheLastAxis) {
  using V = std::vector<int64_t>;
  EXPECT_EQ(placed({{"dp", 2}, {"tp", 4}}, 4), (V{1, 4}));
  EXPECT_EQ(placed({{"dp", 4}, {"tp", 2}}, 4), (V{2, 2}));
  EXPECT_EQ(placed({{"tp", 8}}, 4), (V{4}));
  EXPECT_EQ(placed({{"pp", 2}, {"dp", 4}, {"tp", 2}}, 16), (V{2, 4, 2}));
}

TEST(Cluster, AGroupThatMayLieOnTwoHostsIsPricedBetweenHosts) {
  using V = std::vector<int64_t>;
  EXPECT_EQ(placed({{"dp", 2}, {"tp", 3}}, 4), (V{1, 1}));
  EXPECT_EQ(placed({{"tp", 6}}, 4), (V{2}));
  EXPECT_EQ(placed({{"dp", 2}, {"tp", 5}}, 8), (V{1, 1}));
}

/// The axis of 2 hosts x 8 has groups of one rank a host: autoparallel#527.
TEST(Cluster, AGroupOverTwoHostsCostsTheSlowestLink) {
  Machine machine = Machine::cpuThreads({{"dp", 2}, {"tp", 8}});
  placeAxes(machine, 8, fast, slow);
  Machine flat = Machine::cpuThreads({{"dp", 2}, {"tp", 8}});
  placeAxes(flat, 16, slow, slow);
  for (int64_t bytes : {1000, 1 << 20, 1 << 30})
    for (auto cost : {allReduce, allGather, reduceScatter, allToAll, permute}) {
      EXPECT_EQ(cost(machine, {0}, bytes), cost(flat, {0}, bytes));
      EXPECT_LT(cost(machine, {1}, bytes), cost(flat, {1}, bytes));
      EXPECT_GE(cost(machine, {0, 1}, bytes), cost(machine, {0}, bytes / 8));
    }
}

TEST(Cluster, TopologyTextGivesHostsAndLinks) {
  std::string error;
  auto topology = parseTopology(
      "nodes:2,ranks:4,inner:10G,outer:1.5G,outer-step:25us,launch:3", error);
  ASSERT_TRUE(topology) << error;
  Machine machine = Machine::cpuThreads({{"dp", 2}, {"tp", 4}});
  ASSERT_TRUE(applyTopology(machine, *topology, error)) << error;
  EXPECT_EQ(machine.axes[0].ranksPerHost, 1);
  EXPECT_EQ(machine.axes[1].ranksPerHost, 4);
  EXPECT_EQ(machine.axes[0].outer.alpha, 25'000'000);
  EXPECT_EQ(machine.axes[0].outer.psPerKiB, psPerKiB(1.5e9));
  EXPECT_EQ(machine.axes[1].inner.alpha, 1'000'000); // not named
  EXPECT_EQ(machine.launch, 3'000'000);
}

TEST(Cluster, OneHostTopologyWithoutNumbersIsTheDefaultMachine) {
  std::string error;
  auto topology = parseTopology("nodes:1,ranks:8", error);
  ASSERT_TRUE(topology) << error;
  Machine usual = Machine::cpuThreads({{"dp", 2}, {"tp", 4}}), laid = usual;
  ASSERT_TRUE(applyTopology(laid, *topology, error));
  for (int64_t bytes : {0, 1000, 1 << 20})
    for (std::vector<int> group : {std::vector{0}, {1}, {0, 1}})
      EXPECT_EQ(allReduce(laid, group, bytes), allReduce(usual, group, bytes));
}

TEST(Cluster, TopologyTextIsRefusedWithItsPart) {
  for (auto [text, part] : {std::pair{"nodes:2", "ranks is missing"},
                            {"", "none of"},
                            {"nodes:0,ranks:2", "'0'"},
                            {"nodes:2,ranks:x", "'x'"},
                            {"nodes:2,ranks:2,speed:3", "speed"},
                            {"nodes:2,nodes:2", "twice"},
                            {"nodes:2,ranks:2,inner:5X", "'5X'"},
                            {"nodes:1.5,ranks:1", "'1.5'"},
                            {"nodes:2,ranks:2,", "none of"},
                            {"nodes:2,ranks:1e30", "'1e30'"}}) {
    std::string error;
    EXPECT_FALSE(parseTopology(text, error)) << text;
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  std::string error;
  Machine machine = Machine::cpuThreads({{"tp", 8}});
  EXPECT_FALSE(
      applyTopology(machine, *parseTopology("nodes:2,ranks:2", error), error));
  EXPECT_NE(error.find("8 ranks"), std::string::npos) << error;
  EXPECT_NE(error.find("only 4"), std::string::npos) << error;
}

TEST(Cluster, FilesThatShipAreReadAndWrittenAlike) {
  int count = 0;
  for (const auto &entry : std::filesystem::directory_iterator(MTP_CLUSTERS)) {
    std::string error;
    auto cluster = readCluster(entry.path(), error);
    ASSERT_TRUE(cluster) << error;
    EXPECT_FALSE(cluster->source.empty());
    auto again = parseCluster(toJson(*cluster), error);
    ASSERT_TRUE(again) << error;
    EXPECT_EQ(toJson(*again), toJson(*cluster));
    ++count;
  }
  EXPECT_GE(count, 4);
}

TEST(Cluster, FilesAreRefusedWithTheKey) {
  std::string error;
  auto good = readCluster(MTP_CLUSTERS "/h100.json", error);
  ASSERT_TRUE(good) << error;
  const nlohmann::json file = toJson(*good);
  auto refuse = [&](const nlohmann::json &bad, const char *part) {
    EXPECT_FALSE(parseCluster(bad, error));
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  refuse(nlohmann::json::array(), "object");
  for (auto [key, value] :
       {std::pair<const char *, nlohmann::json>{"version", 2},
        {"flops_per_second", 0},
        {"flops_per_second", "fast"},
        {"ranks_per_node", 1.5},
        {"nodes", -1},
        {"speed", 1},
        {"name", 3},
        {"achieved", 1}}) {
    nlohmann::json bad = file;
    bad[key] = value;
    refuse(bad, key);
  }
  nlohmann::json bad = file;
  bad["achieved"]["luck"] = 1;
  refuse(bad, "luck");
  for (auto [key, value] : {std::pair{"products", 1.5},
                            {"inner", 0.0},
                            {"unaligned", 0.5},
                            {"depth_", 1.0},
                            {"launch_us", -1.0},
                            {"layer_us", 1e30}}) {
    bad = file;
    bad["achieved"][key] = value;
    refuse(bad, key);
  }
  bad = file;
  bad["nodes"] = bad["ranks_per_node"] = 1e12;
  refuse(bad, "nodes");
  bad = file;
  bad.erase("outer_bytes_per_second");
  refuse(bad, "outer_bytes_per_second");
  EXPECT_FALSE(readCluster("no such file", error));
  EXPECT_NE(error.find("no such file"), std::string::npos) << error;
}

} // namespace
