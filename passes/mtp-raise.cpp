// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-raise.cpp - decomposed forms to composite ops ------------------===//

#include "passes/Passes.h"
#include "passes/raise/Match.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPRAISE
#include "passes/Passes.h.inc"

namespace {
struct MtpRaise final : impl::MtpRaiseBase<MtpRaise> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    raise::populateNormPatterns(patterns);
    raise::populateActivationPatterns(patterns);
    raise::populateRotaryPatterns(patterns);
    raise::populateAttentionPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace mtp
