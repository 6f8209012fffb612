// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- StoredTest.cpp - what programs update and keep ---------------------===//
#include "runtime/loader/ParameterLoader.h"
#include "runtime/session/Session.h"
#include "runtime/support/Checked.h"
#include "test/unit/runtime/TestArtifact.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace mtp;
using namespace mtp::test;
using Kind = Instruction::Kind;
using Space = BufferRef::Space;
using Step = RecipeStep;

namespace {

Step slice(int64_t start, int64_t size) {
  return {Step::Kind::Slice, {}, 1, start, size};
}

/// The initializer "v" [4, 6] in two pieces: columns 0 to 3 transposed, cut by
/// rows, and columns 4 and 5 as a vector, whole. A step of "update" adds 1 to
/// all of it and to its states: "moment" like the first piece and the second,
/// "gradient" partial over tp. "main" is multiplyAndGather().
Artifact updatingArtifact(int64_t ranks) {
  Artifact a = multiplyAndGather(4, ranks);
  a.entries[0].name = "main";
  Source source;
  source.kind = Source::Kind::Embedded;
  source.offset = a.data.size();
  source.bytes = 96;
  source.shape = {4, 6};
  for (int i = 0; i < 24; ++i) {
    float value = static_cast<float>(i);
    a.data.append(reinterpret_cast<const char *>(&value), 4);
  }
  Parameter left;
  left.name = "v";
  left.source = source;
  left.recipe = {slice(0, 4), {Step::Kind::Transpose, {1, 0}}};
  left.layout = cut(DType::F32, {4, 4}, 0);
  left.updated = true;
  Parameter right = left;
  right.recipe = {slice(4, 2), {Step::Kind::Reshape, {8}}};
  right.layout = whole(DType::F32, {8});
  auto stateOf = [](Parameter parameter, const char *name) {
    parameter.state = name;
    parameter.source.kind = Source::Kind::Zero;
    parameter.source.offset = parameter.source.bytes = 0;
    return parameter;
  };
  Parameter leftSum = stateOf(left, "gradient");
  leftSum.layout = whole(DType::F32, {4, 4});
  leftSum.partial = {0};
  a.parameters.insert(a.parameters.end(), {left, right, stateOf(left, "moment"),
                                           stateOf(right, "moment"), leftSum,
                                           stateOf(right, "gradient")});
  Entry update;
  update.name = "update";
  for (int64_t i = 1; i < 7; ++i) {
    int64_t count = elementCount(a.parameters[i].layout.localShape(a.axes));
    update.program.push_back({Kind::Kernel,
                              AddOne,
                              {at(Space::Parameter, i, 0, count * 4)},
                              count,
                              1,
                              "add"});
  }
  a.entries.push_back(update);
  return a;
}

void expectAll(const HostTensor &tensor, int64_t columns, double value) {
  for (int64_t i = 0; i < 24; ++i)
    if (i % 6 < columns)
      EXPECT_EQ(tensor.valueAt(i), value) << i;
}

TEST(Stored, KeepTheirValuesFromRunToRunAndAreReadWhole) {
  for (int64_t ranks : {1, 2, 3, 8}) {
    Error error;
    auto session = Session::create(updatingArtifact(ranks), {}, error);
    ASSERT_TRUE(session) << error.message;
    TensorMap outputs, inputs, stored;
    HostTensor x(DType::F32, {4});
    inputs.emplace("x", std::move(x));
    for (int step = 0; step < 3; ++step)
      ASSERT_TRUE(session->run("update", {}, outputs, error)) << error.message;
    ASSERT_TRUE(session->run("main", inputs, outputs, error)) << error.message;
    EXPECT_EQ(outputs.size(), 1u);
    ASSERT_TRUE(session->readParameters(stored, error)) << error.message;
    ASSERT_EQ(stored.size(), 1u);
    const HostTensor &v = stored.at("v");
    EXPECT_EQ(v.shape, (std::vector<int64_t>{4, 6}));
    for (int64_t i = 0; i < 24; ++i)
      EXPECT_EQ(v.valueAt(i), static_cast<double>(i + 3)) << ranks;
    ASSERT_TRUE(session->readStates(stored, error)) << error.message;
    ASSERT_EQ(stored.size(), 2u);
    expectAll(stored.at("v/moment"), 6, 3);
    expectAll(stored.at("v/gradient"), 4, 3.0 * static_cast<double>(ranks));
  }
}

TEST(Stored, WhatIsWrittenIsReadAgain) {
  for (int64_t ranks : {1, 3}) {
    Error error;
    auto session = Session::create(updatingArtifact(ranks), {}, error);
    ASSERT_TRUE(session) << error.message;
    TensorMap stored, outputs;
    HostTensor v(DType::F64, {4, 6});
    std::iota(v.as<double>(), v.as<double>() + 24, 100.0);
    stored.emplace("v", v);
    ASSERT_TRUE(session->writeParameters(stored, error)) << error.message;
    stored.clear();
    for (const char *name : {"v/moment", "v/gradient"})
      stored.emplace(name, v);
    ASSERT_TRUE(session->writeStates(stored, error)) << error.message;
    ASSERT_TRUE(session->run("update", {}, outputs, error)) << error.message;
    ASSERT_TRUE(session->readParameters(stored, error)) << error.message;
    for (int64_t i = 0; i < 24; ++i)
      EXPECT_EQ(stored.at("v").valueAt(i), static_cast<double>(i + 101));
    ASSERT_TRUE(session->readStates(stored, error)) << error.message;
    for (int64_t i = 0; i < 24; ++i) {
      EXPECT_EQ(stored.at("v/moment").valueAt(i), static_cast<double>(i + 101));
      if (i % 6 < 4)
        EXPECT_EQ(stored.at("v/gradient").valueAt(i),
                  static_cast<double>(i + 100 + ranks));
    }
    stored.clear();
    stored.emplace("w", v);
    EXPECT_FALSE(session->writeParameters(stored, error));
    EXPECT_EQ(error.message, "the program keeps no tensor 'w'");
    stored.clear();
    stored.emplace("v", HostTensor(DType::F32, {6, 4}));
    EXPECT_FALSE(session->writeParameters(stored, error));
    EXPECT_EQ(error.message, "'v' has dims [6, 4]; the program keeps [4, 6]");
  }
}

TEST(Stored, AProgramInDoubleGivesDoubles) {
  Artifact a = updatingArtifact(2);
  a.entries.pop_back();
  for (Parameter &parameter : a.parameters)
    if (parameter.updated)
      parameter.layout.type = DType::F64;
  Error error;
  auto session = Session::create(a, {}, error);
  ASSERT_TRUE(session) << error.message;
  TensorMap stored;
  ASSERT_TRUE(session->readParameters(stored, error)) << error.message;
  EXPECT_EQ(stored.at("v").type, DType::F64);
  for (int64_t i = 0; i < 24; ++i)
    EXPECT_EQ(stored.at("v").valueAt(i), static_cast<double>(i));
}

TEST(Stored, UpdatedWeightsAreNotPacked) {
  // y = x w with w [1, 2] = v [0:1, 4:6], to which "update" adds 1.
  Artifact a = updatingArtifact(1);
  Parameter &w = a.parameters[2];
  w.recipe = {slice(4, 2), {Step::Kind::Slice, {}, 0, 0, 1}};
  w.layout = whole(DType::F32, {1, 2});
  LibrarySite site;
  site.kind = "matmul";
  site.attributes = nlohmann::json::object();
  site.operands = {{DType::F32, {4, 1}, {}},
                   {DType::F32, {1, 2}, {}},
                   {DType::F32, {4, 2}, {}}};
  a.librarySites = {site};
  Entry &e = a.entries[0];
  e.outputs[0].layout = whole(DType::F32, {4, 2});
  e.program = {{Kind::Library,
                0,
                {at(Space::Input, 0, 0, 16), at(Space::Parameter, 2, 0, 8),
                 at(Space::Output, 0, 0, 32)},
                1,
                1,
                "product"}};
  for (size_t i = 0; i < a.entries[1].program.size(); ++i)
    if (i == 1) {
      a.entries[1].program[i].buffers[0].bytes = 8;
      a.entries[1].program[i].count = 2;
    }
  Error error;
  auto session = Session::create(a, {}, error);
  ASSERT_TRUE(session) << error.message;
  TensorMap inputs, outputs;
  HostTensor x(DType::F32, {4});
  for (int i = 0; i < 4; ++i)
    x.as<float>()[i] = 1;
  inputs.emplace("x", std::move(x));
  for (float added = 0; added < 3; ++added) {
    ASSERT_TRUE(session->run("main", inputs, outputs, error)) << error.message;
    EXPECT_EQ(outputs.at("y").as<float>()[0], 4 + added);
    EXPECT_EQ(outputs.at("y").as<float>()[7], 5 + added);
    ASSERT_TRUE(session->run("update", {}, outputs, error)) << error.message;
  }
}

TEST(Stored, SurviveTheFile) {
  std::string error;
  Artifact a;
  ASSERT_TRUE(Artifact::parse(updatingArtifact(2).serialize(), a, error))
      << error;
  EXPECT_EQ(a.parameters[5].state, "gradient");
  EXPECT_EQ(a.parameters[5].partial, std::vector<int>{0});
  EXPECT_TRUE(a.parameters[5].updated);
  EXPECT_EQ(a.parameters[5].source.kind, Source::Kind::Zero);
  a.parameters[5].layout.dims[0].axes = {0};
  EXPECT_FALSE(a.verify(error));
  EXPECT_NE(error.find("partial over a mesh axis"), std::string::npos);
  a = updatingArtifact(2);
  a.parameters[5].state = "";
  EXPECT_FALSE(a.verify(error));
  EXPECT_NE(error.find("zero at first"), std::string::npos);
  a = updatingArtifact(2);
  a.entries[1].name = "main";
  EXPECT_FALSE(a.verify(error));
  EXPECT_NE(error.find("entry 'main' stands twice"), std::string::npos);
}

} // namespace
