// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Memory.h - the bytes of a plan, before there is a program ----------===//
//
// What a rank holds, as a sum over the variables of Model.h, so that layouts
// can be chosen under a budget (Pareto.h):
//
//   adds up          parameters with their gradients and states (exact: the
//                    caller's function), inputs, outputs, constants, and every
//                    value that stays: when training each one, since the
//                    backward may read it, else those that are read behind the
//                    next product; shared and kept conversions alike
//   largest counts   of an op, its operands and results with the conversions
//                    in front of it; when training their cotangents, too
//
// Blocks have their padding and are rounded up to 64 bytes, as in the arena.
// The sum is above what the runtime allocates, 1.09 to 1.96 of it where it was
// measured (bench/planner/bytes_bench.py): fused regions store less than their
// ops do, and values that stay are not all there at once. It is no bound:
// cotangents that wait for others, gathers of ZeRO 3 and gaps of the arena have
// no term of their own, and graphs that were made of little else are below
// (docs/memory.md has the list). Which programs fit is therefore decided on the
// program itself (compiler/driver/Budget.h), not here.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_MEMORY_H
#define MTP_COMPILER_PLAN_MEMORY_H

#include "compiler/plan/Plan.h"

#include <functional>

namespace mtp::plan {

/// A budget of a plan's bytes.
struct PlanBudget {
  int64_t bytes = 0; ///< INT64_MAX: none, but Plan::bytes is wanted
  bool training = false;
  /// Bytes of a parameter stored in a layout: its block and what belongs to it.
  std::function<int64_t(mlir::Operation *, const Layout &, const MeshShape &)>
      parameterBytes;
};

/// Bytes that a buffer of the arena takes.
int64_t arenaBytes(const TensorInfo &tensor, const Layout &layout,
                   const MeshShape &mesh);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_MEMORY_H
