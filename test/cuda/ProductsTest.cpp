// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProductsTest.cpp - matrix products of device cuda ------------------===//
//
// The same site on cuBLASLt (the recorder's) and by the CPU's kernels.
//
//===----------------------------------------------------------------------===//
#include "runtime/loader/Convert.h"
#include "test/cuda/GpuFixture.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mtp;
using namespace mtp::test;
using Kind = Instruction::Kind;
using Space = BufferRef::Space;

namespace {

struct Product {
  std::vector<int64_t> a, b, y;
  DType in = DType::F32, out = DType::F32;
  nlohmann::json attributes = nlohmann::json::object();
  bool bias = false;
};

int64_t bytesOf(DType type, const std::vector<int64_t> &shape) {
  int64_t bytes = byteSize(type);
  for (int64_t extent : shape)
    bytes *= extent;
  return bytes;
}

/// y = a b (+ bias), everything whole on every rank.
Artifact artifactOf(const Product &product, int64_t ranks) {
  Artifact a;
  a.mesh = "tp=" + std::to_string(ranks);
  a.axes.axes = {{"tp", ranks}};
  a.plan = nlohmann::json::object();
  LibrarySite site;
  site.kind = "matmul";
  site.attributes = product.attributes;
  if (product.bias)
    site.attributes["bias"] = true;
  Entry e;
  Instruction call{Kind::Library, 0, {}, 1, 1, "product"};
  auto add = [&](const char *name, DType type, std::vector<int64_t> shape) {
    Input input;
    input.name = name;
    input.layout = whole(type, shape);
    call.buffers.push_back(at(Space::Input,
                              static_cast<int64_t>(e.inputs.size()), 0,
                              bytesOf(type, shape)));
    e.inputs.push_back(input);
    site.operands.push_back({type, shape, {}});
  };
  add("a", product.in, product.a);
  add("b", product.in, product.b);
  if (product.bias)
    add("bias", product.out, {product.y.back()});
  site.operands.push_back({product.out, product.y, {}});
  e.outputs = {{"y", whole(product.out, product.y)}};
  call.buffers.push_back(
      at(Space::Output, 0, 0, bytesOf(product.out, product.y)));
  e.program = {call};
  a.librarySites = {site};
  a.entries = {e};
  return a;
}

Artifact onGpu(Artifact a) {
  a.device = "cuda";
  a.gpu.arch = "sm_90";
  a.object = ptxOf({});
  return a;
}

TensorMap inputsOf(const Artifact &artifact) {
  TensorMap inputs;
  for (const Input &input : artifact.entries[0].inputs) {
    HostTensor wide(DType::F32, input.layout.shape);
    for (int64_t i = 0; i < wide.elements(); ++i)
      wide.as<float>()[i] = std::sin(
          static_cast<float>(i + 3 * static_cast<int64_t>(input.name.size())));
    HostTensor tensor(input.layout.type, input.layout.shape);
    convertElements(DType::F32, wide.bytes.data(), tensor.type,
                    tensor.bytes.data(), wide.elements());
    inputs.emplace(input.name, std::move(tensor));
  }
  return inputs;
}

std::vector<float> floats(const HostTensor &tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  convertElements(tensor.type, tensor.bytes.data(), DType::F32,
                  reinterpret_cast<char *>(values.data()), tensor.elements());
  return values;
}

TEST_F(GpuTest, ProductsAreThoseOfTheCpu) {
  const Product products[] = {
      {{5, 3}, {3, 7}, {5, 7}},
      {{3, 5}, {3, 7}, {5, 7}, DType::F32, DType::F32, {{"transposeA", true}}},
      {{5, 3}, {7, 3}, {5, 7}, DType::F32, DType::F32, {{"transposeB", true}}},
      {{3, 5},
       {7, 3},
       {5, 7},
       DType::F64,
       DType::F64,
       {{"transposeA", true}, {"transposeB", true}}},
      {{1, 3}, {3, 7}, {1, 7}},
      {{5, 3}, {3, 1}, {5, 1}},
      {{5, 1}, {1, 7}, {5, 7}},
      {{4, 5, 3}, {3, 7}, {4, 5, 7}},
      {{4, 5, 3}, {4, 3, 7}, {4, 5, 7}},
      {{2, 4, 5, 3}, {2, 1, 3, 7}, {2, 4, 5, 7}},
      {{2, 1, 5, 3}, {1, 4, 3, 7}, {2, 4, 5, 7}},
      {{5, 3}, {3, 7}, {5, 7}, DType::BF16, DType::BF16},
      {{5, 3}, {3, 7}, {5, 7}, DType::F16, DType::F32},
      {{5, 3},
       {3, 7},
       {5, 7},
       DType::F32,
       DType::F32,
       nlohmann::json::object(),
       true},
      {{5, 3},
       {3, 7},
       {5, 7},
       DType::F32,
       DType::F32,
       {{"activation", "gelu_tanh"}},
       true},
      {{5, 3}, {3, 7}, {5, 7}, DType::F32, DType::F32, {{"alpha", 0.5}}},
      {{5, 0}, {0, 7}, {5, 7}},
      {{0, 3}, {3, 7}, {0, 7}},
  };
  for (const Product &product : products) {
    reset({});
    Artifact artifact = artifactOf(product, 2);
    auto cpu = start(artifact, "threads");
    auto gpu = start(onGpu(artifact), "nccl");
    ASSERT_TRUE(cpu && gpu);
    double bound = product.out == DType::F64   ? 1e-6
                   : product.out == DType::F32 ? 1e-6
                                               : 1e-2;
    for (int step = 0; step < 3; ++step) {
      TensorMap a, b;
      Error error;
      TensorMap inputs = inputsOf(artifact);
      ASSERT_TRUE(cpu->run(inputs, a, error)) << error.message;
      ASSERT_TRUE(gpu->run(inputs, b, error)) << error.message;
      std::vector<float> x = floats(a.at("y")), y = floats(b.at("y"));
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(x[i], y[i], bound * 3) << i;
    }
    gpu.reset();
    expectClean();
    // All ranks take what rank 0 has chosen: one search a shape.
    size_t searches = 0;
    for (const software::Call &call : record().calls)
      searches += call.name == "cublasLtMatmulAlgoGetHeuristic";
    EXPECT_LE(searches, 1u);
  }
}

TEST_F(GpuTest, ProductsThatCublasLtDoesNotMeanAreRefused) {
  const std::pair<Product, const char *> cases[] = {
      {{{5, 3}, {3, 7}, {5, 7}, DType::I32, DType::I32}, "no product of i32"},
      {{{5, 3},
        {3, 7},
        {5, 7},
        DType::F32,
        DType::F32,
        {{"activation", "relu"}}},
       "activation"},
      {{{5, 3},
        {3, 7},
        {5, 7},
        DType::F64,
        DType::F64,
        {{"activation", "gelu_tanh"}}},
       "activation"},
      {{{5, 3}, {4, 7}, {5, 7}}, "contracted dimension"},
  };
  for (auto &[product, part] : cases) {
    SessionOptions options;
    Error error;
    EXPECT_FALSE(
        Session::create(onGpu(artifactOf(product, 1)), options, error));
    EXPECT_EQ(error.exitCode, 1);
    EXPECT_NE(error.message.find("main 'product'"), std::string::npos)
        << error.message;
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
  }
}

} // namespace
