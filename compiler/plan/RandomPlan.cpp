// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RandomPlan.cpp - any legal plan, for tests ------------------------===//
#include "compiler/cost/Target.h"
#include "compiler/plan/Plan.h"

#include <chrono>

using namespace mlir;

namespace mtp::plan {
namespace {
/// splitmix64.
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  size_t below(size_t count) { return next() % count; }
};
} // namespace

/// Ops are drawn in order. Any layout reaches any other but a partial maximum
/// or minimum, so an op only has to avoid those of its strategies that read one
/// which its operands do not have; the all-invariant strategy is always left.
/// Half of the time an op keeps to strategies that read its operands as they
/// are, if there are any, so that layouts live for more than one op.
FailureOr<Plan> randomPlan(ModuleOp module,
                           ArrayRef<std::pair<std::string, int64_t>> axes,
                           uint64_t seed) {
  auto start = std::chrono::steady_clock::now();
  func::FuncOp function = mainFunction(module);
  if (!function)
    return failure();
  Roles roles(function);
  Plan plan;
  plan.origin = "random";
  plan.axes.assign(axes.begin(), axes.end());
  plan.mesh = refineMesh(function, roles, axes);
  std::vector<std::pair<std::string, int64_t>> links;
  for (const MeshShape::Axis &axis : plan.mesh.axes)
    links.push_back({axis.name(), axis.size});
  Conversions conversions(plan.mesh, targetMachine(links));
  Space space(function, roles, plan.mesh, Freedom::All);
  GradientFlow gradients(function);
  Random random{seed};
  DenseMap<Value, Layout> layouts;

  auto drawStorage = [&](Value value, PlannedOp &planned) {
    std::vector<Layout> choices = space.storage(value);
    planned.results.push_back(choices[random.below(choices.size())]);
    planned.copies.resize(1);
    layouts[value] = planned.results[0];
  };
  for (BlockArgument argument : function.getArguments()) {
    PlannedOp planned;
    planned.name = valueName(argument);
    planned.kind = "input";
    drawStorage(argument, planned);
    plan.arguments.push_back(std::move(planned));
  }
  for (Operation &op : function.getBody().front().without_terminator()) {
    PlannedOp planned;
    planned.name = valueName(op.getResult(0));
    planned.kind = op.getName().getStringRef().str();
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (isParameter(&op, *rule)) {
      drawStorage(op.getResult(0), planned);
    } else if (!isFreeSource(&op, *rule)) {
      OpSpace ops = space.of(&op);
      std::vector<const Strategy *> open, near;
      for (const Strategy &strategy : ops.strategies) {
        bool reachable = true, asIs = true;
        for (auto [operand, want] :
             llvm::zip_equal(op.getOperands(), strategy.operands)) {
          auto have = layouts.find(operand);
          Layout from = have == layouts.end()
                            ? Layout(plan.mesh.size(), int(want.dims.size()))
                            : have->second;
          reachable &= conversions.cost(tensorInfo(operand, gradients), from,
                                        want) < kIllegal;
          asIs &= have == layouts.end() || from == want;
        }
        if (reachable)
          open.push_back(&strategy);
        if (reachable && asIs)
          near.push_back(&strategy);
      }
      auto &from = !near.empty() && random.next() % 2 ? near : open;
      const Strategy &drawn = *from[random.below(from.size())];
      planned.operands = drawn.operands;
      planned.results = drawn.results;
      planned.copies.resize(op.getNumResults());
      for (auto [value, layout] :
           llvm::zip_equal(op.getResults(), planned.results))
        layouts[value] = layout;
    }
    plan.ops.push_back(std::move(planned));
  }
  if (failed(describe(function, plan, conversions)))
    return failure();
  plan.solveMs = std::chrono::duration<double, std::milli>(
                     std::chrono::steady_clock::now() - start)
                     .count();
  return plan;
}

} // namespace mtp::plan
