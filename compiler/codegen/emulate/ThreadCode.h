// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ThreadCode.h - calls of the emulator in a kernel -------------------===//
#ifndef MTP_COMPILER_CODEGEN_EMULATE_THREADCODE_H
#define MTP_COMPILER_CODEGEN_EMULATE_THREADCODE_H

#include "runtime/abi/EmulatorAbi.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mtp {

/// Makes code before an operation of a function whose first argument is the
/// MtpEmulatedThread.
class ThreadCode {
public:
  ThreadCode(mlir::Operation *before, mlir::func::FuncOp function)
      : builder(before), loc(before->getLoc()), function(function) {}

  mlir::Value number(int64_t value); ///< i64
  /// A number of the thread, at an offset in bytes, as index.
  mlir::Value indexField(int64_t offset);
  /// Address of byte `offset` of the block's shared memory.
  mlir::Value shared(int64_t offset);
  void access(int64_t site, mlir::Value address);
  void barrier(int64_t site);
  /// Gives i64 operands, returns as many results.
  llvm::SmallVector<mlir::Value> warp(int64_t site, mlir::ValueRange operands);
  /// Of asynchronous copies; gives i64 operands.
  void async(int64_t site, mlir::ValueRange operands);
  /// Function `index` of MtpMath, counted in double precision.
  mlir::Value callMath(int index, mlir::Type type, mlir::ValueRange operands);

  mlir::Value widen(mlir::Value integer); ///< without sign, to i64
  /// Of a number, or a vector of at most 64 bits, as i64.
  mlir::Value toBits(mlir::Value value);
  mlir::Value fromBits(mlir::Value bits, mlir::Type type);
  mlir::Value isSet(mlir::Value bits);
  /// Of the first results of warp().
  mlir::Value structOf(mlir::ValueRange bits, mlir::Type type);
  mlir::Value addressBits(mlir::Value pointer); ///< as i64
  /// cvt.rna.tf32.f32: an f32 to its first 10 bits of fraction, ties away from
  /// zero, as i32; a NaN becomes 0x7fffffff.
  mlir::Value roundToTf32(mlir::Value number);

private:
  mlir::Value word(int64_t value); ///< i32
  mlir::Value keep(mlir::ValueRange operands);
  mlir::Value field(int64_t offset, mlir::Type type);
  mlir::Value at(mlir::Value base, int64_t offset);
  void call(int64_t offset, mlir::ValueRange arguments);

  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::func::FuncOp function;
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMULATE_THREADCODE_H
