// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- StepTime.cpp - predicted time of a typed program -------------------===//
#include "compiler/plan/StepTime.h"

#include "compiler/cost/Target.h"
#include "compiler/plan/Plan.h"
#include "dialects/spmd/SpmdDialect.h"

using namespace mlir;

namespace mtp::plan {

static SmallVector<Layout, 3> layoutsOf(Operation *op, ValueRange values,
                                        const MeshShape &mesh) {
  SmallVector<Layout, 3> layouts;
  for (Value value : values) {
    auto type = cast<RankedTensorType>(value.getType());
    FailureOr<Layout> layout = toLayout(op, type, mesh);
    layouts.push_back(
        succeeded(layout) ? *layout : Layout(mesh.size(), int(type.getRank())));
  }
  return layouts;
}

static Time conversionTime(ConversionOpInterface op,
                           const Conversions &conversions) {
  SmallVector<int, 2> axes;
  for (Attribute axis : op.getAxes())
    llvm::append_range(
        axes, conversions.mesh.find(cast<StringAttr>(axis).getValue()));
  auto from = layoutsOf(op, op->getOperands(), conversions.mesh);
  auto to = layoutsOf(op, op->getResults(), conversions.mesh);
  return trafficOf(tensorInfo(op->getOperand(0)), op.getTransfer(), axes,
                   from[0], to[0], conversions.mesh, conversions.machine)
      .time;
}

static Time timeOf(Operation *op, const Conversions &conversions) {
  if (auto conversion = dyn_cast<ConversionOpInterface>(op))
    return conversionTime(conversion, conversions);
  if (!isa<FlopsOpInterface>(op))
    return 0;
  Strategy strategy;
  strategy.operands = layoutsOf(op, op->getOperands(), conversions.mesh);
  strategy.results = layoutsOf(op, op->getResults(), conversions.mesh);
  return computeTime(op, strategy, /*cotangent=*/false, conversions);
}

Machine machineOf(const MeshShape &mesh) {
  MeshAxes axes;
  for (const MeshShape::Axis &axis : mesh.axes)
    axes.push_back({axis.name(), axis.size});
  return targetMachine(axes);
}

Time stepTime(ModuleOp module, int64_t micro) {
  MeshOp mesh = spmd::findMesh(module);
  if (!mesh)
    return kIllegal;
  MeshShape shape = mesh.getShape();
  Conversions conversions(shape, machineOf(shape));
  Time total = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    Time time = 0;
    function.walk(
        [&](Operation *op) { time = add(time, timeOf(op, conversions)); });
    for (int64_t run = 0; run < (function.getName() == "main" ? micro : 1);
         ++run)
      total = add(total, time);
  }
  return total;
}

} // namespace mtp::plan
