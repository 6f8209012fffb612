// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PlanReport.h - a plan in the words of the interface ----------------===//
#ifndef MTP_COMPILER_DRIVER_PLANREPORT_H
#define MTP_COMPILER_DRIVER_PLANREPORT_H

#include "compiler/driver/CompilerApi.h"
#include "compiler/plan/Plan.h"

namespace mtp {

/// Tables of weights and collectives, `plan` of the artifact, explanation.
void reportPlan(const plan::Plan &plan, bool explain, CompileResult &result);

/// What an explanation has of the program that `module` was emitted as: what
/// memory is for, the constraint of a budget, and (`explain`) the largest
/// tensors of a rank.
void reportProgram(mlir::ModuleOp module, const CompileRequest &request,
                   CompileResult &result);

/// `parameters` of --json: every initializer of the module, with the layout of
/// its storage (of the first stored piece, if it is stored in several). Call it
/// on the typed module, before it is partitioned.
nlohmann::json reportParameters(mlir::ModuleOp module);

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_PLANREPORT_H
