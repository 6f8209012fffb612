// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/codegen/KernelRunner.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
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
  auto module =
      parseSourceFile<ModuleOp>(MTP_TEST_DIR "/" + file, context.get());
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
      EXPECT_EQ(difference(actual[i], expected[i], allowed), "")
          << func.getName().str() << " result " << i;
    EXPECT_EQ(runner.fault(), 0) << func.getName().str();
  }
}

} // namespace

TEST(Kernels, ElementwiseOpsAgreeWithTheInterpreter) {
  checkFile("elementwise.mlir", 2e-6);
}
TEST(Kernels, MovesAgreeWithTheInterpreter) { checkFile("moves.mlir", 1e-6); }
TEST(Kernels, RowsAgreeWithTheInterpreter) { checkFile("rows.mlir", 3e-6); }
TEST(Kernels, BlocksOfRanksAgreeWithTheInterpreter) {
  checkFile("blocks.mlir", 1e-6);
}

/// Infinities, NaN, zeros, subnormal and huge numbers, each function's borders.
TEST(Kernels, SpecialValuesAgreeElementByElement) {
  auto context = makeContext();
  auto module =
      parseSourceFile<ModuleOp>(MTP_TEST_DIR "/special.mlir", context.get());
  ASSERT_TRUE(module);
  KernelRunner runner(*module);
  std::vector<double> values = {0,
                                -0.0,
                                INFINITY,
                                -INFINITY,
                                NAN,
                                1e-40,
                                -1e-40,
                                1.1754944e-38,
                                3e38,
                                -3e38,
                                1,
                                -1,
                                0.5,
                                -0.5,
                                1e-8,
                                -1e-8,
                                88.7,
                                89,
                                -87,
                                -87.4,
                                -88,
                                -103,
                                -104,
                                -1e4,
                                1e4,
                                7.9,
                                8,
                                9,
                                -9,
                                20,
                                -20,
                                2.5,
                                3.5,
                                -2.5,
                                255,
                                256,
                                300,
                                -300,
                                2147483520.0,
                                2147483648.0,
                                -2147483648.0,
                                -3e9,
                                3e9,
                                9.3e18,
                                1e20,
                                -1e20,
                                1e-3,
                                1e-4,
                                1e5,
                                0.999999,
                                1.000001};
  values.resize(64, 3.25);
  for (double &value : values)
    value = static_cast<float>(value);
  for (auto func : module->getOps<func::FuncOp>()) {
    Tensor input{{64}, values};
    auto expected = interpret(func, {input});
    auto actual = runner.run(func, {input});
    double tolerance = 1e-6;
    if (auto own = func->getAttrOfType<FloatAttr>("test.tolerance"))
      tolerance = own.getValueAsDouble();
    for (size_t r = 0; r < expected.size(); ++r)
      for (size_t i = 0; i < expected[r].data.size(); ++i) {
        double a = actual[r].data[i], b = expected[r].data[i];
        bool same =
            a == b || (std::isnan(a) && std::isnan(b)) ||
            std::fabs(a - b) <= tolerance * std::fabs(b) ||
            std::fabs(a - b) < 2e-38 ||
            (std::isinf(a) && std::fabs(b) > 3.4e38 && (a > 0) == (b > 0));
        EXPECT_TRUE(same) << func.getName().str() << " result " << r << " of "
                          << values[i % 64] << " (" << i << ") is " << a
                          << ", expected " << b;
      }
  }
}

TEST(Kernels, RowsOfInfinitiesAndNan) {
  auto context = makeContext();
  auto module = parseSourceString<ModuleOp>(R"mlir(
func.func @softmax(%x: tensor<5x20xf32>) -> (tensor<5x20xf32>, tensor<5x20xf32>) {
  %0 = mtp.softmax %x dim 1 : (tensor<5x20xf32>) -> tensor<5x20xf32>
  %1 = mtp.log_softmax %x dim 1 : (tensor<5x20xf32>) -> tensor<5x20xf32>
  return %0, %1 : tensor<5x20xf32>, tensor<5x20xf32>
})mlir",
                                            context.get());
  KernelRunner runner(*module);
  Tensor input{{5, 20}, std::vector<double>(100, 1.0)};
  for (int i = 0; i < 20; ++i) {
    input.data[i] = -INFINITY;                     // row 0: nothing
    input.data[20 + i] = i == 3 ? 1e30 : -1e30;    // row 1: huge
    input.data[40 + i] = i == 7 ? NAN : 0;         // row 2: NaN
    input.data[60 + i] = i < 10 ? -INFINITY : 0.5; // row 3: masked
  }
  auto func = *module->getOps<func::FuncOp>().begin();
  auto expected = interpret(func, {input});
  auto actual = runner.run(func, {input});
  for (int r = 0; r < 2; ++r)
    for (int i = 0; i < 100; ++i) {
      double a = actual[r].data[i], b = expected[r].data[i];
      EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || a == b ||
                  std::fabs(a - b) <= 1e-6 * std::max(1.0, std::fabs(b)))
          << "result " << r << " element " << i << " is " << a << ", expected "
          << b;
    }
}

TEST(Kernels, IntegersDivideWithoutTraps) {
  auto context = makeContext();
  auto module = parseSourceString<ModuleOp>(R"mlir(
func.func @divide(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %0 = mtp.div %x, %y : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = mtp.mod %x, %y : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %0, %1 : tensor<4xi32>, tensor<4xi32>
})mlir",
                                            context.get());
  KernelRunner runner(*module);
  auto func = *module->getOps<func::FuncOp>().begin();
  auto actual = runner.run(
      func, {{{4}, {7, -2147483648.0, -7, 5}}, {{4}, {0, -1, 2, -3}}});
  EXPECT_EQ(actual[0].data, (std::vector<double>{0, -2147483648.0, -3, -1}));
  EXPECT_EQ(actual[1].data, (std::vector<double>{0, 0, 1, -1}));
}

/// The test vectors that Random123 publishes (kat_vectors).
TEST(Kernels, PhiloxGivesThePublishedNumbers) {
  struct Vector {
    const char *index, *step, *seed;
    int64_t stream;
    double word;
  };
  for (const Vector &v : {Vector{"0", "0", "0", 0, 0x6627e8d5},
                          {"-1", "-1", "-1", 0xffffffff, 0x408f276d},
                          {"0x85a308d3243f6a88", "0x13198a2e",
                           "0x299f31d0a4093822", 0x03707344, 0xd16cfe09}}) {
    auto context = makeContext();
    auto constant = [](const char *name, const char *value) {
      bool isHex = StringRef(value).starts_with("0x");
      // A literal has to fit i64: bits above go through the sign.
      int64_t bits = isHex ? static_cast<int64_t>(strtoull(value, nullptr, 16))
                           : strtoll(value, nullptr, 10);
      return std::string("  %") + name + " = mtp.constant dense<" +
             std::to_string(bits) + "> : tensor<i64>\n";
    };
    auto module = parseSourceString<ModuleOp>(
        "func.func @bits() -> tensor<i64> {\n" + constant("i", v.index) +
            constant("s", v.seed) + constant("t", v.step) +
            "  %r = mtp.philox %i, %s, %t {stream = " +
            std::to_string(v.stream) +
            " : i64} : (tensor<i64>, tensor<i64>, tensor<i64>) -> "
            "tensor<i64>\n  return %r : tensor<i64>\n}\n",
        context.get());
    ASSERT_TRUE(module);
    KernelRunner runner(*module);
    auto func = *module->getOps<func::FuncOp>().begin();
    EXPECT_EQ(runner.run(func, {})[0].data[0], v.word);
  }
}

TEST(Kernels, IndexOutsideIsAFaultAndReadsNothingElse) {
  auto context = makeContext();
  auto module = parseSourceString<ModuleOp>(R"mlir(
func.func @look(%t: tensor<10x4xf32>, %i: tensor<3xi64>) -> tensor<3x4xf32> {
  %0 = mtp.gather %t[%i] dim 0 : (tensor<10x4xf32>, tensor<3xi64>) -> tensor<3x4xf32> loc("/wte/Gather")
  return %0 : tensor<3x4xf32>
})mlir",
                                            context.get());
  KernelRunner runner(*module);
  auto func = *module->getOps<func::FuncOp>().begin();
  auto arguments = randomArguments(func, 1);
  arguments[1].data = {9, -10, 0};
  runner.run(func, arguments);
  EXPECT_EQ(runner.fault(), 0);
  for (double bad : {10.0, -11.0, 9e15}) {
    arguments[1].data = {1, bad, 0};
    runner.run(func, arguments);
    EXPECT_EQ(runner.fault(), 1) << bad;
  }
  ASSERT_EQ(runner.kernels().faults().size(), 1u);
  EXPECT_EQ(runner.kernels().faults()[0],
            "an index is outside of dimension 0 of 10 elements in node "
            "'/wte/Gather'");
}

/// Equal regions share a kernel, whatever their names and places.
TEST(Kernels, EqualRegionsAreOneKernel) {
  auto context = makeContext();
  std::string text;
  for (int i = 0; i < 48; ++i) {
    std::string n = std::to_string(i);
    text += "func.func @layer" + n +
            "(%x: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {\n"
            "  %a" +
            n +
            " = mtp.add %x, %b : (tensor<8x16xf32>, tensor<16xf32>) -> "
            "tensor<8x16xf32> loc(\"node" +
            n +
            "\")\n"
            "  %y = mtp.gelu %a" +
            n +
            " : (tensor<8x16xf32>) -> tensor<8x16xf32>\n"
            "  return %y : tensor<8x16xf32>\n}\n";
  }
  auto module = parseSourceString<ModuleOp>(text, context.get());
  KernelRunner runner(*module);
  EXPECT_EQ(runner.kernels().kernels().size(), 1u);
  EXPECT_EQ(runner.kernels().cacheKey().size(), 64u);
}

/// Times on one core; run with --gtest_also_run_disabled_tests.
TEST(Kernels, DISABLED_Speed) {
  auto context = makeContext();
  auto module =
      parseSourceFile<ModuleOp>(MTP_TEST_DIR "/speed.mlir", context.get());
  ASSERT_TRUE(module);
  KernelRunner runner(*module);
  for (auto &[stage, ms] : runner.object().stageMs)
    printf("%-22s %8.1f ms\n", stage.c_str(), ms);
  printf("object %zu bytes\n", runner.object().bytes.size());
  for (auto func : module->getOps<func::FuncOp>()) {
    auto arguments = randomArguments(func, 17);
    auto expected = interpret(func, arguments);
    auto actual = runner.run(func, arguments);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(difference(actual[i], expected[i], 3e-6), "")
          << func.getName().str() << " result " << i;
    KernelInfo info = runner.kernels().kernels()[runner.indexOf(func)];
    printf("%-22s %8.1f us   count %ld grain %ld\n",
           func.getName().str().c_str(), runner.time(func, arguments) * 1000,
           long(info.count), long(info.grain));
  }
}
