// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProgramTest.cpp - n ranks compute what one rank computes
//------------===//
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

class OnItsMesh : public testing::TestWithParam<TypedProgram> {};

TEST_P(OnItsMesh, EqualsOneRank) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::func::FuncDialect, MtpDialect, spmd::SpmdDialect>();
  RunResult whole = runProgram(&context, GetParam(), true, false);
  ASSERT_EQ(whole.error, "");
  for (bool fuse : {false, true}) {
    RunResult split = runProgram(&context, GetParam(), false, fuse);
    ASSERT_EQ(split.error, "") << "fuse " << fuse;
    for (const auto &[name, tensor] : whole.outputs)
      EXPECT_LE(distance(split.outputs.at(name), tensor),
                tensor.type == DType::F64 ? 1e-12 : 2e-6)
          << name << ", fuse " << fuse;
  }
}

std::vector<TypedProgram> allPrograms() {
  std::vector<TypedProgram> programs;
  for (const char *file :
       {"passes/mtp-partition/dense-layer.mlir",
        "passes/mtp-partition/conversions.mlir",
        "passes/mtp-partition/padding.mlir", "unit/program/layers.mlir"})
    for (TypedProgram &program :
         readPrograms(std::string(MTP_TEST_PROGRAMS) + "/" + file))
      programs.push_back(std::move(program));
  return programs;
}

/// Transposes around attention are strides, biases are part of products, sums
/// over ranks take no memory of their own.
TEST(Buffers, OfAnAttentionBlock) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::func::FuncDialect, MtpDialect, spmd::SpmdDialect>();
  for (const TypedProgram &program : allPrograms())
    if (program.name == "uneven_heads") {
      RunResult whole = runProgram(&context, program, true, true);
      EXPECT_EQ(whole.error, "");
      EXPECT_EQ(whole.kernelLaunches, 0);
      // q, k, v and the result of attention, 2x5x12 doubles each.
      EXPECT_EQ(whole.arenaBytes, 4 * 960);
      // On two ranks one kernel masks the head that does not exist.
      EXPECT_EQ(runProgram(&context, program, false, true).kernelLaunches, 1);
      return;
    }
  FAIL() << "the program is missing";
}

INSTANTIATE_TEST_SUITE_P(Programs, OnItsMesh, testing::ValuesIn(allPrograms()),
                         [](const auto &info) { return info.param.name; });

} // namespace
