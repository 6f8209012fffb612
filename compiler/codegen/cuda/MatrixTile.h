// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MatrixTile.h - mma.sync on fragments of numbers --------------------===//
//
// One instruction of a warp: D = A B + C for A (16 x 8), B (8 x 8), C (16 x 8).
// Lane 4 g + t has, of
//
//   C   (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1)
//   A   the same positions, columns being k
//   B   (2t, g) (2t + 1, g), rows being k
//
// A result can so be the A of a next product as it is. For tf32 the hardware
// numbers k otherwise; a sum over k doesn't mind, as long as A and B agree.
//
// Numbers are what a product takes: f16, the bits of a bf16, or f32 whose lower
// bits are rounded away (tf32). They are rounded once, when they are loaded.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_CUDA_MATRIXTILE_H
#define MTP_COMPILER_CODEGEN_CUDA_MATRIXTILE_H

#include "compiler/codegen/cuda/KernelCode.h"

namespace mtp {

class MatrixTile {
public:
  static constexpr int64_t kRows = 16, kColumns = 8, kDepth = 8;

  /// What a product of numbers of type `element` is computed in: f16, bf16, or
  /// f32 for tf32; null if the device has no instruction for it.
  static mlir::Type computeType(mlir::Type element, int capability,
                                llvm::StringRef precision);

  MatrixTile(KernelCode &code, mlir::Type element)
      : code(code), element(element) {}

  using Fragment = llvm::SmallVector<mlir::Value, 4>;

  /// The type of a number, also in shared memory.
  mlir::Type stored() const { return RegionEmitter::storageType(element); }
  mlir::Value zero();
  /// A number from a register value (f32).
  mlir::Value round(mlir::Value value);
  /// What of a register value a number keeps, as a register value.
  mlir::Value roundTrip(mlir::Value value);

  /// Numbers from a tensor of type `from`: its elements at, at + 1, ... The
  /// address of the first must be a multiple of the bytes of all.
  llvm::SmallVector<mlir::Value> loadRounded(mlir::Value base, mlir::Type from,
                                             mlir::Value at, int64_t count);
  mlir::Value loadStored(mlir::Value base, mlir::Value at);
  /// Elements at, at + 1, ..., of an address as for loadRounded.
  void store(mlir::Value base, mlir::Value at,
             llvm::ArrayRef<mlir::Value> numbers);

  Fragment fragmentA(llvm::ArrayRef<mlir::Value> numbers); ///< 4
  Fragment fragmentB(llvm::ArrayRef<mlir::Value> numbers); ///< 2
  /// A fragment B of the elements at, at + 1; `at` is even.
  Fragment loadPair(mlir::Value base, mlir::Value at);
  /// Four sums of f32.
  Fragment multiply(const Fragment &a, const Fragment &b, const Fragment &c);

private:
  mlir::Value loadVector(mlir::Value base, mlir::Type type, mlir::Value at,
                         int64_t count);
  llvm::SmallVector<mlir::Value> elementsOf(mlir::Value vector);
  mlir::Value vectorOf(llvm::ArrayRef<mlir::Value> elements);
  mlir::Value pack(mlir::Value low, mlir::Value high);
  mlir::Value bitsOf(mlir::Value number);

  KernelCode &code;
  mlir::Type element;
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_CUDA_MATRIXTILE_H
