// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- AttentionTile.h - attention by matrix instructions -----------------===//
//
// What the forward pass and the gradient share (AttentionMatrix.cpp,
// AttentionMatrixGradient.cpp). A block is 4 warps of 16 rows each; a row is a
// query, or a key in the gradient of keys and values. Lane 4 g + t of a warp
// has parts of the rows g and g + 8. Entries of the other side lie in shared
// memory, 32 at a time, and are taken 8 at a time:
//
//   product      (16 x 8) = rows (16 x depth)  .  entries' (depth x 8)
//   addProduct   sums (16 x depth) += numbers (16 x 8)  .  entries (8 x depth)
//
// What a product gives is in the registers of the lanes as addProduct takes it
// (MatrixTile.h).
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_CUDA_ATTENTIONTILE_H
#define MTP_COMPILER_CODEGEN_CUDA_ATTENTIONTILE_H

#include "compiler/codegen/cuda/AttentionCode.h"
#include "compiler/codegen/cuda/MatrixTile.h"

namespace mtp {

class AttentionTile {
public:
  using Values = AttentionCode::Values;
  using Fragment = MatrixTile::Fragment;
  using Fragments = llvm::SmallVector<Fragment>;

  /// Entries of a tile, and steps of 8 through one.
  static constexpr int64_t kEntries = 32,
                           kSteps = kEntries / MatrixTile::kColumns;
  static constexpr int64_t kBlockRows =
      MatrixTile::kRows * AttentionCode::kWarps;

  /// Of an op for which `hasMatrixAttention`.
  explicit AttentionTile(LibraryKernelContext &context);

protected:
  /// Starts the kernel: blocks for `count` rows of each of `heads` heads.
  void begin(int64_t count, int64_t heads);
  /// The lane's row g + 8 * half, which may lie behind the last.
  mlir::Value row(int64_t half) {
    return code.add(warpRow, code.add(g, half * 8));
  }
  mlir::Value rowInside(int64_t half, int64_t limit) {
    return code.min(row(half), code.number(limit - 1));
  }

  /// The warp's rows of an operand, one fragment for each 8 of the depth.
  Fragments loadRows(unsigned operand, int64_t depth, int64_t limit);
  /// Shared memory for a tile of vectors of `depth` elements.
  mlir::Value stage(int64_t depth);
  /// Loads the entries from `first` on of head (b, h); those from `limit` on
  /// are zero.
  void fill(mlir::Value shared, unsigned operand, int64_t depth, mlir::Value h,
            mlir::Value first, int64_t limit);

  /// Of the entries 8 * step, ... of a tile; sums are those of the elements
  /// `from`, ...
  Fragment product(llvm::ArrayRef<Fragment> rows, mlir::Value shared,
                   int64_t depth, mlir::Value step);
  void addProduct(llvm::MutableArrayRef<Fragment> sums,
                  llvm::ArrayRef<mlir::Value> numbers, mlir::Value shared,
                  int64_t depth, mlir::Value step, int64_t from = 0);
  Fragments zeroSums(int64_t depth);
  static void pack(Values &all, llvm::ArrayRef<Fragment> fragments);
  static Fragments unpack(mlir::ValueRange values);

  /// Over the four lanes that share a row.
  mlir::Value amongFour(mlir::Value value, bool largest);

  AttentionCode a;
  KernelCode &code;
  Scalars &s;
  mlir::Type compute; ///< what products are computed in
  MatrixTile tile;
  mlir::Value b, head, firstRow, warpRow, g, t, twice; ///< twice: 2 t

private:
  llvm::SmallVector<mlir::Value>
  loadNumbers(unsigned operand, llvm::ArrayRef<mlir::Value> at, int64_t width);
  int64_t vectorWidth(unsigned operand, int64_t most);
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_CUDA_ATTENTIONTILE_H
