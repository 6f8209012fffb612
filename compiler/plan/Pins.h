// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Pins.h - layouts that the user fixes -------------------------------===//
#ifndef MTP_COMPILER_PLAN_PINS_H
#define MTP_COMPILER_PLAN_PINS_H

#include "compiler/plan/Model.h"

namespace mtp::plan {

/// `VALUE=LAYOUT` from the user: on the axes that it names, the states that the
/// values whose names match must be produced in.
struct Pin {
  std::string pattern, text;
  std::vector<mlir::Value> values;
};

/// The values that each pin of `options` is about. A pin that matches nothing
/// is a diagnostic.
mlir::LogicalResult findPinned(mlir::func::FuncOp function,
                               const PlanOptions &options,
                               std::vector<Pin> &pins);

/// True if the space has no such layout for the value unless it is relaxed.
bool asksForMore(const Space &space, const Pin &pin, mlir::Value value);

/// Keeps only what the pin allows. Fails if that leaves nothing: with a
/// diagnostic that has the layouts that are possible, without one if `quiet`.
mlir::LogicalResult restrictTo(Model &model, const Pin &pin,
                               const MeshShape &mesh, bool quiet);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_PINS_H
