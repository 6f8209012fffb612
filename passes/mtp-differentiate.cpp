// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/Differentiate.h"
#include "passes/Passes.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPDIFFERENTIATE
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct Differentiate : mtp::impl::MtpDifferentiateBase<Differentiate> {
  using MtpDifferentiateBase::MtpDifferentiateBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() &&
          failed(mtp::autodiff::differentiate(function)))
        return signalPassFailure();
  }
};
} // namespace
