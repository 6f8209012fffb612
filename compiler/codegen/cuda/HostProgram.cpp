// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cuda/HostProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mtp;

namespace {
/// One entry as a function.
class HostProgram {
public:
  HostProgram(ModuleOp module, const Artifact &artifact,
              const std::vector<GpuKernel> &kernels)
      : module(module), artifact(artifact), kernels(kernels),
        builder(module.getContext()), loc(module.getLoc()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  void add(const Entry &entry) {
    this->entry = &entry;
    size_t count = 3 + entry.inputs.size() + entry.outputs.size() +
                   artifact.parameters.size();
    builder.setInsertionPointToEnd(module.getBody());
    function = func::FuncOp::create(
        builder, loc, entry.name,
        builder.getFunctionType(SmallVector<Type>(count, pointer), {}));
    builder.setInsertionPointToEnd(function.addEntryBlock());
    builder.setInsertionPoint(func::ReturnOp::create(builder, loc));
    SmallVector<OpBuilder::InsertPoint> loops;
    for (const Instruction &step : entry.program)
      addStep(step, loops);
  }

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  Value address(const BufferRef &ref) {
    size_t inputs = entry->inputs.size(), outputs = entry->outputs.size();
    size_t base = ref.space == BufferRef::Space::RankValue ? 1
                  : ref.space == BufferRef::Space::Arena   ? 2
                  : ref.space == BufferRef::Space::Input   ? 3 + ref.index
                  : ref.space == BufferRef::Space::Output
                      ? 3 + inputs + ref.index
                      : 3 + inputs + outputs + ref.index;
    int64_t offset = ref.offset;
    if (ref.space == BufferRef::Space::RankValue)
      offset += ref.index * int64_t(sizeof(int64_t));
    Value start = function.getArgument(base);
    if (offset == 0)
      return start;
    return LLVM::GEPOp::create(
        builder, loc, pointer, builder.getI8Type(), start,
        ArrayRef<LLVM::GEPArg>{arith::ConstantIntOp::create(
                                   builder, loc, builder.getI64Type(), offset)
                                   .getResult()});
  }

  SmallVector<Value> addresses(const Instruction &step) {
    SmallVector<Value> all;
    for (const BufferRef &ref : step.buffers)
      all.push_back(address(ref));
    return all;
  }

  /// Calls a function of the runtime, declared with what it is told.
  func::CallOp call(const std::string &name, ValueRange operands,
                    ArrayRef<NamedAttribute> told) {
    if (!module.lookupSymbol(name)) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(module.getBody());
      auto declared = func::FuncOp::create(
          builder, loc, name, builder.getFunctionType(operands.getTypes(), {}));
      declared.setPrivate();
      for (NamedAttribute attribute : told)
        declared->setAttr(attribute.getName(), attribute.getValue());
    }
    return func::CallOp::create(builder, loc, name, TypeRange(), operands);
  }

  NamedAttribute text(StringRef name, const std::string &value) {
    return builder.getNamedAttr(name, builder.getStringAttr(value));
  }

  void launch(const Instruction &step) {
    const GpuKernel &kernel = kernels[step.index];
    auto dims = [&](const std::array<int64_t, 3> &sizes) {
      Value x = index(sizes[0]), y = index(sizes[1]), z = index(sizes[2]);
      return gpu::KernelDim3{x, y, z};
    };
    SmallVector<Value> operands{function.getArgument(0)};
    llvm::append_range(operands, addresses(step));
    auto symbol = SymbolRefAttr::get(
        builder.getContext(), "kernels",
        {FlatSymbolRefAttr::get(builder.getContext(), kernel.symbol)});
    gpu::KernelDim3 grid = dims(kernel.grid), block = dims(kernel.block);
    gpu::LaunchFuncOp::create(builder, loc, symbol, grid, block,
                              /*dynamicSharedMemorySize=*/Value(), operands);
  }

  void addStep(const Instruction &step,
               SmallVector<OpBuilder::InsertPoint> &loops) {
    switch (step.kind) {
    case Instruction::Kind::Kernel:
      return launch(step);
    case Instruction::Kind::Library: {
      const LibrarySite &site = artifact.librarySites[step.index];
      auto made =
          call(site.kind + "_" + std::to_string(step.index), addresses(step),
               {text("mtp.attributes", site.attributes.dump())});
      // So many of the next ones are another way to compute the same.
      if (step.otherwise)
        made->setAttr("mtp.otherwise",
                      builder.getI64IntegerAttr(step.otherwise));
      return;
    }
    case Instruction::Kind::Start:
    case Instruction::Kind::Done: {
      const CollectiveSite &site = artifact.collectiveSites[step.index];
      bool starts = step.kind == Instruction::Kind::Start;
      call((starts ? "start_" : "done_") + site.op + "_" +
               std::to_string(step.index),
           addresses(step), {text("mtp.axes", site.axisName)});
      return;
    }
    case Instruction::Kind::LoopBegin: {
      auto loop = scf::ForOp::create(builder, loc, index(0), index(step.count),
                                     index(1));
      loops.push_back(builder.saveInsertionPoint());
      builder.setInsertionPoint(loop.getBody()->getTerminator());
      return;
    }
    case Instruction::Kind::LoopEnd:
      builder.restoreInsertionPoint(loops.pop_back_val());
      return;
    }
  }

  ModuleOp module;
  const Artifact &artifact;
  const std::vector<GpuKernel> &kernels;
  OpBuilder builder;
  Location loc;
  Type pointer;
  const Entry *entry = nullptr;
  func::FuncOp function;
};
} // namespace

void mtp::addHostProgram(ModuleOp module, const Artifact &artifact,
                         const std::vector<GpuKernel> &kernels) {
  HostProgram program(module, artifact, kernels);
  for (const Entry &entry : artifact.entries)
    program.add(entry);
}
