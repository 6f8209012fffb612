// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/Fusion.h"
#include "test/unit/codegen/KernelRunner.h"
#include "test/unit/codegen/RandomRegion.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"

#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mtp;
using namespace mtp::test;

namespace {

constexpr double kTolerance =
    2e-4; // norms of nearly equal elements amplify rounding

int count(int normal) {
  const char *scale = getenv("MTP_TEST_SCALE");
  return scale ? normal * std::max(1, atoi(scale)) : normal;
}
uint64_t firstSeed() {
  const char *seed = getenv("MTP_TEST_SEED");
  return seed ? strtoull(seed, nullptr, 10) : 1;
}

std::unique_ptr<MLIRContext> makeContext() {
  auto context = std::make_unique<MLIRContext>();
  context->loadDialect<MtpDialect, spmd::SpmdDialect, func::FuncDialect>();
  return context;
}

std::string text(func::FuncOp func) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  func.print(stream);
  return result;
}

} // namespace

TEST(RandomRegions, KernelsAgreeWithTheInterpreter) {
  auto context = makeContext();
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(UnknownLoc::get(context.get()));
  std::set<std::string> covered;
  for (int i = 0; i < count(200); ++i)
    randomRegion(*module, "random" + std::to_string(i), firstSeed() + i,
                 2 + i % 12, false, covered);
  ASSERT_TRUE(succeeded(verify(*module)));
  KernelRunner runner(*module);
  for (auto func : module->getOps<func::FuncOp>()) {
    auto arguments = randomArguments(func, 99);
    auto expected = interpret(func, arguments);
    auto actual = runner.run(func, arguments);
    EXPECT_EQ(runner.fault(), 0);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(difference(actual[i], expected[i], kTolerance), "")
          << "result " << i << " of\n"
          << text(func);
  }
}

/// Fused as spmd-fuse does it; what is left outside runs in the interpreter.
TEST(RandomRegions, FusedProgramsAgreeWithTheInterpreter) {
  auto context = makeContext();
  std::set<std::string> covered;
  size_t kernels = 0, ops = 0;
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::vector<std::vector<Tensor>> arguments, expected;
  std::vector<std::string> texts;
  std::vector<Operation *> fused;
  for (int i = 0; i < count(150); ++i) {
    modules.push_back(ModuleOp::create(UnknownLoc::get(context.get())));
    auto func = randomRegion(*modules.back(), "main", firstSeed() + 5000 + i,
                             4 + i % 24, true, covered);
    texts.push_back(text(func));
    arguments.push_back(randomArguments(func, 7));
    expected.push_back(interpret(func, arguments.back()));
    Block &block = func.getBody().front();
    ops += block.getOperations().size();
    for (const FusionGroup &group : planFusion(block))
      outlineGroup(group);
    ASSERT_TRUE(succeeded(verify(*modules.back()))) << texts.back();
    for (auto op : block.getOps<spmd::FusedOp>())
      fused.push_back(op);
  }
  kernels = fused.size();
  EXPECT_LT(kernels * 2, ops);
  KernelRunner runner(context.get(), fused);
  for (size_t m = 0; m < modules.size(); ++m) {
    auto func = *modules[m]->getOps<func::FuncOp>().begin();
    llvm::DenseMap<Value, Tensor> values;
    for (auto [argument, tensor] : llvm::zip(func.getArguments(), arguments[m]))
      values[argument] = tensor;
    std::vector<Tensor> actual;
    for (Operation &op : func.getBody().front()) {
      std::vector<Tensor> operands;
      for (Value operand : op.getOperands())
        operands.push_back(values[operand]);
      if (isa<func::ReturnOp>(op)) {
        actual = operands;
        break;
      }
      auto results = isa<spmd::FusedOp>(op)
                         ? runner.run(runner.indexOf(&op), op.getOperandTypes(),
                                      op.getResultTypes(), operands, 2)
                         : interpret(&op, operands);
      for (auto [result, tensor] : llvm::zip(op.getResults(), results))
        values[result] = tensor;
    }
    for (size_t i = 0; i < actual.size(); ++i)
      ASSERT_EQ(difference(actual[i], expected[m][i], kTolerance), "")
          << "result " << i << " of\n"
          << texts[m] << "fused\n"
          << text(func);
  }
  // Every op of the generator has occurred.
  for (const char *name : {"softmax",
                           "layer_norm",
                           "rms_norm",
                           "rotary",
                           "concat",
                           "pad",
                           "gather",
                           "gather_elements",
                           "take_block",
                           "place_block",
                           "mask_tail",
                           "keep_on_root",
                           "transpose",
                           "reshape",
                           "gelu_gradient",
                           "silu_gradient",
                           "philox",
                           "softmax_gradient",
                           "log_softmax_gradient",
                           "layer_norm_gradient",
                           "rms_norm_gradient"})
    EXPECT_TRUE(covered.count(name)) << name;
}
