// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BudgetPass.h - a memory budget in a pipeline -----------------------===//
#ifndef MTP_COMPILER_DRIVER_BUDGETPASS_H
#define MTP_COMPILER_DRIVER_BUDGETPASS_H

#include "compiler/driver/CompilerApi.h"

#include "mlir/Pass/Pass.h"

namespace mtp {

/// What is chosen under `bytes` ("2G", as mtp-run --memory-budget has it):
/// layouts, and for a request that trains what it leaves open.
struct BudgetPassOptions {
  CompileRequest request; ///< mesh, objective, pins, topology, train
  std::string bytes;
  bool sequenceParallel = false;
  bool annotate = false; ///< write the plan as attributes; types stay
  bool explain = false;  ///< print the plan to standard error
};

/// Makes the layouts explicit that mtp-run would choose, and with a request
/// that trains the training step.
std::unique_ptr<mlir::Pass> createBudgetPass(BudgetPassOptions options);

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_BUDGETPASS_H
