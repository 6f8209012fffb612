// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Plan.h"
#include "passes/Passes.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

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
    std::vector<std::pair<std::string, int64_t>> axes;
    std::string error;
    if (!mtp::plan::parseMesh(mesh, axes, error)) {
      module.emitError() << error;
      return signalPassFailure();
    }
    FailureOr<mtp::plan::Plan> made = makePlan(module, axes);
    if (failed(made) || failed(mtp::plan::applyPlan(module, *made)))
      return signalPassFailure();
    if (explain)
      llvm::errs() << mtp::plan::explainText(*made);
  }

  FailureOr<mtp::plan::Plan>
  makePlan(ModuleOp module, ArrayRef<std::pair<std::string, int64_t>> axes) {
    StringRef text = plan;
    if (text.consume_front("random:")) {
      uint64_t seed = 0;
      if (text.getAsInteger(10, seed))
        return module.emitError()
                   << "random:SEED needs a number, not '" << text << "'",
               failure();
      return mtp::plan::randomPlan(module, axes, seed);
    }
    if (!text.empty())
      return readPlan(module, axes);
    mtp::plan::PlanOptions options;
    if (objective != "parallel" && objective != "time")
      return module.emitError()
                 << "objective is parallel or time, not '" << objective << "'",
             failure();
    if (objective == "time")
      options.objective = mtp::plan::Objective::Time;
    options.sequenceParallel = sequenceParallel;
    options.explain = explain;
    SmallVector<StringRef> entries;
    StringRef(pins).split(entries, ';', -1, /*KeepEmpty=*/false);
    for (StringRef pin : entries) {
      auto [value, layout] = pin.split('=');
      options.pins.push_back({value.str(), layout.str()});
    }
    return mtp::plan::choosePlan(module, axes, options);
  }

  FailureOr<mtp::plan::Plan>
  readPlan(ModuleOp module, ArrayRef<std::pair<std::string, int64_t>> axes) {
    auto buffer = llvm::MemoryBuffer::getFile(plan);
    if (!buffer)
      return module.emitError() << "cannot read the plan " << plan << ": "
                                << buffer.getError().message(),
             failure();
    auto json = nlohmann::json::parse((*buffer)->getBuffer().str(), nullptr,
                                      /*exceptions=*/false);
    auto hash = module->getAttrOfType<StringAttr>("mtp.hash");
    return mtp::plan::loadPlan(module, axes, json, hash ? hash.getValue() : "");
  }
};
} // namespace
