// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProgramTest.cpp - n ranks compute what one rank computes -----------===//
//
// Every program of the lit tests of mtp-partition, and those beside this file,
// runs on its mesh and on one rank, with poison in padding and in the arena.
//
//===----------------------------------------------------------------------===//
#include "dialects/spmd/SpmdDialect.h"
#include "test/unit/program/ProgramRunner.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <gtest/gtest.h>

using namespace mtp;
using namespace mtp::test;

namespace mtp::test {
static void PrintTo(const TypedProgram &program, std::ostream *os) {
  *os << program.name;
}
} // namespace mtp::test

namespace {

constexpr Form kForms[] = {Form::Single, Form::Fused, Form::Overlapped};

class OnItsMesh : public testing::TestWithParam<TypedProgram> {};

TEST_P(OnItsMesh, EqualsOneRank) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::func::FuncDialect, MtpDialect, spmd::SpmdDialect>();
  RunResult whole = runProgram(&context, GetParam(), true, Form::Single);
  ASSERT_EQ(whole.error, "");
  for (Form form : kForms) {
    RunResult split = runProgram(&context, GetParam(), false, form);
    ASSERT_EQ(split.error, "") << "form " << static_cast<int>(form);
    for (const auto &[name, tensor] : whole.outputs)
      EXPECT_LE(distance(split.outputs.at(name), tensor),
                tensor.type == DType::F64 ? 1e-12 : 2e-6)
          << name << ", form " << static_cast<int>(form);
  }
}

std::vector<TypedProgram> allPrograms() {
  std::vector<TypedProgram> programs;
  for (const char *file :
       {"passes/mtp-partition/dense-layer.mlir",
        "passes/mtp-partition/conversions.mlir",
        "passes/mtp-partition/padding.mlir", "unit/program/layers.mlir",
        "unit/program/gradients.mlir"})
    for (TypedProgram &program :
         readPrograms(std::string(MTP_TEST_PROGRAMS) + "/" + file))
      programs.push_back(std::move(program));
  return programs;
}

std::vector<TypedProgram> programsThatStore() {
  return readPrograms(std::string(MTP_TEST_PROGRAMS) +
                      "/unit/program/stores.mlir");
}

class Stores : public testing::TestWithParam<TypedProgram> {};

/// What is kept from step to step is the same on any mesh, written in place by
/// fused kernels or copied by single ones.
TEST_P(Stores, AreKeptAlikeOnAnyMesh) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::func::FuncDialect, MtpDialect, spmd::SpmdDialect>();
  for (int steps : {1, 3}) {
    RunResult whole =
        runProgram(&context, GetParam(), true, Form::Single, steps);
    ASSERT_EQ(whole.error, "");
    ASSERT_FALSE(whole.parameters.empty());
    for (Form form : kForms) {
      RunResult split = runProgram(&context, GetParam(), false, form, steps);
      ASSERT_EQ(split.error, "") << "form " << static_cast<int>(form);
      for (auto [own, other] : {std::pair(&split.outputs, &whole.outputs),
                                {&split.parameters, &whole.parameters},
                                {&split.states, &whole.states}})
        for (const auto &[name, tensor] : *other)
          EXPECT_LE(distance(own->at(name), tensor), 1e-12)
              << name << ", form " << static_cast<int>(form) << ", steps "
              << steps;
    }
  }
}

TEST(Buffers, OfAStepInPlace) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::func::FuncDialect, MtpDialect, spmd::SpmdDialect>();
  auto programs = programsThatStore();
  RunResult momentum = runProgram(&context, programs[0], true, Form::Fused);
  EXPECT_EQ(momentum.error, "");
  // One kernel updates both; the product and the gradient lie in the arena.
  EXPECT_EQ(momentum.kernelLaunches, 1);
  EXPECT_EQ(momentum.arenaBytes, 192 + 256);
  // After an even number of steps both are back in their place.
  RunResult once = runProgram(&context, programs[1], true, Form::Fused, 1),
            twice = runProgram(&context, programs[1], true, Form::Fused, 2);
  ASSERT_EQ(once.error + twice.error, "");
  EXPECT_EQ(distance(once.parameters.at("a"), twice.parameters.at("bb")), 0);
  EXPECT_GT(distance(once.parameters.at("a"), twice.parameters.at("a")), 0.1);
  EXPECT_EQ(distance(once.outputs.at("result0"), once.parameters.at("bb")), 0);
}

INSTANTIATE_TEST_SUITE_P(Programs, Stores,
                         testing::ValuesIn(programsThatStore()),
                         [](const auto &info) { return info.param.name; });

/// Transposes around attention are strides, biases are part of products, sums
/// over ranks take no memory of their own.
TEST(Buffers, OfAnAttentionBlock) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::func::FuncDialect, MtpDialect, spmd::SpmdDialect>();
  for (const TypedProgram &program : allPrograms())
    if (program.name == "uneven_heads") {
      RunResult whole = runProgram(&context, program, true, Form::Fused);
      EXPECT_EQ(whole.error, "");
      EXPECT_EQ(whole.kernelLaunches, 0);
      // q, k, v and the result of attention, 2x5x12 doubles each.
      EXPECT_EQ(whole.arenaBytes, 4 * 960);
      // On two ranks one kernel masks the head that does not exist.
      EXPECT_EQ(runProgram(&context, program, false, Form::Fused).kernelLaunches, 1);
      return;
    }
  FAIL() << "the program is missing";
}

/// The parts of a sum are one collective, and a product runs beside the first.
TEST(Overlap, PartsAreCountedAsOne) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::func::FuncDialect, MtpDialect, spmd::SpmdDialect>();
  for (const TypedProgram &program : allPrograms())
    if (program.name == "row_parallel_in_parts") {
      RunResult fused = runProgram(&context, program, false, Form::Fused),
                parts = runProgram(&context, program, false, Form::Overlapped);
      ASSERT_EQ(fused.error + parts.error, "");
      EXPECT_EQ(fused.meanwhile, 0);
      EXPECT_EQ(parts.meanwhile, 1);
      ASSERT_EQ(fused.collectives.size(), 1u);
      ASSERT_EQ(parts.collectives.size(), 2u);
      EXPECT_EQ(fused.collectives[0].count, 1);
      EXPECT_EQ(parts.collectives[0].count, 1);
      EXPECT_EQ(parts.collectives[1].count, 0);
      EXPECT_EQ(parts.collectives[0].bytes + parts.collectives[1].bytes,
                fused.collectives[0].bytes);
      // They lie where the whole sum does.
      EXPECT_EQ(parts.arenaBytes, fused.arenaBytes);
      return;
    }
  FAIL() << "the program is missing";
}

INSTANTIATE_TEST_SUITE_P(Programs, OnItsMesh, testing::ValuesIn(allPrograms()),
                         [](const auto &info) { return info.param.name; });

} // namespace
