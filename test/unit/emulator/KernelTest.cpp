// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- KernelTest.cpp - device code computes what ops mean ----------------===//
#include "compiler/codegen/ArtifactTypes.h"
#include "compiler/codegen/LibraryCalls.h"
#include "compiler/codegen/emit/IndexExpr.h"
#include "runtime/kernels/LibraryKernel.h"
#include "test/unit/codegen/KernelRunner.h"
#include "test/unit/emulator/EmulatedRunner.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mtp;
using namespace mtp::test;

namespace {

/// The results of an op by the CPU's library; those that nothing reads are
/// zero.
std::vector<Tensor> computeByLibrary(Operation *op,
                                     const std::vector<Tensor> &operands) {
  auto call = libraryCallOf(op);
  if (failed(call))
    throw std::runtime_error("no kernel on the CPU");
  LibrarySite site;
  site.kind = call->kind;
  site.attributes = call->attributes;
  site.results = static_cast<int64_t>(call->results.size());
  CallMemory memory;
  llvm::DenseMap<Value, size_t> at;
  auto describe = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    site.operands.push_back({*dtypeOf(type.getElementType()),
                             vectorOf(type.getShape()),
                             vectorOf(rowMajorStrides(type.getShape()))});
  };
  for (Value value : call->inputs) {
    describe(value);
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get() == value &&
          memory.buffers.size() < site.operands.size())
        memory.add(value.getType(), operands[operand.getOperandNumber()]);
  }
  for (Value value : call->results) {
    describe(value);
    at[value] = memory.buffers.size();
    memory.add(value.getType());
  }
  std::string error;
  auto kernel = prepareLibraryKernel(site, PrepareContext(), error);
  MtpRank rank{};
  if (!kernel || !kernel->run(&rank, memory.buffers.data(), error))
    throw std::runtime_error(error);
  std::vector<Tensor> results;
  for (OpResult result : op->getResults()) {
    auto it = at.find(result);
    if (it != at.end()) {
      results.push_back(memory.read(it->second, result.getType()));
      continue;
    }
    Tensor none{cast<RankedTensorType>(result.getType()).getShape().vec(), {}};
    none.data.resize(none.elements());
    results.push_back(std::move(none));
  }
  return results;
}

std::optional<std::vector<Tensor>>
runOrFail(EmulatedRunner &runner, func::FuncOp func,
          const std::vector<Tensor> &arguments) {
  try {
    return runner.run(func, arguments);
  } catch (const std::exception &error) {
    ADD_FAILURE() << func.getName().str() << ": " << error.what();
    return std::nullopt;
  }
}

/// Every func of a file of the CPU's tests against the interpreter.
void checkFile(const std::string &path, Road road, double tolerance) {
  MLIRContext context;
  context.loadDialect<MtpDialect, spmd::SpmdDialect, func::FuncDialect>();
  auto module = parseSourceFile<ModuleOp>(path, &context);
  ASSERT_TRUE(module) << path;
  EmulatedRunner runner(*module, road);
  for (auto func : module->getOps<func::FuncOp>()) {
    auto arguments = randomArguments(func, 17);
    auto expected = interpret(func, arguments);
    auto actual = runOrFail(runner, func, arguments);
    if (!actual)
      continue;
    double allowed = tolerance;
    if (auto own = func->getAttrOfType<FloatAttr>("test.tolerance"))
      allowed = own.getValueAsDouble();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(difference((*actual)[i], expected[i], allowed), "")
          << func.getName().str() << " result " << i;
    EXPECT_EQ(runner.fault(), 0) << func.getName().str();
  }
}

/// Every op of a func by its own kernels against the CPU's library.
void checkByLibrary(EmulatedRunner &runner, func::FuncOp func,
                    double tolerance) {
  auto arguments = randomArguments(func, 23);
  llvm::DenseMap<Value, Tensor> values;
  for (auto [argument, tensor] : llvm::zip(func.getArguments(), arguments))
    values[argument] = tensor;
  for (Operation &op : func.getBody().front().without_terminator()) {
    std::vector<Tensor> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values[operand]);
    for (auto [result, tensor] :
         llvm::zip(op.getResults(), computeByLibrary(&op, operands)))
      values[result] = tensor;
  }
  auto actual = runOrFail(runner, func, arguments);
  if (!actual)
    return;
  auto wanted = func.getBody().front().getTerminator()->getOperands();
  for (size_t i = 0; i < actual->size(); ++i)
    EXPECT_EQ(difference((*actual)[i], values[wanted[i]], tolerance), "")
        << func.getName().str() << " result " << i;
  EXPECT_EQ(runner.fault(), 0) << func.getName().str();
}

} // namespace

TEST(DeviceLibrary, AgreesWithTheCpus) {
  MLIRContext context;
  context.loadDialect<MtpDialect, spmd::SpmdDialect, func::FuncDialect>();
  auto module = parseSourceFile<ModuleOp>(MTP_EMULATOR_TEST_DIR "/library.mlir",
                                          &context);
  ASSERT_TRUE(module);
  EmulatedRunner runner(*module, Road::Single);
  for (auto func : module->getOps<func::FuncOp>())
    checkByLibrary(runner, func, 5e-6);
}

/// Every func multiplies by matrix instructions, in a precision of its own.
static void checkMatrixFile(const std::string &file) {
  MLIRContext context;
  context.loadDialect<MtpDialect, spmd::SpmdDialect, func::FuncDialect>();
  auto module =
      parseSourceFile<ModuleOp>(MTP_EMULATOR_TEST_DIR "/" + file, &context);
  ASSERT_TRUE(module);
  for (auto func : module->getOps<func::FuncOp>()) {
    OwningOpRef<ModuleOp> alone = ModuleOp::create(func.getLoc());
    OpBuilder builder = OpBuilder::atBlockEnd(alone->getBody());
    auto copy = cast<func::FuncOp>(builder.clone(*func));
    EmulatedRunner runner(*alone, Road::Single);
    int64_t products = 0;
    runner.code().walk([&](NVVM::MmaOp) { ++products; });
    EXPECT_GT(products, 0) << copy.getName().str();
    checkByLibrary(runner, copy, 2e-2);
  }
}

TEST(DeviceLibrary, AgreesWithTheCpusInMatrixInstructions) {
  checkMatrixFile("matrix.mlir");
}
TEST(DeviceLibrary, AgreesWithTheCpusInGradientsByMatrixInstructions) {
  checkMatrixFile("matrix-gradient.mlir");
}

class DeviceCode : public testing::TestWithParam<Road> {};

TEST_P(DeviceCode, ElementwiseOpsAgreeWithTheInterpreter) {
  checkFile(MTP_CODEGEN_TEST_DIR "/elementwise.mlir", GetParam(), 2e-6);
}
TEST_P(DeviceCode, MovesAgreeWithTheInterpreter) {
  checkFile(MTP_CODEGEN_TEST_DIR "/moves.mlir", GetParam(), 1e-6);
}
TEST_P(DeviceCode, RowsAgreeWithTheInterpreter) {
  checkFile(MTP_CODEGEN_TEST_DIR "/rows.mlir", GetParam(), 3e-6);
}
TEST_P(DeviceCode, WideRowsAgreeWithTheInterpreter) {
  checkFile(MTP_EMULATOR_TEST_DIR "/wide.mlir", GetParam(), 3e-6);
}
TEST_P(DeviceCode, BlocksOfRanksAgreeWithTheInterpreter) {
  checkFile(MTP_CODEGEN_TEST_DIR "/blocks.mlir", GetParam(), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Roads, DeviceCode,
                         testing::Values(Road::Fused, Road::Single),
                         [](const auto &info) {
                           return info.param == Road::Fused ? "Fused"
                                                            : "Single";
                         });
