// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/PlannedBytes.h"

#include "compiler/training/Training.h"

using namespace mlir;
using namespace mtp;

/// The block of a parameter, its gradient and its states.
static int64_t parameterBytes(Operation *op, const Layout &layout,
                              const MeshShape &mesh,
                              const std::optional<TrainRequest> &train) {
  plan::TensorInfo info = plan::tensorInfo(op->getResult(0));
  int64_t whole = plan::arenaBytes(info, layout, mesh);
  if (!train || !op->hasAttr(training::names::trainable))
    return whole;
  int64_t cut = whole;
  SmallVector<int, 2> axes = mesh.find(plan::kDataAxis);
  if (train->zero > 0 && axes.size() == 1)
    if (auto less = training::cutOverAxis(layout, info.shape, axes[0], mesh))
      cut = plan::arenaBytes(info, *less, mesh);
  bool adamw = train->optimizer == "adamw";
  int64_t states = adamw ? 2 : train->momentum > 0 ? 1 : 0;
  // With micro-batches there is an accumulator as well.
  int64_t gradients = 1 + train->keepGradients + (train->accumulate > 1);
  return (train->zero > 2 ? cut : whole) +
         gradients * (train->zero > 1 ? cut : whole) +
         states * (train->zero > 0 ? cut : whole);
}

plan::PlanBudget mtp::plannedBytes(int64_t bytes,
                                   const std::optional<TrainRequest> &train,
                                   bool bounds) {
  plan::PlanBudget budget;
  budget.bytes = bytes;
  budget.bounds = bounds;
  budget.training = train.has_value();
  budget.zero = train ? train->zero : 0;
  budget.parameterBytes = [train](Operation *op, const Layout &layout,
                                  const MeshShape &mesh) {
    return parameterBytes(op, layout, mesh, train);
  };
  return budget;
}
