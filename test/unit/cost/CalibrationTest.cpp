// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/Calibration.h"
#include "compiler/cost/Cluster.h"
#include "compiler/cost/Target.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace mtp::plan;
using nlohmann::json;

namespace {

/// A machine that does exactly what the alpha-beta model says.
Calibration exact() {
  Machine model = Machine::cpuThreads({{"tp", 2}});
  Calibration c;
  c.fingerprint = "f";
  c.machine = "a processor";
  c.measured = "2020-02-02";
  c.cores = 4;
  c.f32 = 50e9;
  c.f64 = 25e9;
  c.bf16 = 100e9;
  c.products = {10, 1000, 1, 1000};
  c.memoryBytesPerSecond = 8e9;
  c.kernelUs = 1.5;
  for (int64_t ranks : {2, 4}) {
    model.axes[0].size = model.axes[0].ranksPerHost = ranks;
    std::pair<CollectiveKind,
              Time (*)(const Machine &, const std::vector<int> &, int64_t)>
        all[] = {{CollectiveKind::AllReduce, allReduce},
                 {CollectiveKind::AllGather, allGather},
                 {CollectiveKind::ReduceScatter, reduceScatter},
                 {CollectiveKind::AllToAll, allToAll},
                 {CollectiveKind::Permute, permute}};
    for (auto [kind, cost] : all) {
      MeasuredCollective m{kind, ranks, {}};
      for (int64_t bytes = 1024; bytes <= 1 << 24; bytes *= 4)
        m.points.push_back({bytes, cost(model, {0}, bytes)});
      c.collectives.push_back(m);
    }
  }
  fitLink(c);
  return c;
}

TEST(Calibration, FindsTheLinkThatMadeTheTimes) {
  Calibration c = exact();
  EXPECT_NEAR(double(c.launch), 2e6, 4e4);
  EXPECT_NEAR(double(c.link.alpha), 1e6, 2e4);
  EXPECT_NEAR(double(c.link.psPerKiB), 204'800, 2000);
}

TEST(Calibration, FindsTheShapeThatMadeTheTimes) {
  std::vector<ProductTime> times;
  for (int64_t m : {32, 128, 512})
    for (int64_t n : {64, 768})
      for (int64_t k : {64, 768, 3072})
        times.push_back(
            {m, n, k, 2 * (double(m * n) + 1000) * (double(k) + 20) / 40e9});
  ProductShape shape;
  double rate = fitProducts(times, shape);
  EXPECT_NEAR(rate, 40e9, 1e9);
  EXPECT_NEAR(double(shape.depth), 20, 4);
  EXPECT_NEAR(double(shape.area), 1000, 300);
}

TEST(Calibration, OfMoreRanksThanCoresSharesThem) {
  Calibration c = exact();
  auto flops = [&](int64_t ranks) {
    return compute(machineFor(c, {{"tp", ranks}}), 200'000'000, FlopKind::F32);
  };
  EXPECT_EQ(flops(1), 1'000'000'000); // 4 cores x 50 GFLOP/s
  EXPECT_EQ(flops(2), 2'000'000'000);
  EXPECT_EQ(flops(3), 4'000'000'000); // one core each
  EXPECT_EQ(flops(8), 8'000'000'000);
}

TEST(Calibration, TakesMeasuredCollectivesAndTheFitForOtherSizes) {
  Calibration c = exact();
  Machine machine = machineFor(c, {{"dp", 3}, {"tp", 2}});
  EXPECT_EQ(allReduce(machine, {1}, 4096),
            allReduce(Machine::cpuThreads({{"tp", 2}}), {0}, 4096));
  EXPECT_EQ(allReduce(machine, {0}, 4096),
            c.launch + 4 * c.link.alpha +
                (Time(4096 * 4) * c.link.psPerKiB + 3071) / 3072);
}

TEST(Calibration, FileRoundTrips) {
  Calibration c = exact();
  std::string error;
  json file = json::parse(toJson(c).dump());
  auto again = parseCalibration(file, error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(toJson(*again), file);
}

TEST(Calibration, FileIsRefusedWithTheKey) {
  const json good = toJson(exact());
  auto refuse = [](const json &bad, const std::string &part) {
    std::string error;
    EXPECT_FALSE(parseCalibration(bad, error)) << bad.dump();
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  refuse(json::array(), "format");
  refuse("text", "format");
  for (const char *key :
       {"fingerprint", "machine", "measured", "cores", "core_flops_per_second",
        "product_depth", "core_memory_bytes_per_second", "launch_us", "step_us",
        "link_ps_per_kib", "collectives"}) {
    json bad = good;
    bad.erase(key);
    refuse(bad, std::string(key) == "core_flops_per_second" ? "f32" : key);
    for (const json &value : {json("x"), json(-1), json(nullptr), json(1e300)})
      if (!(value.is_string() && good[key].is_string())) {
        bad[key] = value;
        refuse(bad, std::string(key) == "core_flops_per_second" ? "f32" : key);
      }
  }
  for (const json &value :
       {json(1), json::object(), json::array({1}),
        json::array({{{"kind", "all_reduce"}, {"ranks", 1}}}),
        json::array({{{"kind", "luck"}, {"ranks", 2}}}),
        json::array({{{"kind", "permute"}, {"ranks", 2}}}),
        json::array(
            {{{"kind", "permute"}, {"ranks", 2}, {"bytes_us", {{1, -1}}}}})}) {
    json bad = good;
    bad["collectives"] = value;
    std::string error;
    EXPECT_FALSE(parseCalibration(bad, error)) << value.dump();
    EXPECT_FALSE(error.empty());
  }
}

TEST(Target, IsTheDefaultMachineUntilItIsSet) {
  MeshAxes mesh = {{"dp", 2}, {"tp", 4}};
  std::string error;
  auto cost = [&] { return allReduce(targetMachine(mesh), {0, 1}, 1 << 20); };
  Time usual = allReduce(Machine::cpuThreads(mesh), {0, 1}, 1 << 20);
  EXPECT_EQ(cost(), usual);
  EXPECT_EQ(targetText(), "default");
  ASSERT_TRUE(setTarget("", "nodes:2,ranks:4", mesh, error)) << error;
  EXPECT_GT(cost(), usual);
  EXPECT_EQ(targetText(), "topology nodes:2,ranks:4");
  ASSERT_TRUE(setTarget(toJson(exact()).dump(), "", mesh, error)) << error;
  EXPECT_NE(compute(targetMachine(mesh), 1000000, FlopKind::F32),
            compute(Machine::cpuThreads(mesh), 1000000, FlopKind::F32));
  EXPECT_EQ(targetText(), "calibration of 2020-02-02 on a processor");
  // What is refused changes nothing.
  EXPECT_FALSE(setTarget("", "nodes:1,ranks:4", mesh, error));
  EXPECT_NE(error.find("8 ranks"), std::string::npos) << error;
  EXPECT_FALSE(setTarget("{", "", mesh, error));
  EXPECT_EQ(targetText(), "calibration of 2020-02-02 on a processor");
  ASSERT_TRUE(setTarget("", "", mesh, error));
  EXPECT_EQ(cost(), usual);
}

TEST(Target, TopologyIsReadFromAFile) {
  std::string path =
      testing::TempDir() + "mtp-topology-" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << R"({"nodes": 2, "ranks": 4, "outer": "25G"})";
  std::string text = path, error;
  EXPECT_TRUE(readTopology(text, error)) << error;
  EXPECT_EQ(text, "nodes:2,outer:25G,ranks:4");
  std::ofstream(path) << "{";
  text = path;
  EXPECT_FALSE(readTopology(text, error));
  EXPECT_NE(error.find(path), std::string::npos) << error;
  std::filesystem::remove(path);
}

TEST(Calibration, ADamagedFileIsNamed) {
  auto folder = std::filesystem::temp_directory_path() /
                ("mtp-calibration-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::string path = folder / "damaged.json", error;
  std::ofstream(path) << toJson(exact()).dump().substr(0, 300);
  EXPECT_FALSE(readCalibration(path, error));
  EXPECT_NE(error.find(path), std::string::npos) << error;
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(readCalibration(path, error));
  EXPECT_NE(error.find("cannot be read"), std::string::npos) << error;
}

} // namespace
