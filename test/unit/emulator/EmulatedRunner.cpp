// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/emulator/EmulatedRunner.h"
#include "compiler/codegen/emulate/EmulatorLowering.h"
#include "runtime/abi/GpuAbi.h"

#include "mlir/IR/Diagnostics.h"

#include <cstdlib>
#include <stdexcept>

using namespace mlir;
using namespace mtp;
using namespace mtp::test;

EmulatedRunner::EmulatedRunner(ModuleOp source, Road road,
                               const std::string &arch, Change change)
    : road(road) {
  std::string messages;
  ScopedDiagnosticHandler handler(source.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    messages += diagnostic.str() + "\n";
                                    return success();
                                  });
  std::string precision = "f32";
  for (auto func : source.getOps<func::FuncOp>())
    if (auto own = func->getAttrOfType<StringAttr>("test.precision"))
      precision = own.str();
  module =
      std::make_unique<GpuKernelModule>(source.getContext(), arch, precision);
  for (auto func : source.getOps<func::FuncOp>()) {
    if (road == Road::Fused) {
      KernelInfo info;
      auto index = module->addFunction(func, info);
      if (failed(index))
        throw std::runtime_error(messages);
      fused[func.getName().str()] = *index;
      continue;
    }
    for (Operation &op : func.getBody().front().without_terminator()) {
      auto made = module->launches(
          &op, [](Value) { return ValuePlace{{}, /*alignment=*/64}; });
      if (failed(made))
        throw std::runtime_error(messages);
      launches[&op] = *made;
    }
  }
  if (failed(module->finish({})))
    throw std::runtime_error(messages);
  if (change)
    change(module->code());
  KernelOptions options;
  if (const char *directory = getenv("MTP_DUMP_KERNELS"))
    options.dumpDir = directory;
  std::string error;
  auto object = emitEmulated(module->code(), options, error);
  if (failed(object))
    throw std::runtime_error(error + "\n" + messages);
  loaded =
      std::make_unique<emulator::Kernels>(object->bytes, object->cpuFeatures);
}

std::string EmulatedRunner::ptx() {
  std::string error;
  auto text = module->emitPtx(error);
  if (failed(text))
    throw std::runtime_error(error);
  return *text;
}

void EmulatedRunner::launch(int kernel, const std::vector<char *> &buffers) {
  MtpGpuRank rank{nullptr, /*step=*/0, /*seed=*/0, &lastFault};
  std::vector<char *> parameters{reinterpret_cast<char *>(&rank)};
  parameters.insert(parameters.end(), buffers.begin(), buffers.end());
  const GpuKernel &shape = module->gpuKernels()[kernel];
  loaded->launch(loaded->find(shape.symbol), {shape.grid, shape.block},
                 parameters);
}

std::vector<Tensor> EmulatedRunner::run(func::FuncOp func,
                                        const std::vector<Tensor> &arguments) {
  lastFault = 0;
  CallMemory memory;
  for (auto [type, tensor] : llvm::zip(func.getArgumentTypes(), arguments))
    memory.add(type, tensor);
  std::vector<Tensor> results;
  if (road == Road::Fused) {
    for (Type type : func.getResultTypes())
      memory.add(type);
    launch(fused.at(func.getName().str()), memory.buffers);
    memory.checkGuards();
    for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
      results.push_back(memory.read(arguments.size() + i, type));
    return results;
  }
  llvm::DenseMap<Value, size_t> at;
  for (auto [i, argument] : llvm::enumerate(func.getArguments()))
    at[argument] = i;
  for (Operation &op : func.getBody().front().without_terminator()) {
    bool isProduct = launches.at(&op).empty();
    std::vector<Tensor> given, computed;
    if (isProduct) {
      for (Value operand : op.getOperands())
        given.push_back(memory.read(at.at(operand), operand.getType()));
      computed = interpret(&op, given);
    }
    for (OpResult result : op.getResults()) {
      at[result] = memory.buffers.size();
      if (isProduct)
        memory.add(result.getType(), computed[result.getResultNumber()]);
      else
        memory.add(result.getType());
    }
    for (const KernelLaunch &call : launches.at(&op)) {
      std::vector<char *> buffers;
      for (Value value : call.buffers)
        buffers.push_back(memory.buffers[at.at(value)]);
      launch(call.index, buffers);
    }
  }
  memory.checkGuards();
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    results.push_back(memory.read(at.at(value), value.getType()));
  return results;
}
