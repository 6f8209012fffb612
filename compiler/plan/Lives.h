// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Lives.h - how long values may be needed, whatever their layouts ----===//
//
// Times are positions of ops in the block. Codegen runs an op where it stands,
// or later, as part of a kernel that needs its result (compiler/codegen/
// Fusion.h): behind none of the ops that read the result and are no part of it.
// So an op runs at the latest where the first op runs that reads its result and
// can't be part of a kernel, and what it reads is there until then:
//
//   0  a = matmul x, w
//   1  b = exp a             runs at 1 to 3
//   2  c = reduce_sum b      runs at 2 or 3: a may be read at 3
//   3  d = matmul c, v
//
// An op that reads one value may also run in each kernel that reads its result
// (or its result lies in the value): then the value is there as long as both.
// A product may run where the ops stand that become its bias and activation.
//
// The backward visits the ops from the last to the first. What is added to the
// cotangent of a value comes from its readers and is read when the op that
// gives the value is visited, or later by the same argument.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_LIVES_H
#define MTP_COMPILER_PLAN_LIVES_H

#include "compiler/plan/Plan.h"

namespace mtp::plan {

class Lives {
public:
  /// `function` is one block.
  Lives(mlir::func::FuncOp function, const GradientFlow &gradients);

  /// Positions, those of the terminator included.
  int count() const { return int(ops.size()); }
  mlir::Operation *at(int position) const { return ops[position]; }
  int of(mlir::Operation *op) const { return positions.lookup(op); }
  /// Where the value is made; -1: an argument.
  int begin(mlir::Value value) const;
  /// The last position at which the use may read; that of the use, or later.
  int end(mlir::OpOperand &use) const { return latestCopy[of(use.getOwner())]; }
  int end(mlir::Value value) const;
  /// True if the backward may read the value through this use.
  bool isKept(mlir::OpOperand &use) const { return keptUses.contains(&use); }
  bool isKept(mlir::Value value) const { return kept.contains(value); }
  /// The first position down to which what is added to the cotangent of the
  /// value may have to wait. Of a value that an op gives and that has one.
  int waits(mlir::Value value) const;
  /// The operand whose cotangent that of `value` waits for behind its op: one
  /// of both is there. Null if it doesn't wait.
  mlir::Value waitsFor(mlir::Value value) const {
    return blocking.lookup(value);
  }
  /// True if an op but `begin` and the readers of `value` runs from position
  /// `from` to `to`, both included.
  bool passesOthers(mlir::Value value, int from, int to) const;

private:
  void findEnds();
  void findKept(const GradientFlow &gradients);
  void findWaits(const GradientFlow &gradients);

  std::vector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, int> positions;
  std::vector<int> computing; ///< ops that read something, before a position
  /// By position: where the op runs at the latest; and it, or a copy of it.
  std::vector<int> latest, latestCopy;
  llvm::DenseSet<mlir::OpOperand *> keptUses;
  llvm::DenseSet<mlir::Value> kept;
  /// By value: where its cotangent is computed at the latest; and read.
  llvm::DenseMap<mlir::Value, int> summed, awaited;
  llvm::DenseMap<mlir::Value, mlir::Value> blocking;
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_LIVES_H
