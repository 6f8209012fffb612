// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Memory.h - the bytes of a plan, before there is a program ----------===//
//
// What a rank holds, as a sum over the variables of Model.h, so that layouts
// can be chosen under a budget (Pareto.h). Some bytes add up, of others the
// largest counts. Blocks have their padding and are rounded up to 64 bytes, as
// in the arena. There are two sums.
//
// The estimate:
//
//   adds up          parameters with their gradients and states (exact: the
//                    caller's function), inputs, outputs, constants, and every
//                    value that stays: when training each one, since the
//                    backward may read it, else those that are read behind the
//                    next product; shared and kept conversions alike
//   largest counts   of an op, its operands and results with the conversions
//                    in front of it; when training their cotangents, too
//
// It is 1.09 to 1.96 of what the runtime allocates for the models where it was
// measured (bench/planner/bytes_bench.py), less for graphs that are made of
// what it has no term for.
//
// The bound (MemoryBound.cpp) has a term for all that a program may allocate,
// whatever its layouts; docs/memory.md has the argument and what of it is
// checked, not proven. It is larger, and tells layouts apart less well.
//
// Which programs fit is decided on the program itself (compiler/driver/
// Budget.h).
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_MEMORY_H
#define MTP_COMPILER_PLAN_MEMORY_H

#include "compiler/plan/Plan.h"

#include <functional>

namespace mtp::plan {

/// The axis over which ZeRO cuts.
inline constexpr llvm::StringLiteral kDataAxis = "dp";

/// A budget of a plan's bytes.
struct PlanBudget {
  int64_t bytes = 0; ///< INT64_MAX: none, but Plan::bytes is wanted
  /// Of a sum that no program exceeds, else of one that is near.
  bool bounds = false;
  bool training = false;
  int zero = 0; ///< stage of ZeRO, over the axis dp
  /// Bytes of a parameter stored in a layout: its block and what belongs to it.
  std::function<int64_t(mlir::Operation *, const Layout &, const MeshShape &)>
      parameterBytes;
};

/// Bytes that a buffer of the arena takes.
int64_t arenaBytes(const TensorInfo &tensor, const Layout &layout,
                   const MeshShape &mesh);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_MEMORY_H
