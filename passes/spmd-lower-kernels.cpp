// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-lower-kernels.cpp - fused regions to loops or LLVM ------------===//

#include "compiler/codegen/Kernels.h"
#include "compiler/codegen/LowerLoops.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDLOWERKERNELS
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct SpmdLowerKernelsPass
    : mtp::impl::SpmdLowerKernelsBase<SpmdLowerKernelsPass> {
  using SpmdLowerKernelsBase::SpmdLowerKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (to != "loops" && to != "llvm") {
      module.emitError() << "option 'to' is '" << to
                         << "', expected loops or llvm";
      return signalPassFailure();
    }
    KernelModule kernels(&getContext());
    auto added = module.walk([&](spmd::FusedOp fused) {
      KernelInfo info;
      return failed(kernels.add(fused, info)) ? WalkResult::interrupt()
                                              : WalkResult::advance();
    });
    if (added.wasInterrupted())
      return signalPassFailure();
    ModuleOp source = kernels.loops();
    OwningOpRef<ModuleOp> lowered;
    if (to == "llvm") {
      SmallVector<size_t> all(
          llvm::to_vector(llvm::seq<size_t>(0, kernels.kernels().size())));
      auto result = lowerLoops(source, all, /*hasFma=*/true);
      if (failed(result))
        return signalPassFailure();
      lowered = std::move(*result);
      source = *lowered;
    }
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(*module.getBody())))
      op.erase();
    module.getBody()->getOperations().splice(module.getBody()->end(),
                                             source.getBody()->getOperations());
  }
};
} // namespace
