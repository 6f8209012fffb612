// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/codegen/KernelRunner.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mtp;
using namespace mtp::test;

namespace {

std::unique_ptr<MLIRContext> makeContext() {
  auto context = std::make_unique<MLIRContext>();
  context->loadDialect<MtpDialect, spmd::SpmdDialect, func::FuncDialect>();
  return context;
}

/// Every func of a file against the interpreter.
void checkFile(const std::string &file, double tolerance) {
  auto context = makeContext();
  auto module = parseSourceFile<ModuleOp>(MTP_TEST_DIR "/" + file, context.get());
  ASSERT_TRUE(module) << file;
  KernelRunner runner(*module);
  for (auto func : module->getOps<func::FuncOp>()) {
    auto arguments = randomArguments(func, 17);
    auto expected = interpret(func, arguments);
    auto actual = runner.run(func, arguments);
    double allowed = tolerance;
    if (auto own = func->getAttrOfType<FloatAttr>("test.tolerance"))
      allowed = own.getValueAsDouble();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(difference(actual[i], expected[i], allowed), "") << func.getName().str() << " result " << i;
    EXPECT_EQ(runner.fault(), 0) << func.getName().str();
  }
}

} // namespace

TEST(Kernels, ElementwiseOpsAgreeWithTheInterpreter) { checkFile("elementwise.mlir", 2e-6); }
TEST(Kernels, MovesAgreeWithTheInterpreter) { checkFile("moves.mlir", 1e-6); }
TEST(Kernels, RowsAgreeWithTheInterpreter) { checkFile("rows.mlir", 3e-6); }
TEST(Kernels, BlocksOfRanksAgreeWithTheInterpreter) { checkFile("blocks.mlir", 1e-6); }
