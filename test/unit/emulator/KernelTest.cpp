// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- KernelTest.cpp - device code computes what ops mean ----------------===//
#include "test/unit/codegen/KernelRunner.h"
#include "test/unit/emulator/EmulatedRunner.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mtp;
using namespace mtp::test;

namespace {

/// Every func of a file of the CPU's tests against the interpreter.
void checkFile(const std::string &file, Road road, double tolerance) {
  MLIRContext context;
  context.loadDialect<MtpDialect, spmd::SpmdDialect, func::FuncDialect>();
  auto module =
      parseSourceFile<ModuleOp>(MTP_CODEGEN_TEST_DIR "/" + file, &context);
  ASSERT_TRUE(module) << file;
  EmulatedRunner runner(*module, road);
  for (auto func : module->getOps<func::FuncOp>()) {
    auto arguments = randomArguments(func, 17);
    auto expected = interpret(func, arguments);
    std::vector<Tensor> actual;
    try {
      actual = runner.run(func, arguments);
    } catch (const std::exception &error) {
      ADD_FAILURE() << func.getName().str() << ": " << error.what();
      continue;
    }
    double allowed = tolerance;
    if (auto own = func->getAttrOfType<FloatAttr>("test.tolerance"))
      allowed = own.getValueAsDouble();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(difference(actual[i], expected[i], allowed), "")
          << func.getName().str() << " result " << i;
    EXPECT_EQ(runner.fault(), 0) << func.getName().str();
  }
}

} // namespace

class DeviceCode : public testing::TestWithParam<Road> {};

TEST_P(DeviceCode, ElementwiseOpsAgreeWithTheInterpreter) {
  checkFile("elementwise.mlir", GetParam(), 2e-6);
}
TEST_P(DeviceCode, MovesAgreeWithTheInterpreter) {
  checkFile("moves.mlir", GetParam(), 1e-6);
}
TEST_P(DeviceCode, RowsAgreeWithTheInterpreter) {
  checkFile("rows.mlir", GetParam(), 3e-6);
}
TEST_P(DeviceCode, BlocksOfRanksAgreeWithTheInterpreter) {
  checkFile("blocks.mlir", GetParam(), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Roads, DeviceCode,
                         testing::Values(Road::Fused, Road::Single),
                         [](const auto &info) {
                           return info.param == Road::Fused ? "Fused"
                                                            : "Single";
                         });
