// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/Training.h"
#include "passes/Passes.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPMARKTRAINABLE
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct MtpMarkTrainable : mtp::impl::MtpMarkTrainableBase<MtpMarkTrainable> {
  using Base::Base;
  void runOnOperation() override {
    mtp::training::TrainableOptions options;
    options.freeze.assign(freeze.begin(), freeze.end());
    options.trainOnly.assign(trainOnly.begin(), trainOnly.end());
    std::string error;
    for (const std::string &text : tie) {
      auto &made = options.ties.emplace_back();
      if (!mtp::training::parseTie(text, made, error)) {
        getOperation().emitError() << "tie: " << error;
        return signalPassFailure();
      }
    }
    if (failed(mtp::training::markTrainable(getOperation(), options)))
      signalPassFailure();
  }
};
} // namespace
