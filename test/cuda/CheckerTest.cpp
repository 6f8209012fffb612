// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CheckerTest.cpp - planted faults are found and named ---------------===//
#include "test/cuda/GpuFixture.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>

using namespace mtp;
using namespace mtp::test;
using Kind = Instruction::Kind;
using Space = BufferRef::Space;

namespace {

/// Two sums of different lengths after a product, then a kernel that reads
/// them.
Artifact twoSums() {
  Artifact a = multiplyAndGather(8, 2);
  a.collectiveSites.clear();
  for (int64_t elements : {2, 4}) {
    CollectiveSite site;
    site.kind = CollectiveSite::Kind::AllReduce;
    site.op = "all_reduce";
    site.axes = {0};
    site.axisName = "tp";
    site.inShape = site.outShape = {elements};
    site.node = "sum" + std::to_string(elements);
    a.collectiveSites.push_back(site);
  }
  Entry &e = a.entries[0];
  e.outputs = {{"y", cut(DType::F32, {8}, 0)}};
  e.arenaBytes = 64;
  Instruction product = e.program[0], second = product;
  product.buffers[2] = arena(0, 16);
  second.buffers[2] = arena(48, 16);
  Instruction start0{Kind::Start, 0, {arena(0, 8), arena(16, 8)},
                     1,           1, "sum of two"};
  Instruction start1{Kind::Start, 1, {arena(48, 16), arena(32, 16)},
                     1,           1, "sum of four"};
  Instruction done0{Kind::Done, 0, {}, 1, 1, "sum of two"};
  Instruction done1{Kind::Done, 1, {}, 1, 1, "sum of four"};
  Instruction last = product;
  last.buffers = {arena(32, 16), arena(16, 16), at(Space::Output, 0, 0, 16)};
  e.program = {product, start0, second, start1, done0, done1, last};
  return forGpu(a);
}

/// A sum in two parts, each in its place, the second one's operand computed
/// while the first one is under way.
Artifact twoParts() {
  Artifact a = twoSums();
  for (CollectiveSite &site : a.collectiveSites) {
    site.inShape = site.outShape = {4};
    site.node = "down";
  }
  a.collectiveSites[1].node = "down, part 2 of 2";
  a.collectiveSites[1].partOf = 0;
  std::vector<Instruction> &program = a.entries[0].program;
  program[0].buffers[2] = arena(0, 16);
  program[1].buffers = {arena(0, 16), arena(0, 16)};
  program[2].buffers[2] = arena(16, 16);
  program[3].buffers = {arena(16, 16), arena(16, 16)};
  program[6].buffers = {arena(0, 16), arena(16, 16),
                        at(Space::Output, 0, 0, 16)};
  return a;
}

class PlantedTest : public GpuTest {
protected:
  /// Runs the program with a fault planted; what the checker finds.
  std::vector<std::string> findings(const std::string &plant, int place,
                                    const std::string &comm,
                                    Artifact artifact = twoSums()) {
    software::Settings settings;
    std::strcpy(settings.plant, plant.c_str());
    settings.plantAt = place;
    reset(settings);
    SessionOptions options;
    // Long enough for a busy machine; a step that stalls lasts that long.
    options.collectiveTimeout = plant.empty() ? 60 : 2;
    auto session = start(std::move(artifact), comm, options);
    TensorMap inputs;
    inputs.emplace("x", HostTensor(DType::F32, {8}));
    for (int step = 0; step < 3; ++step) {
      TensorMap outputs;
      Error error;
      if (!session->run(inputs, outputs, error))
        break; // the fault may well be seen
    }
    session.reset();
    return software::checkRecord(record());
  }
  static bool has(const std::vector<std::string> &all,
                  const std::string &part) {
    for (const std::string &finding : all)
      if (finding.find(part) != std::string::npos)
        return true;
    return false;
  }
};

TEST_F(PlantedTest, NothingIsFoundWithoutAFault) {
  for (const char *comm : {"nccl", "loopback"})
    for (const std::string &finding : findings("", 0, comm))
      ADD_FAILURE() << comm << ": " << finding;
}

TEST_F(PlantedTest, EveryMissingEventIsNamed) {
  // A rank of NCCL waits five times. Its comm stream for the first input:
  // without that wait the sum isn't captured, and so it isn't launched with the
  // others.
  EXPECT_TRUE(has(findings("drop-wait", 0, "nccl"), "collectives: "));
  // For the second input.
  std::vector<std::string> found = findings("drop-wait", 1, "nccl");
  EXPECT_TRUE(has(found, "order: 'kernel multiply'"));
  EXPECT_TRUE(has(found, "and 'ncclAllReduce f32 0 4'"));
  // The compute stream for the first result, which the second one implies.
  EXPECT_FALSE(has(findings("drop-wait", 2, "nccl"), "order: "));
  found = findings("drop-wait", 3, "nccl");
  EXPECT_TRUE(has(found, "order: 'ncclAllReduce f32 0 4'"));
  EXPECT_TRUE(has(found, "and 'kernel multiply'"));
  // The comm stream joins the end, or the driver doesn't end the capture.
  EXPECT_TRUE(has(findings("drop-wait", 4, "nccl"), "step: "));
}

TEST_F(PlantedTest, EveryMissingEventOfPartsIsNamed) {
  for (const char *comm : {"nccl", "loopback"})
    for (const std::string &finding : findings("", 0, comm, twoParts()))
      ADD_FAILURE() << comm << ": " << finding;
  EXPECT_TRUE(
      has(findings("drop-wait", 0, "nccl", twoParts()), "collectives: "));
  std::vector<std::string> found = findings("drop-wait", 1, "nccl", twoParts());
  EXPECT_TRUE(has(found, "order: 'kernel multiply'"));
  EXPECT_TRUE(has(found, "and 'ncclAllReduce f32 0 4'"));
  found = findings("drop-wait", 3, "nccl", twoParts());
  EXPECT_TRUE(has(found, "order: 'ncclAllReduce f32 0 4'"));
  EXPECT_TRUE(has(found, "and 'kernel multiply'"));
}

TEST_F(PlantedTest, PartsCountAsOneCollective) {
  auto session = start(twoParts(), "nccl");
  ASSERT_TRUE(session);
  TensorMap inputs, outputs;
  inputs.emplace("x", HostTensor(DType::F32, {8}));
  Error error;
  ASSERT_TRUE(session->run(inputs, outputs, error)) << error.message;
  auto counts = session->counters();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].count, 1);
  EXPECT_EQ(counts[1].count, 0);
  EXPECT_EQ(counts[0].bytes + counts[1].bytes, 32);
}

TEST_F(PlantedTest, EveryMissingEventBetweenRanksOfOneDeviceIsNamed) {
  int named = 0, place = 0;
  // After the fork each rank waits for itself and the other one, for either
  // sum; then for its results, and for the other to have read its input.
  for (; place < 19; ++place)
    named += !findings("drop-wait", place, "loopback").empty();
  EXPECT_GE(named, 12);
}

TEST_F(PlantedTest, AnAllocationInTheStepIsNamed) {
  for (const char *comm : {"nccl", "loopback"}) {
    std::vector<std::string> found = findings("allocate", 1, comm);
    EXPECT_TRUE(has(found, "step: an allocation while it is captured: "
                           "cuMemAlloc_v2"));
  }
}

TEST_F(PlantedTest, AFreedBufferIsNamed) {
  for (const char *comm : {"nccl", "loopback"}) {
    std::vector<std::string> found = findings("free", 1, comm);
    EXPECT_TRUE(has(found, "memory: 'graph'"));
    EXPECT_TRUE(has(found, "handles: given back twice"));
  }
}

TEST_F(PlantedTest, ASwappedCollectiveIsNamed) {
  std::vector<std::string> found = findings("swap", 0, "nccl");
  EXPECT_TRUE(has(found, "collectives: number 2 is ncclAllReduce f32 0 "));
}

TEST_F(PlantedTest, AReplayThatStallsEndsWithTheCollectiveAndTheRank) {
  software::Settings settings;
  std::strcpy(settings.plant, "swap");
  settings.plantAt = 1; // the last one: it is lost
  reset(settings);
  SessionOptions options;
  options.collectiveTimeout = 2;
  auto session = start(twoSums(), "nccl", options);
  TensorMap inputs, outputs;
  inputs.emplace("x", HostTensor(DType::F32, {8}));
  Error error;
  ASSERT_TRUE(session->run(inputs, outputs, error)) << error.message;
  auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(session->run(inputs, outputs, error));
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 2);
  EXPECT_EQ(error.exitCode, 4);
  EXPECT_NE(error.message.find("rank 0 finished 1 of the 2 collectives of its "
                               "step, and then all_reduce of 'sum4' over tp "
                               "made no progress"),
            std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find("rank 1 is in "), std::string::npos);
  session.reset();
}

/// Records made by hand, for what no program of ours can be made to do.
TEST(Checker, HandlesThatEndInTheWrongOrderAreNamed) {
  using software::Call;
  using software::Record;
  Record record;
  auto call = [&](const char *name, uint64_t handle, uint64_t stream = 0) {
    Call c;
    c.name = name;
    c.handle = handle;
    c.stream = stream;
    c.context = 1;
    record.calls.push_back(c);
    return record.calls.size() - 1;
  };
  call("cuDevicePrimaryCtxRetain", 1);
  call("cuStreamCreate", 2);
  call("ncclCommInitRankConfig", 3);
  software::Collective collective;
  collective.id = "a";
  collective.call = call("ncclAllReduce", 3, 2);
  record.collectives.push_back(collective);
  collective.graph = 4;
  collective.call = call("ncclAllReduce", 3, 2);
  record.collectives.push_back(collective);
  call("cuGraphInstantiateWithFlags", 5);
  software::Work launch;
  launch.what = "graph";
  launch.launched = 4;
  launch.call = call("cuGraphLaunch", 5, 2);
  record.work.push_back(launch);
  Record right = record, early = record, streamFirst = record,
         deviceFirst = record, twice = record;
  auto end = [](Record &r, const char *name, uint64_t handle) {
    Call c;
    c.name = name;
    c.handle = handle;
    r.calls.push_back(c);
  };
  const char *graph = "cuGraphExecDestroy", *comm = "ncclCommDestroy",
             *stream = "cuStreamDestroy_v2",
             *device = "cuDevicePrimaryCtxRelease_v2";
  auto finish = [&](Record &r,
                    std::vector<std::pair<const char *, int>> order) {
    for (auto [name, handle] : order)
      end(r, name, static_cast<uint64_t>(handle));
    std::vector<std::string> findings;
    software::checkHandles(r, true, findings);
    return findings;
  };
  EXPECT_TRUE(
      finish(right, {{graph, 5}, {comm, 3}, {stream, 2}, {device, 0}}).empty());
  auto first = [](const std::vector<std::string> &findings) {
    return findings.empty() ? "" : findings[0];
  };
  EXPECT_NE(
      first(finish(early, {{comm, 3}, {graph, 5}, {stream, 2}, {device, 0}}))
          .find("before the graph that uses it"),
      std::string::npos);
  EXPECT_NE(first(finish(streamFirst,
                         {{graph, 5}, {stream, 2}, {comm, 3}, {device, 0}}))
                .find("a stream ends before a communicator"),
            std::string::npos);
  EXPECT_NE(first(finish(deviceFirst,
                         {{graph, 5}, {comm, 3}, {device, 0}, {stream, 2}}))
                .find("its device is given back first"),
            std::string::npos);
  EXPECT_NE(
      first(
          finish(twice,
                 {{graph, 5}, {comm, 3}, {comm, 3}, {stream, 2}, {device, 0}}))
          .find("given back twice"),
      std::string::npos);
  EXPECT_NE(first(finish(record, {{graph, 5}, {comm, 3}, {stream, 2}}))
                .find("never given back"),
            std::string::npos);
}

TEST(Checker, WaitingAndLoadingInAStepAreNamed) {
  software::Record record;
  for (const char *name : {"cuStreamQuery", "lazy load", "cuMemAlloc_v2"}) {
    software::Call call;
    call.name = name;
    call.capture = 7;
    record.calls.push_back(call);
  }
  std::vector<std::string> findings;
  software::checkStep(record, findings);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_NE(findings[0].find("synchronisation"), std::string::npos);
  EXPECT_NE(findings[1].find("loaded"), std::string::npos);
  EXPECT_NE(findings[2].find("allocation"), std::string::npos);
}

} // namespace
