// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/Training.h"
#include "passes/Passes.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPSHARDSTATES
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct MtpShardStates : mtp::impl::MtpShardStatesBase<MtpShardStates> {
  using Base::Base;
  void runOnOperation() override {
    if (failed(mtp::training::shardStates(getOperation(), zero, axis)))
      signalPassFailure();
  }
};
} // namespace
