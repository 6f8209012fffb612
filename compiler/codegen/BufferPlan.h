// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BufferPlan.h - where the values of a rank's program lie
//-------------===//
//
// Some ops move no bytes: a reshape of a row-major tensor is the tensor. And a
// kernel that reads through strides needs no transpose before it. So every
// value has a home, the value whose bytes it shares:
//
//   %t = mtp.transpose %x [0, 2, 1, 3]       home %x, strides of the
//   permutation, %y = mtp.attention %t, ...               if only such kernels
//   read %t %z = mtp.transpose %y [0, 2, 1, 3]       %y has home %z, likewise
//   %r = mtp.reshape %z                      home %z
//   %a = spmd.all_reduce %z                  home %z, if %z is not read
//   afterwards
//
// Homes that an op of the program writes are owned: they lie in the arena, or
// in an output if the function returns them. All other homes (inputs,
// parameters, constants, rank values) lie where the runtime puts them.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_BUFFERPLAN_H
#define MTP_COMPILER_CODEGEN_BUFFERPLAN_H

#include "dialects/spmd/SpmdDialect.h"
#include "runtime/artifact/Artifact.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mtp {

class BufferPlan {
public:
  /// Copies every returned value that has no owned home of its own, so that
  /// each output is written by an op of the program.
  static void copyOutputs(mlir::func::FuncOp func);

  /// Plans the function; outputs are copied already.
  explicit BufferPlan(mlir::func::FuncOp func);

  /// The value whose bytes `value` shares.
  mlir::Value home(mlir::Value value) const;
  /// Element strides of `value` in its home; empty if it is row-major.
  llvm::ArrayRef<int64_t> strides(mlir::Value value) const;
  /// Arena or output of an owned home; nothing for others.
  std::optional<BufferRef> place(mlir::Value home) const;
  /// True if nothing is to be done for the op: its result lies in another home.
  bool isFolded(mlir::Operation *op) const { return folded.contains(op); }
  int64_t arenaBytes() const { return bytes; }

private:
  struct View {
    mlir::Value of;
    llvm::SmallVector<int64_t> strides;
  };
  void foldAliases(mlir::Block &block);
  void foldTransposes(mlir::Block &block);
  void reduceInPlace(mlir::Block &block);
  void placeHomes(mlir::Block &block);
  void findLives(mlir::Block &block);

  llvm::DenseMap<mlir::Value, View> views; ///< chains, to the home
  llvm::DenseSet<mlir::Operation *> folded;
  llvm::DenseMap<mlir::Value, std::pair<int64_t, int64_t>>
      lives; ///< by home: steps
  llvm::DenseMap<mlir::Value, BufferRef> places;
  int64_t bytes = 0;
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_BUFFERPLAN_H
