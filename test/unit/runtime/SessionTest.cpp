// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/session/Session.h"
#include "runtime/loader/WeightFiles.h"
#include "runtime/support/Sha256.h"
#include "test/unit/runtime/TestArtifact.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

using namespace mtp;
using namespace mtp::test;
using Kind = Instruction::Kind;
using Space = BufferRef::Space;

namespace {

TensorMap inputX(int64_t rows) {
  TensorMap inputs;
  HostTensor x(DType::F32, {rows});
  for (int64_t i = 0; i < rows; ++i)
    x.as<float>()[i] = static_cast<float>(i) - 1.5f;
  inputs.emplace("x", std::move(x));
  return inputs;
}

std::unique_ptr<Session> start(Artifact artifact, SessionOptions options = {}) {
  Error error;
  auto session = Session::create(std::move(artifact), options, error);
  EXPECT_TRUE(session) << error.message;
  return session;
}

Error failure(Artifact artifact, SessionOptions options = {}) {
  Error error;
  EXPECT_FALSE(Session::create(std::move(artifact), options, error));
  EXPECT_TRUE(error);
  return error;
}

TEST(Session, ComputesTheSameOnAnyNumberOfRanks) {
  for (int64_t rows : {1, 4, 7, 5000})
    for (int64_t ranks : {1, 2, 3, 4, 8})
      for (bool poison : {false, true})
        for (int threads : {1, 3}) {
          SessionOptions options;
          options.poison = poison;
          options.threadsPerRank = threads;
          auto session = start(multiplyAndGather(rows, ranks), options);
          ASSERT_TRUE(session);
          TensorMap outputs;
          Error error;
          for (int repeat = 0; repeat < 2; ++repeat) {
            ASSERT_TRUE(session->run(inputX(rows), outputs, error))
                << error.message;
            const float *y = outputs.at("y").as<float>();
            for (int64_t i = 0; i < rows; ++i)
              ASSERT_EQ(y[i], (static_cast<float>(i) - 1.5f) *
                                  static_cast<float>(i + 1));
          }
          int64_t local = (rows + ranks - 1) / ranks * 4;
          EXPECT_EQ(session->arenaBytesPerRank(), local);
          EXPECT_EQ(session->parameterBytesPerRank(), local);
          ASSERT_EQ(session->counters().size(), 1u);
          EXPECT_EQ(session->counters()[0].count, 1);
          EXPECT_EQ(session->counters()[0].bytes, local);
          EXPECT_EQ(session->counters()[0].wireBytes, local * (ranks - 1));
        }
}

TEST(Session, RunsFromSerializedBytes) {
  std::string error;
  Artifact artifact;
  ASSERT_TRUE(
      Artifact::parse(multiplyAndGather(5, 2).serialize(), artifact, error));
  auto session = start(std::move(artifact));
  TensorMap outputs;
  Error failure;
  ASSERT_TRUE(session->run(inputX(5), outputs, failure)) << failure.message;
}

TEST(Session, LoopsMathAndRankValues) {
  Artifact a = multiplyAndGather(6, 2);
  Entry &e = a.entries[0];
  BufferRef product = e.program[0].buffers[2];
  Instruction exponent{
      Kind::Kernel, Exponent, {e.program[0].buffers[0], product}, 3, 1, "exp"};
  Instruction add{Kind::Kernel, AddOne, {product}, 3, 1, "add"};
  Instruction begin{Kind::LoopBegin, 0, {}, 4, 1, "loop"};
  Instruction end{Kind::LoopEnd, 0, {}, 1, 1, "loop"};
  Instruction never = begin;
  never.count = 0;
  e.program = {exponent, begin, add, begin, add,          end,
               end,      never, add, end,   e.program[1], e.program[2]};
  auto session = start(a);
  TensorMap outputs;
  Error error;
  ASSERT_TRUE(session->run(inputX(6), outputs, error)) << error.message;
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_FLOAT_EQ(outputs.at("y").as<float>()[i],
                    std::exp(static_cast<float>(i) - 1.5f) + (i < 3 ? 0 : 3) +
                        20);
}

TEST(Session, ReportsBadInputs) {
  auto session = start(multiplyAndGather(4, 2));
  auto message = [&](TensorMap inputs) {
    TensorMap outputs;
    Error error;
    EXPECT_FALSE(session->run(inputs, outputs, error));
    EXPECT_EQ(error.exitCode, 1);
    EXPECT_TRUE(outputs.empty());
    return error.message;
  };
  auto with = [](const char *key, HostTensor tensor) {
    TensorMap inputs;
    inputs.emplace(key, std::move(tensor));
    return inputs;
  };
  EXPECT_EQ(message({}), "input 'x' [rows = 4] of type f32 is missing");
  EXPECT_EQ(message(with("z", HostTensor(DType::F32, {4}))),
            "the model has no input 'z'; it has: 'x'");
  EXPECT_EQ(message(with("x", HostTensor(DType::F64, {4}))),
            "input 'x' has type f64; the model takes f32");
  EXPECT_EQ(message(with("x", HostTensor(DType::F32, {4, 1}))),
            "input 'x' has 2 dims [4, 1]; the model takes 1: [rows = 4]");
  EXPECT_EQ(message(with("x", HostTensor(DType::F32, {9}))),
            "input 'x' has dims [9]; the program was compiled for [rows = 4]");
  // The session still works.
  TensorMap outputs;
  Error error;
  EXPECT_TRUE(session->run(inputX(4), outputs, error));
}

/// index [3] i64 -> table[index].
Artifact lookUpArtifact() {
  Artifact a = multiplyAndGather(4, 1);
  Entry &e = a.entries[0];
  e.inputs[0].name = "index";
  e.inputs[0].layout = whole(DType::I64, {3});
  e.outputs[0].layout = whole(DType::F32, {3});
  e.program = {{Kind::Kernel,
                LookUp,
                {at(Space::Input, 0, 0, 24), at(Space::Parameter, 0, 0, 16),
                 at(Space::Output, 0, 0, 12)},
                3,
                1,
                "look_up"}};
  return a;
}

TensorMap indices(std::vector<int64_t> values) {
  TensorMap inputs;
  HostTensor index(DType::I64, {3});
  std::copy(values.begin(), values.end(), index.as<int64_t>());
  inputs.emplace("index", std::move(index));
  return inputs;
}

TEST(Session, ChecksRangesOfInputs) {
  Artifact a = lookUpArtifact();
  Input &index = a.entries[0].inputs[0];
  index.lo = 0;
  index.hi = 3;
  index.rangeReason = "rows of w (4)";
  auto session = start(a);
  TensorMap outputs;
  Error error;
  ASSERT_TRUE(session->run(indices({3, 0, 1}), outputs, error))
      << error.message;
  EXPECT_EQ(outputs.at("y").as<float>()[0], 4);
  EXPECT_FALSE(session->run(indices({0, 9, 1}), outputs, error));
  EXPECT_EQ(error.message,
            "input 'index' has 9 at [1]; valid are 0 to 3: rows of w (4)");
}

TEST(Session, ReportsFaultsOfKernels) {
  auto session = start(lookUpArtifact());
  TensorMap outputs;
  Error error;
  EXPECT_FALSE(session->run(indices({0, -5, 1}), outputs, error));
  EXPECT_EQ(error.exitCode, 1);
  EXPECT_EQ(error.message, "an id lies outside of the table");
}

/// Rank 1 never returns from a kernel.
Artifact hangingArtifact() {
  Artifact a = multiplyAndGather(4, 2);
  auto &program = a.entries[0].program;
  program.insert(
      program.begin(),
      {Kind::Kernel, Hang, {at(Space::RankValue, 1, 0, 8)}, 1, 1, "stuck"});
  return a;
}

TEST(SessionDeathTest, ARankThatHangsIsNamedAndLeftBehind) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        SessionOptions options;
        options.collectiveTimeout = 0.2;
        options.threadsPerRank = 1;
        Error error;
        auto session = Session::create(hangingArtifact(), options, error);
        TensorMap outputs;
        session->run(inputX(4), outputs, error);
        fprintf(stderr, "%s\n", error.message.c_str());
        _exit(error.exitCode);
      },
      testing::ExitedWithCode(4), "missing: rank 1 .last in kernel 'stuck'");
}

TEST(SessionDeathTest, ASignalEndsAllRanks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        installSignalHandlers();
        Error error;
        auto session = Session::create(hangingArtifact(), {}, error);
        std::thread signal([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          raise(SIGTERM);
        });
        TensorMap outputs;
        session->run(inputX(4), outputs, error);
        signal.join();
        _exit(error.exitCode);
      },
      testing::ExitedWithCode(143), "");
}

TEST(Session, RefusesWhatThisBuildLacks) {
  SessionOptions options;
  options.comm = "mpi";
  EXPECT_EQ(failure(multiplyAndGather(4, 2), options).exitCode, 6);
  options.comm = "pigeons";
  EXPECT_EQ(failure(multiplyAndGather(4, 2), options).exitCode, 2);
  Artifact a = multiplyAndGather(4, 2);
  a.device = "abacus";
  EXPECT_EQ(failure(a).exitCode, 6);
}

TEST(Session, RefusesWhatDoesNotFitIntoMemory) {
  Artifact a = multiplyAndGather(4, 2);
  a.entries[0].arenaBytes = int64_t(1) << 50;
  Error error = failure(a);
  EXPECT_EQ(error.exitCode, 1);
  EXPECT_EQ(error.kind, "memory");
  EXPECT_NE(error.message.find(std::to_string((int64_t(1) << 51) + 64)),
            std::string::npos)
      << error.message;
}

class WeightsTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "mtp-weights-XXXXXX")
            .string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory = pattern;
    artifact = multiplyAndGather(4, 2);
    write(std::string("ab") + artifact.data);
    Source &source = artifact.parameters[0].source;
    source.kind = Source::Kind::File;
    source.file = directory + "/w.bin";
    source.offset = 2; // no file aligns its tensors
    artifact.data.clear();
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  void write(const std::string &bytes) {
    std::ofstream(directory + "/w.bin", std::ios::binary) << bytes;
  }
  std::string directory;
  Artifact artifact;
};

TEST_F(WeightsTest, AreMappedFromTheirFile) {
  auto session = start(artifact);
  TensorMap outputs;
  Error error;
  ASSERT_TRUE(session->run(inputX(4), outputs, error)) << error.message;
  EXPECT_EQ(outputs.at("y").as<float>()[3], 6);
}

TEST_F(WeightsTest, GetTheHashesThatAreMissing) {
  std::vector<Artifact> artifacts{artifact};
  std::string &hash = artifacts[0].parameters[0].source.sha256, before = hash;
  hash.clear();
  Error error;
  ASSERT_TRUE(hashSources(artifacts, error)) << error.message;
  EXPECT_EQ(hash, before);
  write("ab");
  hash.clear();
  EXPECT_FALSE(hashSources(artifacts, error));
  EXPECT_NE(error.message.find("the file has no more"), std::string::npos);
}

TEST_F(WeightsTest, AreFoundInAnotherDirectory) {
  std::filesystem::create_directory(directory + "/moved");
  std::filesystem::rename(directory + "/w.bin", directory + "/moved/w.bin");
  Error error = failure(artifact);
  EXPECT_EQ(error.exitCode, 1);
  EXPECT_NE(error.message.find("weight 'w'"), std::string::npos);
  EXPECT_NE(error.message.find("No such file"), std::string::npos);
  SessionOptions options;
  options.weightsDir = directory + "/moved";
  EXPECT_TRUE(start(artifact, options));
}

TEST_F(WeightsTest, ThatChangedOrAreShortAreRefused) {
  write("ab0123456789012345");
  EXPECT_NE(failure(artifact).message.find("changed since"), std::string::npos);
  write("ab0123");
  EXPECT_NE(failure(artifact).message.find("lies at bytes 2 to 18 of '" +
                                           directory + "/w.bin', which has 6"),
            std::string::npos);
  artifact.parameters[0].source.file = directory;
  EXPECT_NE(failure(artifact).message.find("not a regular file"),
            std::string::npos);
}

TEST(Session, PacksConstantsOfMatrixProductsOnce) {
  // y [2, 4] = x [2, 3] w [3, 4], twice by one site, w cut by columns.
  Artifact a = multiplyAndGather(12, 2);
  Parameter &w = a.parameters[0];
  w.recipe = {{RecipeStep::Kind::Reshape, {3, 4}}};
  w.layout = cut(DType::F32, {3, 4}, 1);
  LibrarySite site;
  site.kind = "matmul";
  site.attributes = nlohmann::json::object();
  site.operands = {{DType::F32, {2, 3}, {}},
                   {DType::F32, {3, 2}, {}},
                   {DType::F32, {2, 2}, {}}};
  a.librarySites = {site};
  Entry &e = a.entries[0];
  e.inputs[0].layout = whole(DType::F32, {2, 3});
  e.inputs[0].dimNames.clear();
  e.outputs = {{"y", cut(DType::F32, {2, 4}, 1)},
               {"z", cut(DType::F32, {2, 4}, 1)}};
  auto call = [](int64_t output) {
    return Instruction{Kind::Library,
                       0,
                       {at(Space::Input, 0, 0, 24),
                        at(Space::Parameter, 0, 0, 24),
                        at(Space::Output, output, 0, 16)},
                       1,
                       1,
                       "product"};
  };
  e.program = {call(0), call(1)};
  auto session = start(a);
  ASSERT_TRUE(session);
  TensorMap inputs, outputs;
  HostTensor x(DType::F32, {2, 3});
  for (int i = 0; i < 6; ++i)
    x.as<float>()[i] = static_cast<float>(i);
  inputs.emplace("x", std::move(x));
  Error error;
  ASSERT_TRUE(session->run(inputs, outputs, error)) << error.message;
  for (const char *key : {"y", "z"})
    for (int row = 0; row < 2; ++row)
      for (int column = 0; column < 4; ++column) {
        float sum = 0;
        for (int k = 0; k < 3; ++k)
          sum += static_cast<float>(row * 3 + k) *
                 static_cast<float>(k * 4 + column + 1);
        EXPECT_EQ(outputs.at(key).as<float>()[row * 4 + column], sum);
      }
  EXPECT_EQ(session->implementations().size(), 1u);
}

TEST(Session, BenchMeasuresSteps) {
  auto session = start(multiplyAndGather(1000, 2));
  StepTimes times;
  Error error;
  ASSERT_TRUE(session->bench(inputX(1000), 0.05, times, error))
      << error.message;
  EXPECT_GE(times.runs, 3);
  EXPECT_LE(times.min, times.median);
  EXPECT_LE(times.median, times.max);
  EXPECT_GT(times.min, 0);
}

TEST(RandomInputs, AreValidAndDependOnTheSeedOnly) {
  Artifact a = lookUpArtifact();
  Input ids = a.entries[0].inputs[0];
  ids.lo = -4;
  ids.hi = 3;
  ids.random = "ids";
  ids.layout = whole(DType::I64, {500});
  Input noise = ids;
  noise.name = "noise";
  noise.random = "normal";
  noise.layout = whole(DType::F32, {4000});
  Input wide = noise;
  wide.layout.type = DType::F64;
  Entry entry;
  entry.inputs = {ids, noise};
  TensorMap first = randomInputs(a, entry, 1),
            again = randomInputs(a, entry, 1);
  TensorMap other = randomInputs(a, entry, 2);
  entry.inputs = {wide};
  TensorMap doubles = randomInputs(a, entry, 1);
  bool seen[4] = {};
  for (int i = 0; i < 500; ++i) {
    int64_t id = first.at("index").as<int64_t>()[i];
    ASSERT_TRUE(id >= 0 && id <= 3);
    seen[id] = true;
  }
  EXPECT_TRUE(seen[0] && seen[1] && seen[2] && seen[3]);
  double sum = 0, squares = 0;
  for (int i = 0; i < 4000; ++i) {
    double value = first.at("noise").valueAt(i);
    EXPECT_EQ(value, again.at("noise").valueAt(i));
    EXPECT_EQ(value, doubles.at("noise").valueAt(i));
    sum += value;
    squares += value * value;
  }
  EXPECT_NE(first.at("noise").valueAt(0), other.at("noise").valueAt(0));
  EXPECT_NEAR(sum / 4000, 0, 0.1);
  EXPECT_NEAR(squares / 4000, 1, 0.1);
}

} // namespace
