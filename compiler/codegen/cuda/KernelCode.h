// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- KernelCode.h - short names for code that is written by hand --------===//
#ifndef MTP_COMPILER_CODEGEN_CUDA_KERNELCODE_H
#define MTP_COMPILER_CODEGEN_CUDA_KERNELCODE_H

#include "compiler/codegen/cuda/LibraryKernels.h"
#include "compiler/codegen/emit/Scalars.h"

namespace mtp {

/// Makes code at the emitter's builder. Positions and counts are i64.
class KernelCode {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  explicit KernelCode(GpuEmitter &emit)
      : emit(emit), builder(emit.builder), loc(emit.loc) {}

  mlir::Value number(int64_t value) { return emit.constant(value); }
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, int64_t b);
  mlir::Value div(mlir::Value a, int64_t b); ///< of a >= 0
  mlir::Value rem(mlir::Value a, int64_t b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a,
                      mlir::Value b);
  mlir::Value less(mlir::Value a, mlir::Value b) {
    return compare(mlir::arith::CmpIPredicate::slt, a, b);
  }
  /// 0 <= a < bound
  mlir::Value inside(mlir::Value a, int64_t bound) {
    return compare(mlir::arith::CmpIPredicate::ult, a, number(bound));
  }
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value either(mlir::Value a, mlir::Value b);
  mlir::Value negate(mlir::Value a);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);

  /// Positions in a row-major tensor of `shape` from the one in order.
  Values split(mlir::Value linear, llvm::ArrayRef<int64_t> shape);
  /// The sum of position * stride.
  mlir::Value join(llvm::ArrayRef<mlir::Value> positions,
                   llvm::ArrayRef<int64_t> strides);

  /// for (i = from; i < to; i += step) carried = body(i, carried)
  Values loop(mlir::Value from, mlir::Value to, int64_t step,
              mlir::ValueRange carried,
              llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  Values choose(mlir::Value condition, mlir::TypeRange types,
                llvm::function_ref<Values()> whenTrue,
                llvm::function_ref<Values()> whenFalse);

  /// Begins a kernel of one thread for each of `count` items; the body sees the
  /// item.
  void forEach(llvm::StringRef name, int64_t count,
               llvm::function_ref<void(mlir::Value)> body);

  mlir::Value load(mlir::Value base, mlir::Type element, mlir::Value at) {
    return emit.loadElement(base, element, at);
  }
  void store(mlir::Value base, mlir::Type element, mlir::Value at,
             mlir::Value value) {
    emit.storeElement(base, element, at, value);
  }
  /// Element `at` of an integer tensor as i64.
  mlir::Value loadIndex(mlir::Value base, mlir::Type element, mlir::Value at);

  GpuEmitter &emit;
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_CUDA_KERNELCODE_H
