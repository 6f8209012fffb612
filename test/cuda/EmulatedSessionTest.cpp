// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- EmulatedSessionTest.cpp - the program of a GPU without one ---------===//
//
// Kernels are those of objects/emulated.c, run by the emulator when the streams
// of the software driver come to them.
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Session.h"
#include "runtime/support/Sha256.h"
#include "test/unit/runtime/TestArtifact.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace mtp;
using namespace mtp::test;
using Kind = Instruction::Kind;
using Space = BufferRef::Space;
using Reduction = CollectiveSite::Reduction;

namespace {

/// Each rank has two ids; y = reduction over ranks of table[id] * (step + 1) +
/// seed + (twice the rank's number), with a table of 1, 2, 3, 4.
Artifact lookUpAndReduce(int64_t ranks, Reduction reduction) {
  Artifact a = multiplyAndGather(2 * ranks, ranks);
  a.device = "cuda-emulated";
  a.object = objectBytes("emulated");
  a.kernelNames = {"look_up"};
  a.gpu.arch = "sm_90";
  a.gpu.kernels.resize(1);
  a.gpu.kernels[0].symbol = "look_up";
  a.gpu.kernels[0].block[0] = 2;

  a.data.clear();
  for (float value : {1.f, 2.f, 3.f, 4.f})
    a.data.append(reinterpret_cast<const char *>(&value), 4);
  a.parameters[0].source.bytes = 16;
  a.parameters[0].source.shape = {4};
  a.parameters[0].source.sha256 = Sha256::hex(a.data.data(), a.data.size());
  a.parameters[0].layout = whole(DType::F32, {4});

  CollectiveSite &site = a.collectiveSites[0];
  site = {};
  site.kind = CollectiveSite::Kind::AllReduce;
  site.reduction = reduction;
  site.op = "all_reduce";
  site.axes = {0};
  site.axisName = "tp";
  site.inShape = site.outShape = {2};
  site.node = "y";

  Entry &e = a.entries[0];
  e.inputs[0].layout = cut(DType::I64, {2 * ranks}, 0);
  e.outputs = {{"y", whole(DType::F32, {2})}};
  e.arenaBytes = 64;
  Instruction lookUp{
      Kind::Kernel,
      0,
      {at(Space::Input, 0, 0, 16), at(Space::Parameter, 0, 0, 16), arena(0, 8)},
      2,
      1,
      "look up"};
  lookUp.results = 1;
  Instruction start{Kind::Start, 0, {arena(0, 8), at(Space::Output, 0, 0, 8)},
                    1,           1, "sum"};
  Instruction done{Kind::Done, 0, {}, 1, 1, "sum"};
  e.program = {lookUp, start, done};
  return a;
}

std::unique_ptr<Session> start(Artifact artifact, const std::string &comm) {
  SessionOptions options;
  options.comm = comm;
  options.seed = 5;
  Error error;
  auto session = Session::create(std::move(artifact), options, error);
  EXPECT_TRUE(session) << error.message;
  return session;
}

TensorMap idsOf(const std::vector<int64_t> &ids) {
  HostTensor x(DType::I64, {static_cast<int64_t>(ids.size())});
  std::copy(ids.begin(), ids.end(), x.as<int64_t>());
  TensorMap inputs;
  inputs.emplace("x", std::move(x));
  return inputs;
}

TEST(EmulatedSession, ReplaysComputeWithTheirOwnInputsAndStep) {
  std::mt19937 random(3);
  for (const char *comm : {"nccl", "loopback"})
    for (Reduction reduction : {Reduction::Sum, Reduction::Max})
      for (int64_t ranks : {1, 2, 4}) {
        auto session = start(lookUpAndReduce(ranks, reduction), comm);
        ASSERT_TRUE(session);
        for (int step = 0; step < 100; ++step) {
          std::vector<int64_t> ids(static_cast<size_t>(2 * ranks));
          for (int64_t &id : ids)
            id = random() % 4;
          TensorMap outputs;
          Error error;
          ASSERT_TRUE(session->run(idsOf(ids), outputs, error))
              << error.message;
          for (int64_t i = 0; i < 2; ++i) {
            float expected = reduction == Reduction::Sum ? 0.f : -1.f;
            for (int64_t rank = 0; rank < ranks; ++rank) {
              float term = static_cast<float>(
                  (ids[static_cast<size_t>(2 * rank + i)] + 1) * (step + 1) +
                  5 + 2 * rank);
              expected = reduction == Reduction::Sum ? expected + term
                                                     : std::max(expected, term);
            }
            ASSERT_EQ(outputs.at("y").as<float>()[i], expected)
                << comm << " " << ranks << " ranks, step " << step;
          }
        }
      }
}

TEST(EmulatedSession, WhatTheEmulatorFindsEndsAllRanksInAnyStep) {
  for (const char *comm : {"nccl", "loopback"})
    for (int badRank : {0, 1, 2})
      for (int badStep : {0, 1, 5}) {
        auto session = start(lookUpAndReduce(3, Reduction::Sum), comm);
        ASSERT_TRUE(session);
        for (int step = 0; step <= badStep; ++step) {
          std::vector<int64_t> ids(6, 3);
          if (step == badStep)
            ids[static_cast<size_t>(2 * badRank + 1)] = 7;
          TensorMap outputs;
          Error error;
          bool ok = session->run(idsOf(ids), outputs, error);
          ASSERT_EQ(ok, step != badStep) << error.message;
          if (ok)
            continue;
          EXPECT_EQ(error.exitCode, exits::Internal) << error.message;
          EXPECT_EQ(error.kind, "emulator");
          EXPECT_EQ(error.message,
                    "kernel look_up, block (0, 0, 0), thread 1, at the "
                    "look-up: 4 bytes at offset 28 of parameter 2 are outside "
                    "of its 16 bytes");
          // The session is dead; the next one isn't.
          EXPECT_FALSE(session->run(idsOf({0, 0, 0, 0, 0, 0}), outputs, error));
        }
      }
}

TEST(EmulatedSession, ReductionsOfCollectivesAreBounded) {
  for (const char *comm : {"nccl", "loopback"}) {
    auto session = start(lookUpAndReduce(2, Reduction::Min), comm);
    ASSERT_TRUE(session);
    TensorMap outputs;
    Error error;
    EXPECT_FALSE(session->run(idsOf({0, 1, 2, 3}), outputs, error));
    EXPECT_EQ(error.exitCode, exits::Internal);
    EXPECT_NE(error.message.find("kernel mtp_reduce_min_f32, block (0, 0, 0), "
                                 "thread 2, at the term: 4 bytes at offset 8 "
                                 "of parameter 1 are outside of its 8 bytes"),
              std::string::npos)
        << error.message;
  }
}

TEST(EmulatedSession, AnObjectThatDoesNotFitIsRefused) {
  SessionOptions options;
  Error error;
  Artifact a = lookUpAndReduce(2, Reduction::Sum);
  a.gpu.kernels[0].symbol = "other";
  EXPECT_FALSE(Session::create(a, options, error));
  EXPECT_EQ(error.exitCode, exits::BadInput);
  EXPECT_NE(error.message.find("no kernel 'other' of 4 parameters"),
            std::string::npos)
      << error.message;
  a = lookUpAndReduce(2, Reduction::Sum);
  a.collectiveSites[0].type = DType::I32; // has no reduction in the object
  EXPECT_FALSE(Session::create(a, options, error));
  EXPECT_NE(error.message.find("mtp_reduce_sum_i32"), std::string::npos)
      << error.message;
  options.comm = "threads";
  EXPECT_FALSE(
      Session::create(lookUpAndReduce(2, Reduction::Sum), options, error));
  EXPECT_EQ(error.exitCode, exits::Usage);
}

} // namespace
