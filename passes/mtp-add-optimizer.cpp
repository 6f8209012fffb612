// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/Training.h"
#include "passes/Passes.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPADDOPTIMIZER
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct MtpAddOptimizer : mtp::impl::MtpAddOptimizerBase<MtpAddOptimizer> {
  using Base::Base;
  void runOnOperation() override {
    mtp::training::OptimizerOptions options;
    options.optimizer = optimizer;
    options.momentum = momentum;
    options.weightDecay = weightDecay;
    options.beta1 = beta1;
    options.beta2 = beta2;
    options.eps = eps;
    options.clipNorm = clipNorm;
    options.zero = zero;
    options.axis = axis;
    options.accumulate = accumulate;
    options.lossScale = lossScale;
    options.keepGradients = keepGradients;
    if (failed(mtp::training::addOptimizer(getOperation(), options)))
      signalPassFailure();
  }
};
} // namespace
