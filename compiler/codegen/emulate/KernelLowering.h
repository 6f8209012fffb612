// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- KernelLowering.h - a gpu.func to a function of the host ------------===//
#ifndef MTP_COMPILER_CODEGEN_EMULATE_KERNELLOWERING_H
#define MTP_COMPILER_CODEGEN_EMULATE_KERNELLOWERING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

namespace mtp {

/// One kernel while it becomes a function of the host.
class KernelLowering {
public:
  /// Makes function `index` of `target`. `where` names an operation for people,
  /// `error` says why run() failed.
  KernelLowering(mlir::gpu::GPUFuncOp kernel, mlir::ModuleOp target, int index,
                 llvm::function_ref<std::string(mlir::Operation *)> where,
                 std::string &error)
      : kernel(kernel), target(target), index(index), where(where),
        error(error) {}

  /// The kernel's body is moved.
  mlir::LogicalResult run();
  llvm::json::Object description(); ///< after run

private:
  /// What a pointer leads to.
  struct Base {
    enum Kind { Parameter, Array, Local, Constant, Loaded, Unknown } kind;
    int64_t index = 0;
  };
  mlir::LogicalResult refuse(const llvm::Twine &reason);
  mlir::LogicalResult refuse(mlir::Operation *op);
  void addParameters();
  mlir::LogicalResult addArrays();
  void flattenAddresses();
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerAccess(mlir::Operation *op, mlir::Value address,
                                  mlir::Type type, llvm::StringRef kind);
  /// What a thread does with others, and its asynchronous copies.
  mlir::LogicalResult lowerMeeting(mlir::Operation *op);
  void lowerShuffle(mlir::gpu::ShuffleOp op);
  void lowerVote(mlir::NVVM::VoteSyncOp op);
  mlir::LogicalResult lowerProduct(mlir::NVVM::MmaOp op);
  mlir::LogicalResult lowerMatrixLoad(mlir::NVVM::LdMatrixOp op);
  void lowerCopy(mlir::NVVM::CpAsyncOp op);
  mlir::LogicalResult lowerTf32(mlir::NVVM::ConvertFloatToTF32Op op);
  Base baseOf(mlir::Value address);
  int64_t addSite(mlir::Operation *op, llvm::StringRef kind, Base base,
                  int64_t bytes, llvm::StringRef mode = "");
  /// No access of the memory is narrower, any more.
  void narrow(Base base, int64_t bytes);

  struct Parameter {
    int64_t bytes = -1, granule = 16, align = 1;
    bool written = false;
  };
  struct Array {
    int64_t begin = 0, bytes = 0, granule = 16;
  };

  mlir::gpu::GPUFuncOp kernel;
  mlir::ModuleOp target;
  int index;
  llvm::function_ref<std::string(mlir::Operation *)> where;
  std::string &error;
  mlir::func::FuncOp function;
  std::vector<Parameter> parameters;
  std::vector<Array> arrays;
  llvm::StringMap<int64_t> arrayIndex;
  int64_t sharedBytes = 0;
  llvm::json::Array sites;
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMULATE_KERNELLOWERING_H
