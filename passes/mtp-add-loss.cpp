// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/Training.h"
#include "passes/Passes.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPADDLOSS
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct MtpAddLoss : mtp::impl::MtpAddLossBase<MtpAddLoss> {
  using Base::Base;
  void runOnOperation() override {
    mtp::training::LossOptions options;
    std::string error;
    if (loss.empty()) {
      getOperation().emitError()
          << "no loss is given: the option loss= of mtp-train and mtp-add-loss "
             "says what is minimized, for example "
             "loss=cross_entropy:logits=NAME,labels=NAME";
      return signalPassFailure();
    }
    if (!mtp::parseLoss(loss, options.spec, error)) {
      getOperation().emitError() << "loss: " << error;
      return signalPassFailure();
    }
    options.labelType =
        IntegerType::get(&getContext(), labelType == "i32" ? 32 : 64);
    options.lossScale = lossScale;
    options.keepOutputs = keepOutputs;
    options.inputGradients.assign(inputGradients.begin(), inputGradients.end());
    auto function = mtp::training::mainOf(getOperation());
    if (!function || failed(mtp::training::addLoss(function, options)))
      signalPassFailure();
  }
};
} // namespace
