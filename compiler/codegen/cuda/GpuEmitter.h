// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuEmitter.h - kernels for GPUs ------------------------------------===//
//
// The same regions, the same element expressions (compiler/codegen/emit); only
// who runs which iteration differs:
//
//   elements  one thread a position, or a vector of 16 bytes along the last
//             dimension where the row's length and all addresses allow that
//   rows      one block a row: its threads share the iterations of each sweep,
//             combine what they carry by shuffles and through shared memory,
//             and keep what later sweeps read in shared memory
//   columns   a block has 32 positions along the last dimension and shares the
//             sweeps down the others among 8 threads each
//
// A kernel is a gpu.func of (rank, buffers...): addresses of device memory, the
// first that of the MtpGpuRank. The grid covers the work; no thread loops over
// it. Sums go in an order that depends on shapes only.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_CUDA_GPUEMITTER_H
#define MTP_COMPILER_CODEGEN_CUDA_GPUEMITTER_H

#include "compiler/codegen/emit/RegionEmitter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <array>

namespace mtp {

/// Attribute of a region: for each buffer, operands first, whether its address
/// is a multiple of 16.
inline constexpr llvm::StringLiteral kAligned("mtp.aligned");

/// Blocks and threads of a launch.
struct LaunchShape {
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
};

class GpuEmitter : public RegionEmitter {
public:
  using RegionEmitter::RegionEmitter;

  const LaunchShape &launch() const { return shape; }

  bool hasRoom(mlir::Type type, int64_t elements) const override;
  mlir::Value scratch(mlir::Type type, int64_t elements) override;
  mlir::Value callMath(unsigned index, mlir::Type type,
                       mlir::ValueRange operands) override;

  //===--- for kernels that are written by hand
  //------------------------------===//

  /// Starts a kernel of arguments `types`; the builder stands before its
  /// return.
  mlir::gpu::GPUFuncOp makeKernel(llvm::StringRef name,
                                  llvm::ArrayRef<mlir::Type> types,
                                  const LaunchShape &launch);
  /// The same for rank and buffers of the region.
  void beginKernel(llvm::StringRef name, const LaunchShape &launch);
  /// The operands of the region's op, then its results.
  llvm::ArrayRef<mlir::Value> arguments() const { return buffers; }
  mlir::gpu::GPUFuncOp kernel() {
    return llvm::cast<mlir::gpu::GPUFuncOp>(function.getOperation());
  }
  /// Shared memory of a block: an address in space 3.
  mlir::Value sharedArray(mlir::Type type, int64_t elements);
  mlir::Value threadId(mlir::gpu::Dimension dim = mlir::gpu::Dimension::x);
  mlir::Value blockId(mlir::gpu::Dimension dim = mlir::gpu::Dimension::x);
  void barrier();
  /// The lane whose number differs in the bits of `mask` has this value.
  mlir::Value shuffleXor(mlir::Value value, int64_t mask);
  /// The value that lane `lane` (i64) has.
  mlir::Value shuffleFrom(mlir::Value value, mlir::Value lane);

protected:
  void beginFunction(llvm::StringRef name) override;
  void emitResults() override;
  bool isShared(const Level &parent) const override;
  llvm::SmallVector<mlir::Value> emitShared(Nest &nest, Level &parent,
                                            mlir::ValueRange initial) override;
  void enterRow() override { floor = current; }
  bool shapesLoops() const override { return false; }
  bool readsResults() const override { return false; }
  void storeInResult(size_t number, const IndexExpr &position,
                     mlir::Value value) override;
  int64_t faultOffset() const override;

private:
  mlir::Value shuffle(mlir::Value value, mlir::Value offset,
                      mlir::gpu::ShuffleMode shuffleMode);
  enum class Mode { Elements, Rows, Columns };
  Mode chooseMode();
  int64_t chooseVector();
  int64_t rowLength();
  void chooseShape();
  mlir::Value exchange(mlir::Value value, mlir::Value slot, mlir::Value writes,
                       int64_t slots);
  mlir::Value combineRow(mlir::Operation *combiner, mlir::Value value);
  mlir::Value combineColumn(mlir::Operation *combiner, mlir::Value value);

  LaunchShape shape;
  Mode mode = Mode::Elements;
  mlir::Value guard;      ///< columns: whether this thread stores
  bool exchanged = false; ///< the threads met since the last sweep
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_CUDA_GPUEMITTER_H
