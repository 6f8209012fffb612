// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuKernels.h - the kernels of a compile for a GPU ------------------===//
//
// As KernelModule, with two differences: every op but matrix products of
// floating point numbers becomes kernels (LibraryKernels.h), and the result is
// the text of one PTX module.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_CUDA_GPUKERNELS_H
#define MTP_COMPILER_CODEGEN_CUDA_GPUKERNELS_H

#include "compiler/codegen/Kernels.h"
#include "compiler/codegen/cuda/GpuEmitter.h"
#include "runtime/artifact/Artifact.h"

namespace mtp {

class GpuKernelModule : public KernelModule {
public:
  /// `arch` is one of gpuArchitectures(); `precision` as in the request:
  /// products inside of kernels may round operands of f32 to bf16, f16 or tf32.
  GpuKernelModule(mlir::MLIRContext *context, std::string arch,
                  std::string precision);

  mlir::FailureOr<llvm::SmallVector<KernelLaunch>>
  launches(mlir::Operation *op, PlaceOf placeOf) override;

  /// After the last launch: adds mtp_reduce_<reduction>_<type> for every site
  /// (GpuCode.h), and tidies the code.
  mlir::LogicalResult finish(const std::vector<CollectiveSite> &sites);

  /// All kernels, before they are lowered.
  mlir::gpu::GPUModuleOp code();
  /// Launches by kernel index.
  const std::vector<GpuKernel> &gpuKernels() const { return launchTable; }

  /// PTX of all kernels. The module of code() is lowered by this. On failure
  /// `error` says why.
  mlir::FailureOr<std::string> emitPtx(std::string &error);

private:
  bool isAccepted(mlir::Operation *op) const override;
  mlir::FailureOr<KernelInfo> emitRegion(
      mlir::Operation *func, int index, llvm::StringRef name,
      llvm::function_ref<int64_t(const std::string &)> faultNumber) override;
  mlir::FailureOr<llvm::SmallVector<KernelLaunch>>
  regionLaunch(mlir::Operation *op, PlaceOf placeOf);
  void addReductions(const std::vector<CollectiveSite> &sites);
  mlir::LogicalResult checkProduct(mlir::Operation *op) const;

  std::string arch, precision;
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< holds the gpu.module
  std::vector<GpuKernel> launchTable;
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_CUDA_GPUKERNELS_H
