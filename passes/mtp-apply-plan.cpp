// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Plan.h"
#include "passes/Passes.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPAPPLYPLAN
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct ApplyPlan : mtp::impl::MtpApplyPlanBase<ApplyPlan> {
  using MtpApplyPlanBase::MtpApplyPlanBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<mtp::plan::Plan> made =
        mtp::plan::makePlan(module, {mesh, objective, plan, pins, topology,
                                     sequenceParallel, explain});
    if (failed(made) || failed(mtp::plan::applyPlan(module, *made)))
      signalPassFailure();
  }
};
} // namespace
