// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BytesFixture.h"
#include "ModelFile.h"

#include "compiler/codegen/ProgramEmitter.h"
#include "compiler/cost/Target.h"
#include "compiler/driver/Pipelines.h"
#include "compiler/driver/PlannedBytes.h"
#include "compiler/plan/Pareto.h"
#include "runtime/artifact/Footprint.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace mtp::plan {
namespace {

/// Launches without code.
struct NoKernels : KernelModule {
  using KernelModule::KernelModule;
  FailureOr<SmallVector<KernelLaunch>> launches(Operation *, PlaceOf) override {
    return SmallVector<KernelLaunch>(1);
  }
};

bool sameLayouts(const Strategy &strategy, const PlannedOp &planned) {
  return llvm::equal(strategy.operands, planned.operands) &&
         llvm::equal(strategy.results, planned.results);
}

} // namespace

BytesTest::BytesTest() { loadDialects(context); }

void BytesTest::addLoss() {
  PassManager passes(&context);
  addLossPasses(passes, *train, train->loss.json(), {});
  addSimplifyPasses(passes);
  addTrainablePasses(passes, *train);
  ASSERT_TRUE(succeeded(passes.run(*module))) << messages;
}

void BytesTest::read(const std::string &text,
                     std::optional<TrainRequest> request) {
  parse(text);
  train = std::move(request);
  if (train)
    addLoss();
}

PlanBytes BytesTest::bytesOf(const Plan &plan, std::optional<Freedom> freedom) {
  PlanBytes bytes;
  func::FuncOp function = mainFunction(*module);
  Roles roles(function);
  std::vector<std::pair<std::string, int64_t>> links;
  for (const MeshShape::Axis &axis : plan.mesh.axes)
    links.push_back({axis.name(), axis.size});
  Conversions conversions(plan.mesh, targetMachine(links));
  Space space(function, roles, plan.mesh, freedom.value_or(Freedom::All));
  if (!freedom) {
    Space all(function, roles, plan.mesh, Freedom::All);
    for (auto [argument, planned] :
         llvm::zip_equal(function.getArguments(), plan.arguments))
      space.fix(argument, planned.results[0]);
    for (auto [op, planned] : llvm::zip_equal(
             function.getBody().front().without_terminator(), plan.ops)) {
      auto rule = cast<ShardingOpInterface>(op).getShardingRule();
      if (isParameter(&op, *rule)) {
        space.fix(op.getResult(0), planned.results[0]);
        continue;
      }
      if (isFreeSource(&op, *rule))
        continue;
      for (const Strategy &strategy : all.of(&op).strategies)
        if (sameLayouts(strategy, planned)) {
          space.fix(&op, strategy);
          break;
        }
    }
  }
  Model model(function, space, conversions, Objective::Time);
  model.build();
  auto assignment = model.encode(plan);
  EXPECT_TRUE(assignment);
  if (assignment) {
    ByteCount count = plan::bytesOf(
        model.problem(), model.memory(plannedBytes(INT64_MAX, train, /*bounds=*/true)),
        *assignment);
    bytes.sum = count.total();
    bytes.transient = count.transient;
  }

  OwningOpRef<ModuleOp> program = module->clone();
  PassManager passes(&context);
  if (train) {
    addGradientPasses(passes, *train);
    addUpdatePasses(passes, *train);
  }
  addPartitionPasses(passes);
  addFusePasses(passes);
  NoKernels kernels(&context);
  Artifact artifact;
  EXPECT_TRUE(succeeded(applyPlan(*program, plan)) &&
              succeeded(passes.run(*program)) &&
              succeeded(emitProgram(*program, kernels, artifact)))
      << messages;
  mtp::Footprint footprint = footprintOf(artifact);
  bytes.allocated = footprint.total;
  bytes.arena = footprint.arena;
  return bytes;
}

} // namespace mtp::plan
