// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-gather-epilogues.cpp - kernels beside their product -----------===//

#include "compiler/codegen/Epilogues.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDGATHEREPILOGUES
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct SpmdGatherEpilogues
    : mtp::impl::SpmdGatherEpiloguesBase<SpmdGatherEpilogues> {
  void runOnOperation() override {
    llvm::DenseSet<Operation *> taken;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isDeclaration() || !func.getBody().hasOneBlock())
        continue;
      for (Operation &product :
           llvm::make_early_inc_range(func.getBody().front())) {
        SmallVector<Operation *> epilogue = findEpilogue(&product);
        while (!epilogue.empty() && taken.contains(epilogue.back()))
          epilogue.pop_back();
        if (epilogue.empty())
          continue;
        gatherEpilogue(&product, epilogue);
        taken.insert(epilogue.begin(), epilogue.end());
      }
    }
  }
};
} // namespace
