// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- StepTime.h - predicted time of a typed program ---------------------===//
#ifndef MTP_COMPILER_PLAN_STEPTIME_H
#define MTP_COMPILER_PLAN_STEPTIME_H

#include "compiler/plan/Conversions.h"

#include "mlir/IR/BuiltinOps.h"

namespace mtp::plan {

/// What the target (Target.h) is for a mesh.
Machine machineOf(const MeshShape &mesh);

/// Time of one step of a typed module: its conversions and products, one after
/// the other, by the cost functions of the planner on the target (Target.h).
/// @main runs `micro` times in a step, other functions once. Plans are chosen
/// before a program is differentiated; this is what compares programs that
/// differ in what comes later: stages of ZeRO, what is computed again.
Time stepTime(mlir::ModuleOp module, int64_t micro = 1);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_STEPTIME_H
