// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/BudgetPass.h"

#include "compiler/cost/Target.h"
#include "compiler/driver/Budget.h"
#include "compiler/driver/Pipelines.h"
#include "compiler/plan/Pins.h"
#include "dialects/spmd/SpmdDialect.h"
#include "runtime/support/ByteCount.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mtp;

namespace {
struct ApplyWithinBudget
    : PassWrapper<ApplyWithinBudget, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ApplyWithinBudget)

  explicit ApplyWithinBudget(BudgetPassOptions options)
      : options(std::move(options)) {}

  StringRef getName() const override { return "ApplyWithinBudget"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<func::FuncDialect, MtpDialect, spmd::SpmdDialect>();
  }

  void runOnOperation() override {
    if (failed(run(getOperation())))
      signalPassFailure();
  }

private:
  LogicalResult run(ModuleOp module) {
    CompileRequest request = options.request;
    auto bytes = parseByteCount(options.bytes);
    if (!bytes || *bytes == 0)
      return module.emitError()
             << "memory-budget '" << options.bytes
             << "': a positive number of bytes, with K, M or G for powers of "
                "1024, is needed";
    if (!request.plan.empty())
      return module.emitError() << "memory-budget chooses a plan and plan= "
                                   "takes one: give one of them";
    request.memoryBudget = *bytes;
    plan::MeshAxes axes;
    std::string error;
    if (!plan::parseMesh(request.mesh, axes, error) ||
        !plan::setTarget("", request.topology, axes, error))
      return module.emitError() << error;
    if (request.objective != "parallel" && request.objective != "time")
      return module.emitError() << "objective is parallel or time, not '"
                                << request.objective << "'";
    plan::PlanOptions plans;
    if (request.objective == "time")
      plans.objective = plan::Objective::Time;
    plans.sequenceParallel = options.sequenceParallel;
    plans.pins = request.pins;
    BudgetSearch search(module, request);
    if (failed(search.addLayouts(axes, plans)))
      return failure();
    if (!search.run())
      return module.emitError() << search.message();
    return apply(module, search);
  }

  LogicalResult apply(ModuleOp module, const BudgetSearch &search) {
    plan::Plan plan = search.layouts().plan;
    if (options.explain) {
      auto explained = search.explained();
      if (failed(explained))
        return failure();
      plan = std::move(*explained);
    }
    plan.notes.push_back(search.message());
    if (options.explain)
      llvm::errs() << plan::explainText(plan);
    if (options.annotate) {
      plan::annotatePlan(module, plan);
      return success();
    }
    if (failed(plan::applyPlan(module, plan)))
      return failure();
    auto train = search.train();
    if (!train)
      return success();
    OpPassManager passes(ModuleOp::getOperationName());
    addDifferentiatePasses(passes, *train);
    return runPipeline(passes, module);
  }

  BudgetPassOptions options;
};
} // namespace

std::unique_ptr<Pass> mtp::createBudgetPass(BudgetPassOptions options) {
  return std::make_unique<ApplyWithinBudget>(std::move(options));
}
