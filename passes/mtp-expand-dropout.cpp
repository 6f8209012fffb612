// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/Training.h"
#include "passes/Passes.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPEXPANDDROPOUT
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct MtpExpandDropout : mtp::impl::MtpExpandDropoutBase<MtpExpandDropout> {
  using Base::Base;
  void runOnOperation() override {
    using mtp::training::DropoutMode;
    if (mode != "model" && mode != "on" && mode != "off") {
      getOperation().emitError()
          << "dropout is model, on or off, not '" << mode << "'";
      return signalPassFailure();
    }
    auto function = mtp::training::mainOf(getOperation());
    if (!function)
      return signalPassFailure();
    mtp::training::expandDropout(function,
                                 mode == "on"    ? DropoutMode::On
                                 : mode == "off" ? DropoutMode::Off
                                                 : DropoutMode::Model,
                                 accumulate);
  }
};
} // namespace
