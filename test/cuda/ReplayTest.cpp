// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ReplayTest.cpp - a captured step against one that is given anew ----===//
//
// A compiled model on the software driver, its kernels in the emulator: a
// hundred steps with inputs that change, replayed as one graph, are those of a
// session that captures nothing, bit for bit.
//
//===----------------------------------------------------------------------===//
#include "compiler/driver/CompilerApi.h"
#include "runtime/session/Session.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

using namespace mtp;

namespace {

constexpr int kSteps = 100;

std::string initializer(const std::string &name, int rows, int columns) {
  std::mt19937 random(static_cast<unsigned>(rows * 31 + columns));
  std::string values;
  for (int row = 0; row < rows; ++row) {
    values += row ? ", [" : "[";
    for (int column = 0; column < columns; ++column)
      values += (column ? ", " : "") +
                std::to_string(0.001 * (double(random() % 1000) - 500));
    values += "]";
  }
  std::string type = "tensor<" + std::to_string(rows) + "x" +
                     std::to_string(columns) + "xf32>";
  return "mtp.initializer @" + name + " : " + type + " {value = dense<[" +
         values + "]> : " + type + ", parameter}\n";
}

/// Two products with dropout and a row operation in between.
const char *const kBody = R"(
func.func @main(%x: tensor<4x8xf32> {mtp.name = "x"}) -> (tensor<4x12xf32> {mtp.name = "logits"}) {
  %v = mtp.parameter @v : tensor<8x16xf32>
  %w = mtp.parameter @w : tensor<16x12xf32>
  %0 = mtp.matmul %x, %v : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = mtp.tanh %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %2, %mask = mtp.dropout %1 {ratio = 0.25 : f64, stream = 3 : i64} : (tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xi1>)
  %3 = mtp.matmul %2, %w : (tensor<4x16xf32>, tensor<16x12xf32>) -> tensor<4x12xf32>
  return %3 : tensor<4x12xf32>
}
)";

Artifact compile(const std::string &mesh, bool training) {
  std::string path =
      testing::TempDir() + "mtp-replay-" + std::to_string(getpid()) + ".mlir";
  std::ofstream(path) << initializer("v", 8, 16) << initializer("w", 16, 12)
                      << kBody;
  CompileRequest request;
  request.model = path;
  request.mesh = mesh;
  request.device = "cuda-emulated";
  request.gpuArch = "sm_90";
  request.noCache = true;
  if (training) {
    request.train.emplace();
    request.train->loss.output = "logits";
    request.train->loss.labels = "labels";
    request.train->dropout = "on";
    request.train->keepOutputs = true;
  }
  CompileResult result;
  mtpCompile(&request, &result);
  EXPECT_EQ(result.exitCode, kOk) << result.message;
  unlink(path.c_str());
  return result.artifact;
}

/// Whether two tensors of each name have the same bytes.
void expectSame(const TensorMap &a, const TensorMap &b,
                const std::string &what) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto &[name, tensor] : a) {
    const HostTensor &other = b.at(name);
    ASSERT_EQ(tensor.bytes.size(), other.bytes.size());
    ASSERT_EQ(std::memcmp(tensor.bytes.data(), other.bytes.data(),
                          tensor.bytes.size()),
              0)
        << what << ": " << name;
  }
}

/// Valid inputs of step `step`, those of the optimizer in their range.
TensorMap inputsOf(const Artifact &artifact, int step) {
  TensorMap inputs =
      randomInputs(artifact, artifact.entries[0], static_cast<uint64_t>(step));
  for (auto &[name, tensor] : inputs)
    if (tensor.shape.empty() && tensor.type == DType::F32)
      tensor.as<float>()[0] = 0.01f * static_cast<float>(1 + step % 7);
    else if (name == "mtp.step")
      tensor.as<int64_t>()[0] = step;
  return inputs;
}

class ReplayTest : public testing::TestWithParam<std::string> {
protected:
  void compare(const std::string &mesh, bool training) {
    Artifact artifact = compile(mesh, training);
    ASSERT_FALSE(artifact.entries.empty());
    std::unique_ptr<Session> sessions[2];
    Error error;
    for (bool capture : {false, true}) {
      SessionOptions options;
      options.comm = GetParam();
      options.seed = 11;
      options.capture = capture;
      sessions[capture] = Session::create(artifact, options, error);
      ASSERT_TRUE(sessions[capture]) << error.message;
    }
    TensorMap first, state[2];
    for (int step = 0; step < kSteps; ++step) {
      std::string what = mesh + ", step " + std::to_string(step);
      TensorMap inputs = inputsOf(artifact, step), outputs[2];
      for (int i : {0, 1})
        ASSERT_TRUE(sessions[i]->run(inputs, outputs[i], error))
            << error.message;
      expectSame(outputs[0], outputs[1], what);
      if (step == 0)
        first = outputs[0];
      else
        EXPECT_NE(std::memcmp(first.at("logits").bytes.data(),
                              outputs[0].at("logits").bytes.data(),
                              first.at("logits").bytes.size()),
                  0)
            << what;
    }
    for (int i : {0, 1}) {
      ASSERT_TRUE(sessions[i]->readParameters(state[i], error));
      TensorMap moments;
      ASSERT_TRUE(sessions[i]->readStates(moments, error));
      state[i].merge(moments);
    }
    EXPECT_EQ(state[0].empty(), !training);
    expectSame(state[0], state[1], mesh);
  }
};

TEST_P(ReplayTest, ForwardEqualsWhatIsGivenAnew) {
  compare("tp=2", false);
  compare("dp=2,tp=2", false);
}

TEST_P(ReplayTest, TrainingEqualsWhatIsGivenAnew) {
  compare("dp=2,tp=2", true);
}

/// Where nothing but the number of the step differs, the masks of dropout do.
TEST_P(ReplayTest, ReplaysDrawOtherMasks) {
  Artifact artifact = compile("tp=2", true);
  ASSERT_FALSE(artifact.entries.empty());
  SessionOptions options;
  options.comm = GetParam();
  Error error;
  auto session = Session::create(artifact, options, error);
  ASSERT_TRUE(session) << error.message;
  TensorMap inputs = inputsOf(artifact, 0);
  for (auto &[name, tensor] : inputs)
    if (tensor.shape.empty() && name == "mtp.learning_rate")
      tensor.as<float>()[0] = 0;
  std::vector<TensorMap> outputs(4);
  for (size_t i = 0; i < outputs.size(); ++i) {
    inputs.at("mtp.step").as<int64_t>()[0] = static_cast<int64_t>(i);
    ASSERT_TRUE(session->run(inputs, outputs[i], error)) << error.message;
  }
  for (size_t i = 1; i < outputs.size(); ++i)
    EXPECT_NE(std::memcmp(outputs[i].at("logits").bytes.data(),
                          outputs[i - 1].at("logits").bytes.data(),
                          outputs[i].at("logits").bytes.size()),
              0);
}

INSTANTIATE_TEST_SUITE_P(All, ReplayTest, testing::Values("nccl", "loopback"),
                         [](const auto &info) { return info.param; });

} // namespace
