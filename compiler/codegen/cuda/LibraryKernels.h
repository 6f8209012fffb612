// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LibraryKernels.h - ops that the CPU's library computes -------------===//
//
// What a runtime kernel computes on the CPU (runtime/kernels) is a kernel of
// the compiler's own on a GPU, with the meaning that
// runtime/kernels/LibraryKernel.h documents. An op may take several kernels,
// one after the other; each writes other results and none needs memory of its
// own.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_CUDA_LIBRARYKERNELS_H
#define MTP_COMPILER_CODEGEN_CUDA_LIBRARYKERNELS_H

#include "compiler/codegen/cuda/GpuEmitter.h"

#include "llvm/ADT/StringMap.h"

namespace mtp {

/// Attributes of the region of such a kernel: which part of the op it is,
/// element strides of its buffers (empty: row-major).
inline constexpr llvm::StringLiteral kPart("mtp.part");
inline constexpr llvm::StringLiteral kStrides("mtp.strides");

/// A kernel of an op and the results that it writes.
struct KernelPart {
  llvm::StringRef name; ///< "" if it is the only one
  llvm::SmallVector<unsigned> results;
};

/// One kernel while it is emitted.
struct LibraryKernelContext {
  LibraryKernelContext(GpuEmitter &emit, mlir::Operation *op,
                       llvm::StringRef name, llvm::StringRef part)
      : emit(emit), op(op), name(name), part(part) {}

  GpuEmitter &emit;
  mlir::Operation *op;  ///< the only one of the region
  llvm::StringRef name; ///< of the kernel
  llvm::StringRef part;
  int capability = 75;       ///< of the device: 90 for sm_90
  llvm::StringRef precision; ///< what products may round f32 operands to
  llvm::SmallVector<llvm::SmallVector<int64_t>> strides; ///< by buffer
  llvm::SmallVector<bool> aligned; ///< addresses are multiples of 16; by buffer
  llvm::SmallVector<unsigned> results; ///< that are written

  mlir::Value operandBuffer(unsigned operand) const {
    return emit.arguments()[operand];
  }
  /// Of the op's result `number`; null if another part writes it.
  mlir::Value resultBuffer(unsigned number) const;
  bool isAligned(unsigned operand) const { return aligned[operand]; }
  llvm::ArrayRef<int64_t> operandStrides(unsigned operand) const {
    return strides[operand];
  }
  llvm::ArrayRef<int64_t> resultStrides(unsigned number) const;
};

/// How an op becomes kernels.
struct LibraryKernelEmitter {
  /// The kernels; none if the op's types are computed by the library.
  llvm::SmallVector<KernelPart> (*parts)(mlir::Operation *op) = nullptr;
  /// Emits one. Emits a diagnostic at the op and fails if it can't.
  mlir::LogicalResult (*emit)(LibraryKernelContext &context) = nullptr;
};

using LibraryKernelTable = llvm::StringMap<LibraryKernelEmitter>;

/// The emitter of an op; null if it has none.
const LibraryKernelEmitter *libraryKernelOf(mlir::Operation *op);

/// All results in one kernel.
llvm::SmallVector<KernelPart> onePart(mlir::Operation *op);

void registerAttentionKernels(LibraryKernelTable &table);
void registerConvolutionKernels(LibraryKernelTable &table);
void registerGatherGradientKernels(LibraryKernelTable &table);
void registerLineKernels(LibraryKernelTable &table);
void registerProductKernels(LibraryKernelTable &table);
void registerScatterKernels(LibraryKernelTable &table);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_CUDA_LIBRARYKERNELS_H
