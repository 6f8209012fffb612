// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/Recompute.h"
#include "passes/Passes.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPRECOMPUTE
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct Recompute : mtp::impl::MtpRecomputeBase<Recompute> {
  using MtpRecomputeBase::MtpRecomputeBase;

  void runOnOperation() override {
    if (mode == "none")
      return;
    if (mode == "auto") {
      getOperation().emitError()
          << "recompute=auto computes again as little as memory-budget=BYTES "
             "allows, and no budget is given (mtp-run takes the memory of this "
             "machine); without one, say none or layers";
      return signalPassFailure();
    }
    if (mode != "layers") {
      getOperation().emitError()
          << "recompute mode is none or layers, not '" << mode << "'";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        mtp::autodiff::recomputeLayers(function, layers);
  }
};
} // namespace
