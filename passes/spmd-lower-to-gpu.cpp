// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-lower-to-gpu.cpp - a rank's program for a GPU, to be read -----===//

#include "compiler/codegen/ProgramEmitter.h"
#include "compiler/codegen/cuda/GpuKernels.h"
#include "compiler/codegen/cuda/GpuLowering.h"
#include "compiler/codegen/cuda/HostProgram.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDLOWERTOGPU
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct SpmdLowerToGpu : mtp::impl::SpmdLowerToGpuBase<SpmdLowerToGpu> {
  using SpmdLowerToGpuBase::SpmdLowerToGpuBase;

  LogicalResult checkOptions(ModuleOp module) {
    if (to != "gpu" && to != "nvvm")
      return module.emitError()
             << "option 'to' is '" << to << "', expected gpu or nvvm";
    if (gpuCapability(arch) == 0)
      return module.emitError()
             << "option 'arch' is '" << arch << "', expected one of "
             << llvm::join(gpuArchitectures(), ", ");
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkOptions(module)))
      return signalPassFailure();
    GpuKernelModule kernels(&getContext(), arch, precision);
    Artifact artifact;
    if (failed(emitProgram(module, kernels, artifact)))
      return signalPassFailure();
    if (failed(kernels.finish(artifact.collectiveSites)))
      return signalPassFailure();
    if (to == "nvvm" && failed(lowerToNvvm(kernels.code())))
      return signalPassFailure();
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(*module.getBody())))
      op.erase();
    kernels.code()->moveBefore(module.getBody(), module.getBody()->end());
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    UnitAttr::get(&getContext()));
    addHostProgram(module, artifact, kernels.gpuKernels());
  }
};
} // namespace
