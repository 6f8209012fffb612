// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PathTest.cpp - PTX and emulated numbers come from one module -------===//
//
// An operation of a kernel is changed in the gpu.module. Then the emulated
// numbers are others, and so is the PTX that is printed from the same module.
//
//===----------------------------------------------------------------------===//
#include "test/unit/codegen/KernelRunner.h"
#include "test/unit/emulator/EmulatedRunner.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mtp;
using namespace mtp::test;

namespace {

/// A kernel of each family, and what is changed in it.
struct Kernel {
  std::string name, file, func, operation;
  Road road;
};

const std::string common = MTP_CODEGEN_TEST_DIR "/";
const std::string own = MTP_EMULATOR_TEST_DIR "/";

const Kernel kernels[] = {
    {"Elements", common + "elementwise.mlir", "bias_gelu", "arith.constant",
     Road::Fused},
    {"Constants", common + "elementwise.mlir", "scalar_constants", "arith.mulf",
     Road::Fused},
    {"Moves", common + "moves.mlir", "heads", "llvm.load", Road::Fused},
    {"LookUps", common + "moves.mlir", "embedding", "arith.addf", Road::Fused},
    {"Rotary", common + "moves.mlir", "rotary", "arith.mulf", Road::Fused},
    {"Rows", common + "rows.mlir", "residual_layer_norm", "arith.mulf",
     Road::Fused},
    {"Softmax", common + "rows.mlir", "softmax", "gpu.shuffle", Road::Fused},
    {"Columns", common + "rows.mlir", "column_sum", "arith.addf", Road::Fused},
    {"Attention", own + "library.mlir", "attention_of_groups", "arith.mulf",
     Road::Single},
    {"AttentionGradient", own + "library.mlir", "attention_back", "arith.mulf",
     Road::Single},
    {"MatrixAttention", own + "matrix.mlir", "attention_f16", "nvvm.mma.sync",
     Road::Single},
    {"RoundedAttention", own + "matrix.mlir", "masked_attention_tf32",
     "arith.constant", Road::Single},
    {"LookUpGradient", own + "library.mlir", "rows_of_a_table_back",
     "arith.addf", Road::Single},
    {"Convolution", own + "library.mlir", "convolution", "arith.mulf",
     Road::Single},
    {"ConvolutionGradient", own + "library.mlir", "convolution_back",
     "arith.mulf", Road::Single},
    {"Lines", own + "library.mlir", "lines", "arith.addf", Road::Single},
    {"Scatter", own + "library.mlir", "scattered", "llvm.load", Road::Single},
    {"Product", own + "library.mlir", "integer_product", "arith.muli",
     Road::Single}};

/// Puts another operation of the same type in the place of `op`; false if it
/// can't be changed.
bool change(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  auto replace = [&](Value other) {
    op->getResult(0).replaceAllUsesWith(other);
    return true;
  };
  if (isa<arith::AddFOp>(op))
    return replace(arith::SubFOp::create(builder, loc, op->getOperand(0),
                                         op->getOperand(1)));
  if (isa<arith::MulFOp>(op))
    return replace(arith::AddFOp::create(builder, loc, op->getOperand(0),
                                         op->getOperand(1)));
  if (isa<arith::MulIOp>(op))
    return replace(arith::AddIOp::create(builder, loc, op->getOperand(0),
                                         op->getOperand(1)));
  if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    // The first element instead of its own.
    auto gep = load.getAddr().getDefiningOp<LLVM::GEPOp>();
    if (!gep)
      return false;
    load.getAddrMutable().set(gep.getBase());
    return true;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = dyn_cast<FloatAttr>(constant.getValue());
    if (!value || !std::isfinite(value.getValueAsDouble()))
      return false;
    constant.setValueAttr(FloatAttr::get(
        value.getType(), 1.25 * value.getValueAsDouble() + 0.125));
    return true;
  }
  if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) {
    Value lane = arith::ConstantIntOp::create(builder, loc,
                                              shuffle.getOffset().getType(), 3);
    shuffle.getOffsetMutable().set(lane);
    return true;
  }
  if (isa<NVVM::MmaOp>(op)) {
    Value first = op->getOperand(0);
    op->setOperand(0, op->getOperand(1));
    op->setOperand(1, first);
    return true;
  }
  return false;
}

/// What a func's kernels are after a change of operation `place` of a name; -1:
/// of none.
struct Outcome {
  bool changed = false;
  std::vector<Tensor> numbers;
  std::string ptx;
};

Outcome outcome(ModuleOp module, func::FuncOp func, const Kernel &kernel,
                int64_t place) {
  Outcome result;
  EmulatedRunner runner(
      module, kernel.road, "sm_80", [&](gpu::GPUModuleOp code) {
        SmallVector<Operation *> found;
        code.walk([&](Operation *op) {
          if (op->getName().getStringRef() == kernel.operation)
            found.push_back(op);
        });
        if (place >= 0 && place < int64_t(found.size()))
          result.changed = change(found[place]);
      });
  result.numbers = runner.run(func, randomArguments(func, 29));
  result.ptx = runner.ptx();
  return result;
}

class OnePath : public testing::TestWithParam<Kernel> {};

} // namespace

TEST_P(OnePath, ChangesOfAKernelAreInItsPtxAndItsNumbers) {
  const Kernel &kernel = GetParam();
  MLIRContext context;
  context.loadDialect<MtpDialect, spmd::SpmdDialect, func::FuncDialect>();
  auto file = parseSourceFile<ModuleOp>(kernel.file, &context);
  ASSERT_TRUE(file);
  OwningOpRef<ModuleOp> module = ModuleOp::create(file->getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto original = file->lookupSymbol<func::FuncOp>(kernel.func);
  ASSERT_TRUE(original);
  auto func = cast<func::FuncOp>(builder.clone(*original));
  auto isSame = [](const Outcome &a, const Outcome &b) {
    for (size_t i = 0; i < a.numbers.size(); ++i)
      if (!difference(a.numbers[i], b.numbers[i], 1e-6).empty())
        return false;
    return true;
  };
  Outcome before = outcome(*module, func, kernel, -1);
  Outcome again = outcome(*module, func, kernel, -1);
  EXPECT_EQ(again.ptx, before.ptx);
  EXPECT_TRUE(isSame(again, before));
  // Not every operation is part of every result.
  int seen = 0;
  for (int64_t place = 0; place < 16 && seen == 0; ++place) {
    Outcome after = outcome(*module, func, kernel, place);
    if (!after.changed || isSame(after, before))
      continue;
    EXPECT_NE(after.ptx, before.ptx) << "place " << place;
    ++seen;
  }
  EXPECT_EQ(seen, 1) << "no change of " << kernel.operation << " was seen";
}

INSTANTIATE_TEST_SUITE_P(Kernels, OnePath, testing::ValuesIn(kernels),
                         [](const auto &info) { return info.param.name; });
