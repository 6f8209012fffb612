// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PlannedBytes.h - the planner's budget for a way to train -----------===//
#ifndef MTP_COMPILER_DRIVER_PLANNEDBYTES_H
#define MTP_COMPILER_DRIVER_PLANNEDBYTES_H

#include "compiler/driver/CompilerApi.h"
#include "compiler/plan/Memory.h"

namespace mtp {

/// A budget of `bytes` of the planner's sum, for a program that trains so, or
/// for the forward alone. `train.zero` is the stage; `bounds`: of the sum that
/// no program exceeds.
plan::PlanBudget plannedBytes(int64_t bytes,
                              const std::optional<TrainRequest> &train,
                              bool bounds);

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_PLANNEDBYTES_H
