// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/cost/Simulator.h"

#include <gtest/gtest.h>

using namespace mtp::plan;

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

TrainingJob job(const std::string &text, const std::string &mesh) {
  std::string error;
  auto result = parseJob(text, error);
  EXPECT_TRUE(result) << error;
  EXPECT_TRUE(setMesh(*result, mesh, error)) << error;
  EXPECT_TRUE(result->check(error)) << error;
  return *result;
}

Cluster cluster(const std::string &name) {
  std::string error;
  auto result =
      readCluster(std::string(MTP_CLUSTERS "/") + name + ".json", error);
  EXPECT_TRUE(result) << error;
  return *result;
}

const char *const gpt22 = "layers=48,hidden=6144,heads=64,sequence=2048,"
                          "vocabulary=51200,batch=32,micro-batch=4";

TEST(TrainingJob, CountsParametersAsMegatronDoes) {
  TrainingJob all[] = {job("layers=40,hidden=1536,heads=16,sequence=1024,"
                           "vocabulary=51200,batch=8",
                           "tp=1"),
                       job("layers=54,hidden=1920,heads=20,sequence=1024,"
                           "vocabulary=51200,batch=8",
                           "tp=2"),
                       job("layers=64,hidden=2304,heads=24,sequence=1024,"
                           "vocabulary=51200,batch=8",
                           "tp=4"),
                       job("layers=72,hidden=3072,heads=32,sequence=1024,"
                           "vocabulary=51200,batch=8",
                           "tp=8")};
  double billions[] = {1.213, 2.490, 4.199, 8.317};
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(all[i].parameters() * 1e-9, billions[i], 0.001);
}

TEST(TrainingJob, TextAndJsonAreAlike) {
  std::string error;
  auto text =
      parseJob(std::string(gpt22) +
                   ",interleave=3,recompute=selective,sequence-parallel",
               error);
  auto object = parseJob(
      nlohmann::json::parse(
          R"({"layers": 48, "hidden": 6144, "heads": 64, "sequence": 2048,
              "vocabulary": 51200, "batch": 32, "micro-batch": 4,
              "interleave": 3, "recompute": "selective",
              "sequence-parallel": true, "mesh": "pp=2,tp=8"})"),
      error);
  ASSERT_TRUE(text && object) << error;
  EXPECT_EQ(text->interleave, object->interleave);
  EXPECT_EQ(text->recompute, object->recompute);
  EXPECT_TRUE(text->sequenceParallel && object->sequenceParallel);
  EXPECT_FALSE(text->fusedGradients || object->fusedGradients);
  EXPECT_EQ(object->axis("pp"), 2);
  EXPECT_EQ(object->ranks(), 16);
}

TEST(TrainingJob, IsRefusedWithTheNumbers) {
  auto refused = [](const std::string &text, const std::string &mesh) {
    std::string error;
    auto result = parseJob(text, error);
    if (result && setMesh(*result, mesh, error))
      EXPECT_FALSE(result->check(error)) << text;
    return error;
  };
  std::string base = gpt22;
  auto has = [](const std::string &text, const char *part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refused("layers=48", "tp=1"), "hidden is missing");
  has(refused(base + ",luck=1", "tp=1"), "luck");
  has(refused(base + ",layers=1", "tp=1"), "twice");
  has(refused(base + ",interleave=0", "tp=1"), "interleave");
  has(refused(base + ",recompute=some", "tp=1"), "none, selective or full");
  has(refused(base, "tp=3"), "64 heads do not divide over tp = 3");
  has(refused(base, "pp=5"), "48 layers do not divide over pp = 5");
  has(refused(base, "dp=3"), "32 sequences of a step do not divide");
  has(refused(base, "xp=3"), "xp=3");
  has(refused(base, "tp=2,tp=2"), "twice");
  has(refused(base, "tp=0"), "tp=0");
  has(refused(base + ",interleave=2", "tp=2"), "needs a pipeline");
  has(refused(base + ",interleave=2", "pp=3"), "divide over pp");
  has(refused("", "tp=1"), "no key");
}

/// Korthikanti et al. 2022, Figure 1: GiB of parameters and optimizer without
/// the embedding, and of activations.
TEST(Simulator, MemoryIsThatOfThePapers) {
  struct Row {
    const char *text, *mesh;
    double none, selective;
  } rows[] = {{"layers=48,hidden=6144,heads=64,batch=4,micro-batch=4", "tp=8",
               59.25, 9.56},
              {"layers=96,hidden=12288,heads=96,batch=64,interleave=3",
               "pp=8,tp=8", 66.84, 12.35},
              {"layers=105,hidden=20480,heads=128,batch=280,interleave=3",
               "pp=35,tp=8", 114.02, 23.08},
              {"layers=128,hidden=25600,heads=160,batch=512", "pp=64,tp=8",
               131.25, 26.56}};
  Cluster a100 = cluster("a100-hdr8");
  for (const Row &row : rows) {
    std::string text =
        std::string(row.text) + ",sequence=2048,vocabulary=51200";
    Simulation none = simulate(a100, job(text, row.mesh));
    Simulation less = simulate(
        a100, job(text + ",recompute=selective,sequence-parallel", row.mesh));
    EXPECT_NEAR(double(none.memory.activations) / GiB, row.none,
                0.02 * row.none);
    EXPECT_NEAR(double(less.memory.activations) / GiB, row.selective,
                0.03 * row.selective);
  }
  Simulation whole = simulate(a100, job(gpt22, "tp=8"));
  EXPECT_NEAR(double(whole.memory.total() - whole.memory.activations) / GiB,
              45.56, 0.03 * 45.56);
}

TEST(Simulator, PartsAddUpToTheStep) {
  for (auto [extra, mesh] : {std::pair{"", "tp=8"},
                             {"", "pp=4,tp=4"},
                             {",interleave=2", "pp=4,tp=2"},
                             {",recompute=full", "dp=4,tp=2"},
                             {",overlap-gradients", "pp=2,dp=4"}}) {
    Simulation s =
        simulate(cluster("a100-hdr8"), job(std::string(gpt22) + extra, mesh));
    EXPECT_EQ(s.step, s.compute + s.tensor + s.bubble + s.imbalance + s.sends +
                          s.gradients + s.update);
    EXPECT_GT(s.efficiency, 0);
    EXPECT_LT(s.efficiency, 1);
  }
}

TEST(Simulator, OneRankIsFullyEfficient) {
  Simulation s = simulate(cluster("a100-hdr8"), job(gpt22, "tp=1"));
  EXPECT_EQ(s.efficiency, 1);
  EXPECT_EQ(s.tensor + s.bubble + s.sends + s.gradients + s.imbalance, 0);
}

/// Narayanan et al. 2021: the bubble is (p - 1) / m of the work, divided by the
/// number of parts.
TEST(Simulator, BubbleShrinksWithMicroBatchesAndInterleaving) {
  Cluster a100 = cluster("a100-hdr8");
  std::string text = "layers=48,hidden=6144,heads=64,sequence=2048,"
                     "vocabulary=51200,batch=";
  auto at = [&](const char *rest) {
    return simulate(a100, job(text + rest, "pp=4,tp=8"));
  };
  Simulation eight = at("8"), sixteen = at("16"), parts = at("8,interleave=3");
  EXPECT_EQ(eight.bubble, 3 * (eight.compute + eight.tensor) / 8);
  EXPECT_EQ(sixteen.bubble, eight.bubble);
  EXPECT_EQ(parts.bubble, eight.bubble / 3);
  EXPECT_LT(parts.step, eight.step);
}

TEST(Simulator, TimeGrowsWithEverySize) {
  Cluster a100 = cluster("a100-hdr8");
  auto time = [&](const std::string &text) {
    return simulate(a100, job(text, "pp=2,dp=2,tp=4")).step;
  };
  Time base = time("layers=24,hidden=2048,heads=16,sequence=1024,"
                   "vocabulary=51200,batch=16,micro-batch=2");
  for (const char *more : {"layers=26,hidden=2048,heads=16,sequence=1024,"
                           "vocabulary=51200,batch=16,micro-batch=2",
                           "layers=24,hidden=4096,heads=16,sequence=1024,"
                           "vocabulary=51200,batch=16,micro-batch=2",
                           "layers=24,hidden=2048,heads=16,sequence=2048,"
                           "vocabulary=51200,batch=16,micro-batch=2",
                           "layers=24,hidden=2048,heads=16,sequence=1024,"
                           "vocabulary=102400,batch=16,micro-batch=2",
                           "layers=24,hidden=2048,heads=16,sequence=1024,"
                           "vocabulary=51200,batch=32,micro-batch=2"})
    EXPECT_GT(time(more), base) << more;
}

TEST(Simulator, ATensorGroupOverTwoHostsIsSlower) {
  Cluster a100 = cluster("a100-hdr8");
  Time inside = simulate(a100, job(gpt22, "tp=8")).tensor;
  EXPECT_GT(simulate(a100, job(gpt22, "tp=16")).tensor, inside + inside / 2);
}

TEST(Simulator, ATrillionParametersOnThousandsOfRanks) {
  Simulation s = simulate(
      cluster("h100"),
      job("layers=128,hidden=25600,heads=160,sequence=2048,vocabulary=51200,"
          "batch=4096,recompute=full,distributed-optimizer",
          "pp=64,dp=8,tp=8"));
  EXPECT_GT(s.step, 0);
  EXPECT_GT(s.hardwareFlopsPerRank, s.flopsPerRank);
  EXPECT_LT(s.hardwareFlopsPerRank, 989e12);
}

} // namespace
