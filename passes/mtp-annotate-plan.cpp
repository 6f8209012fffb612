// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Pins.h"
#include "passes/Passes.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPANNOTATEPLAN
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct AnnotatePlan : mtp::impl::MtpAnnotatePlanBase<AnnotatePlan> {
  using MtpAnnotatePlanBase::MtpAnnotatePlanBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<mtp::plan::Plan> made =
        mtp::plan::makePlan(module, {mesh, objective, plan, pins, topology,
                                     sequenceParallel, explain});
    if (failed(made))
      return signalPassFailure();
    mtp::plan::removeAnnotations(module);
    mtp::plan::annotatePlan(module, *made);
  }
};
} // namespace
