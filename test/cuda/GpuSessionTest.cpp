// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuSessionTest.cpp - programs of device cuda -----------------------===//
#include "test/cuda/GpuFixture.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

using namespace mtp;
using namespace mtp::test;
using Kind = Instruction::Kind;
using Space = BufferRef::Space;

namespace {

TensorMap inputX(int64_t rows, float first) {
  TensorMap inputs;
  HostTensor x(DType::F32, {rows});
  for (int64_t i = 0; i < rows; ++i)
    x.as<float>()[i] = first + static_cast<float>(i);
  inputs.emplace("x", std::move(x));
  return inputs;
}

TEST_F(GpuTest, ComputesWhatTheCpuComputesInEveryStep) {
  for (const char *comm : {"nccl", "loopback"})
    for (int64_t rows : {1, 7, 33})
      for (int64_t ranks : {1, 2, 3, 8})
        for (bool poison : {false, true}) {
          software::Settings settings;
          settings.seed = static_cast<uint64_t>(rows * 100 + ranks);
          reset(settings);
          SessionOptions options;
          options.poison = poison;
          auto gpu =
              start(forGpu(multiplyAndGather(rows, ranks)), comm, options);
          auto cpu = start(multiplyAndGather(rows, ranks), "threads", options);
          ASSERT_TRUE(gpu && cpu);
          // One step as it is, the others replayed with inputs that change.
          for (int repeat = 0; repeat < 4; ++repeat) {
            TensorMap a, b;
            Error error;
            TensorMap inputs = inputX(rows, static_cast<float>(repeat));
            ASSERT_TRUE(gpu->run(inputs, a, error)) << error.message;
            ASSERT_TRUE(cpu->run(inputs, b, error)) << error.message;
            for (int64_t i = 0; i < rows; ++i)
              ASSERT_EQ(a.at("y").as<float>()[i], b.at("y").as<float>()[i]);
            ASSERT_EQ(gpu->counters().size(), cpu->counters().size());
            EXPECT_EQ(gpu->counters()[0].count, 1);
            EXPECT_EQ(gpu->counters()[0].bytes, cpu->counters()[0].bytes);
            EXPECT_EQ(gpu->counters()[0].wireBytes,
                      cpu->counters()[0].wireBytes);
          }
          EXPECT_EQ(gpu->arenaBytesPerRank(), cpu->arenaBytesPerRank());
          gpu.reset();
          expectClean();
        }
}

/// acc: an updated parameter of three floats; each step adds one to it four
/// times, in a loop, and y = exp(x) + offset + 100 step + seed.
Artifact accumulating(int64_t ranks) {
  Artifact a = multiplyAndGather(3 * ranks, ranks);
  Parameter &acc = a.parameters[0];
  acc.updated = acc.trainable = true;
  Entry &e = a.entries[0];
  e.outputs = {{"y", cut(DType::F32, {3 * ranks}, 0)}};
  a.collectiveSites.clear();
  Instruction exponent{
      Kind::Kernel,
      Exponent,
      {at(Space::Input, 0, 0, 12), at(Space::Output, 0, 0, 12)},
      3,
      1,
      "exp"};
  Instruction begin{Kind::LoopBegin, 0, {}, 4, 1, "loop"};
  Instruction add{Kind::Kernel, AddOne, {at(Space::Parameter, 0, 0, 12)}, 3, 1,
                  "add"};
  Instruction end{Kind::LoopEnd, 0, {}, 1, 1, "loop"};
  e.program = {exponent, begin, add, end};
  return forGpu(a);
}

TEST_F(GpuTest, StateStepAndSeedChangeFromReplayToReplay) {
  for (const char *comm : {"nccl", "loopback"}) {
    reset({});
    SessionOptions options;
    options.seed = 7;
    auto session = start(accumulating(2), comm, options);
    ASSERT_TRUE(session);
    for (int step = 0; step < 5; ++step) {
      TensorMap outputs, state;
      Error error;
      ASSERT_TRUE(session->run(inputX(6, 0), outputs, error)) << error.message;
      const float *y = outputs.at("y").as<float>();
      for (int i = 0; i < 6; ++i)
        EXPECT_FLOAT_EQ(y[i], std::exp(static_cast<float>(i)) +
                                  static_cast<float>(i / 3 * 3 + 100 * step) +
                                  7);
      ASSERT_TRUE(session->readParameters(state, error)) << error.message;
      for (int i = 0; i < 6; ++i)
        EXPECT_EQ(state.at("w").as<float>()[i],
                  static_cast<float>(i + 1 + 4 * (step + 1)));
    }
    TensorMap state;
    Error error;
    state.emplace("w", HostTensor(DType::F32, {6}));
    ASSERT_TRUE(session->writeParameters(state, error)) << error.message;
    TensorMap outputs;
    ASSERT_TRUE(session->run(inputX(6, 0), outputs, error)) << error.message;
    ASSERT_TRUE(session->readParameters(state, error)) << error.message;
    EXPECT_EQ(state.at("w").as<float>()[5], 4);
    session.reset();
    expectClean();
  }
}

TEST_F(GpuTest, AFaultOfAKernelNamesItself) {
  for (int badStep : {0, 2}) {
    reset({});
    Artifact a = multiplyAndGather(4, 2);
    a.axes.axes = {{"tp", 2}};
    Entry &e = a.entries[0];
    Input ids;
    ids.name = "x";
    ids.layout = whole(DType::I64, {3});
    e.inputs = {ids};
    e.outputs = {{"y", whole(DType::F32, {3})}};
    a.collectiveSites.clear();
    a.parameters[0].layout = whole(DType::F32, {4});
    e.program = {{Kind::Kernel,
                  LookUp,
                  {at(Space::Input, 0, 0, 24), at(Space::Parameter, 0, 0, 16),
                   at(Space::Output, 0, 0, 12)},
                  3,
                  1,
                  "look up"}};
    auto session = start(forGpu(a), "nccl");
    ASSERT_TRUE(session);
    for (int step = 0; step <= badStep; ++step) {
      TensorMap inputs, outputs;
      HostTensor x(DType::I64, {3});
      x.as<int64_t>()[1] = step == badStep ? 4 : 3;
      inputs.emplace("x", std::move(x));
      Error error;
      bool ok = session->run(inputs, outputs, error);
      EXPECT_EQ(ok, step != badStep);
      if (step == badStep) {
        EXPECT_EQ(error.exitCode, 1);
        EXPECT_EQ(error.message, "an id lies outside of the table");
      } else {
        EXPECT_EQ(outputs.at("y").as<float>()[1], 4);
      }
    }
    session.reset();
    expectClean();
  }
}

/// gather(x * w) is under way while y2 = exp(x) is computed.
Artifact overlapping(int64_t ranks) {
  Artifact a = multiplyAndGather(4 * ranks, ranks);
  Entry &e = a.entries[0];
  e.outputs.push_back({"z", cut(DType::F32, {4 * ranks}, 0)});
  Instruction exponent{
      Kind::Kernel,
      Exponent,
      {at(Space::Input, 0, 0, 16), at(Space::Output, 1, 0, 16)},
      4,
      1,
      "exp"};
  e.program.insert(e.program.end() - 1, exponent);
  return forGpu(a);
}

TEST_F(GpuTest, CollectivesRunBesideTheComputationBetweenStartAndDone) {
  for (const char *comm : {"nccl", "loopback"}) {
    reset({});
    auto session = start(overlapping(2), comm);
    ASSERT_TRUE(session);
    for (int step = 0; step < 3; ++step) {
      TensorMap outputs;
      Error error;
      ASSERT_TRUE(session->run(inputX(8, 1), outputs, error)) << error.message;
      EXPECT_EQ(outputs.at("y").as<float>()[7], 64);
    }
    session.reset();
    expectClean();
    // In the graphs no kernel "exponent" waits for the gather of its rank or
    // holds it up.
    software::Record taken = record();
    size_t kernels = 0;
    std::vector<std::set<uint64_t>> before(taken.work.size() + 1);
    auto moves = [](const software::Work &work) {
      return work.what.rfind("ncclAllGather", 0) == 0 || work.what == "copy";
    };
    for (size_t i = 0; i < taken.work.size(); ++i) {
      const software::Work &work = taken.work[i];
      for (uint64_t other : work.after) {
        before[i + 1].insert(other);
        before[i + 1].insert(before[other].begin(), before[other].end());
      }
      if (!work.graph)
        continue;
      if (work.what == "kernel exponent") {
        ++kernels;
        for (uint64_t other : before[i + 1])
          EXPECT_FALSE(taken.work[other - 1].graph &&
                       moves(taken.work[other - 1]));
      } else if (moves(work)) {
        for (uint64_t other : before[i + 1])
          EXPECT_NE(taken.work[other - 1].what, "kernel exponent");
      }
    }
    EXPECT_EQ(kernels, 2u);
  }
}

TEST_F(GpuTest, AMeshThatIsLargerThanTheMachineNamesBoth) {
  software::Settings settings;
  settings.devices = 2;
  reset(settings);
  SessionOptions options;
  options.comm = "nccl";
  Error error;
  EXPECT_FALSE(
      Session::create(forGpu(multiplyAndGather(8, 4)), options, error));
  EXPECT_EQ(error.exitCode, 6);
  EXPECT_NE(error.message.find("4 ranks and here are 2 CUDA devices"),
            std::string::npos)
      << error.message;
  options.comm = "loopback";
  EXPECT_TRUE(Session::create(forGpu(multiplyAndGather(8, 4)), options, error));
}

TEST_F(GpuTest, BlockingLaunchesAreRefusedForSeveralRanks) {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  Error error;
  EXPECT_FALSE(Session::create(forGpu(multiplyAndGather(8, 2)), {}, error));
  EXPECT_EQ(error.exitCode, 2);
  EXPECT_NE(error.message.find("CUDA_LAUNCH_BLOCKING=1"), std::string::npos);
  EXPECT_TRUE(Session::create(forGpu(multiplyAndGather(8, 1)), {}, error));
  unsetenv("CUDA_LAUNCH_BLOCKING");
}

TEST_F(GpuTest, RefusesWhatTheDeviceCannotHoldOrRun) {
  Artifact large = forGpu(multiplyAndGather(8, 2));
  large.entries[0].arenaBytes = int64_t(1) << 40;
  SessionOptions options;
  Error error;
  EXPECT_FALSE(Session::create(large, options, error));
  EXPECT_EQ(error.exitCode, 1);
  EXPECT_EQ(error.kind, "memory");
  Artifact newer = forGpu(multiplyAndGather(8, 2));
  newer.gpu.arch = "sm_100";
  EXPECT_FALSE(Session::create(newer, options, error));
  EXPECT_EQ(error.exitCode, 6);
  EXPECT_NE(error.message.find("compiled for sm_100"), std::string::npos);
  EXPECT_NE(error.message.find("--gpu-arch sm_90"), std::string::npos);
  options.comm = "threads";
  EXPECT_FALSE(
      Session::create(forGpu(multiplyAndGather(8, 2)), options, error));
  EXPECT_EQ(error.exitCode, 2);
  options.comm = "nccl";
  EXPECT_FALSE(Session::create(multiplyAndGather(8, 2), options, error));
  EXPECT_EQ(error.exitCode, 2);
  expectClean();
}

TEST_F(GpuTest, BadDeviceCodeIsRefused) {
  struct Case {
    const char *part;
    std::function<void(Artifact &)> damage;
  };
  const Case cases[] = {
      {"not of the form", [](Artifact &a) { a.gpu.arch = "90"; }},
      {"names", [](Artifact &a) { a.gpu.kernels.pop_back(); }},
      {"is not in the PTX",
       [](Artifact &a) { a.gpu.kernels[0].symbol = "other"; }},
      {"a grid of 0", [](Artifact &a) { a.gpu.kernels[0].grid[1] = 0; }},
      {"2048 threads",
       [](Artifact &a) { a.gpu.kernels[0].block = {1024, 2, 1}; }},
      {"shared memory",
       [](Artifact &a) { a.gpu.kernels[0].sharedBytes = 1 << 20; }},
      {"it takes 4",
       [](Artifact &a) { a.entries[0].program[0].buffers.pop_back(); }},
      {"more results than operands",
       [](Artifact &a) { a.entries[0].program[0].results = 4; }},
      {"writes a parameter",
       [](Artifact &a) { a.entries[0].program[0].results = 2; }},
      {"are kernels on a GPU",
       [](Artifact &a) {
         LibrarySite site;
         site.kind = "topk";
         site.attributes = nlohmann::json::object();
         site.results = 0;
         a.librarySites = {site};
       }},
      {"GPU code for device 'cpu'", [](Artifact &a) { a.device = "cpu"; }},
  };
  std::string error;
  Artifact fine = forGpu(multiplyAndGather(4, 2)), read;
  EXPECT_TRUE(Artifact::parse(fine.serialize(), read, error)) << error;
  EXPECT_EQ(read.gpu.kernels[0].grid[0], 2);
  EXPECT_EQ(read.gpu.arch, "sm_90");
  EXPECT_EQ(read.entries[0].program[0].results, 1);
  for (const Case &c : cases) {
    Artifact a = fine;
    c.damage(a);
    EXPECT_FALSE(a.verify(error)) << c.part;
    EXPECT_NE(error.find(c.part), std::string::npos) << error;
  }
}

} // namespace
