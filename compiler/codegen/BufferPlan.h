// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BufferPlan.h - where the values of a rank's program lie ------------===//
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
//   %b = mtp.strided_slice %a dim 0 ...      home of %a, at an offset
//   %c = mtp.concat dim 0 %x, %y             home %c, of %x and %y too, if a
//   sum %d = spmd.all_reduce %c                  over ranks reads it, or if x
//                                                and y are parts of a sum
//
// Homes that an op of the program writes are owned: they lie in the arena, in
// an output if the function returns them, or in the block of a parameter if an
// spmd.store puts them there. All other homes (inputs, parameters, constants,
// rank values) lie where the runtime puts them.
//
// What is stored is written where it will be kept, if all that read the old
// value come before, or if the writer is a kernel that reads the old value
// element by element (InPlace.h). Otherwise a copy at the end stores it.
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
  /// Makes the function one that can be planned: equal parameters stand once,
  /// stores at the end; every returned or stored value that cannot lie where it
  /// has to is copied there; kernels that write in place say so.
  static void prepare(mlir::func::FuncOp func);

  /// Plans the function, which is prepared.
  explicit BufferPlan(mlir::func::FuncOp func);

  /// The value whose bytes `value` shares.
  mlir::Value home(mlir::Value value) const;
  /// Where `value` begins in its home, in bytes.
  int64_t offset(mlir::Value value) const;
  /// Element strides of `value` in its home; empty if it is row-major.
  llvm::ArrayRef<int64_t> strides(mlir::Value value) const;
  /// Arena or output of an owned home; nothing for others.
  std::optional<BufferRef> place(mlir::Value home) const;
  /// The parameter (result of an spmd.parameter) in whose block an owned home
  /// lies; null for others.
  mlir::Value parameterOf(mlir::Value home) const {
    return stored.lookup(home);
  }
  /// True if nothing is to be done for the op: its result lies in another home.
  bool isFolded(mlir::Operation *op) const { return folded.contains(op); }
  int64_t arenaBytes() const { return bytes; }
  /// The step (position in the block) before which the collective `op` is
  /// done: the next one, or, if it overlaps (Overlap.h), that of the first op
  /// that needs its result or its place among those under way.
  int64_t doneStep(mlir::Operation *op) const { return done.lookup(op); }
  /// First and last step (position in the block) at which a home is needed.
  std::pair<int64_t, int64_t> life(mlir::Value home) const {
    return lives.lookup(home);
  }

private:
  friend class StorePlacer;
  struct View {
    mlir::Value of;
    llvm::SmallVector<int64_t> strides;
    int64_t offset = 0; ///< bytes
  };
  struct Unplaced {};
  /// Homes and lives only.
  BufferPlan(mlir::func::FuncOp func, Unplaced);
  void foldAliases(mlir::Block &block);
  void foldConcats(mlir::Block &block);
  void foldTransposes(mlir::Block &block);
  void reduceInPlace(mlir::Block &block);
  void findDone(mlir::Block &block);
  int64_t
  firstReader(mlir::Operation *op,
              const llvm::DenseMap<mlir::Operation *, int64_t> &steps) const;
  void placeHomes(mlir::Block &block);
  void findLives(mlir::Block &block);

  llvm::DenseMap<mlir::Value, View> views; ///< chains, to the home
  llvm::DenseSet<mlir::Operation *> folded;
  llvm::DenseMap<mlir::Value, std::pair<int64_t, int64_t>>
      lives; ///< by home: steps
  llvm::DenseMap<mlir::Value, BufferRef> places;
  llvm::DenseMap<mlir::Value, mlir::Value> stored; ///< homes to parameters
  llvm::DenseMap<mlir::Operation *, int64_t> done; ///< by collective
  int64_t bytes = 0;
};

/// The operand whose bytes the op's result is, or null.
mlir::Value aliasedOperand(mlir::Operation *op);
/// The operand that the op's result is a dense part of, and where it begins
/// there, in bytes; null if there is none.
std::pair<mlir::Value, int64_t> slicedOperand(mlir::Operation *op);
/// True if the operands of a concat are to lie where its result does: they
/// follow each other there, and a collective reads it, or gives it in parts.
bool joinsInPlace(mlir::Operation *op);
/// True if the operand of such a concat can lie there: an op writes it, and
/// nothing else wants its place.
bool canLieInConcat(mlir::OpOperand &operand);
/// True if an op of the program writes the value.
bool isWritten(mlir::Value value);
/// Inserts a kernel that copies `value` before `at`; the copy.
mlir::Value copyBefore(mlir::Operation *at, mlir::Value value);
/// Stores write nothing that the function still reads: they move to its end.
void moveStoresToEnd(mlir::Block &block);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_BUFFERPLAN_H
