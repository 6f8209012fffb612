// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- EmulatedRunner.h - kernels for GPUs, run by the emulator -----------===//
#ifndef MTP_TEST_UNIT_EMULATOR_EMULATEDRUNNER_H
#define MTP_TEST_UNIT_EMULATOR_EMULATEDRUNNER_H

#include "compiler/codegen/cuda/GpuKernels.h"
#include "runtime/emulator/Emulator.h"
#include "test/unit/codegen/CallMemory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <memory>

namespace mtp::test {

/// How a func becomes kernels.
enum class Road {
  Fused, ///< one for the whole func
  Single ///< as many as each op takes, addresses are aligned
};

/// All kernels of a module of funcs, compiled and loaded.
class EmulatedRunner {
public:
  using Change = llvm::function_ref<void(mlir::gpu::GPUModuleOp)>;

  /// `change` may edit the device code before it is compiled. The precision is
  /// the attribute test.precision of a func of the module, or f32. Throws
  /// std::runtime_error with the diagnostics if anything fails.
  EmulatedRunner(mlir::ModuleOp module, Road road,
                 const std::string &arch = "sm_80", Change change = nullptr);

  /// Results of a func. Products that the GPU's library computes are
  /// interpreted. Throws RuntimeError if a kernel does what it must not.
  std::vector<Tensor> run(mlir::func::FuncOp func,
                          const std::vector<Tensor> &arguments);
  /// Number of the last fault, 0 if none.
  int64_t fault() const { return lastFault; }
  const GpuKernelModule &kernels() const { return *module; }
  /// The code that is run, before it was lowered.
  mlir::gpu::GPUModuleOp code() { return module->code(); }
  /// PTX of that code, which is lowered by this. Throws std::runtime_error.
  std::string ptx();

private:
  void launch(int kernel, const std::vector<char *> &buffers);

  Road road;
  std::unique_ptr<GpuKernelModule> module;
  std::unique_ptr<emulator::Kernels> loaded;
  std::map<std::string, int> fused; ///< kernel by func
  std::map<mlir::Operation *, llvm::SmallVector<KernelLaunch>> launches;
  int64_t lastFault = 0;
};

} // namespace mtp::test

#endif // MTP_TEST_UNIT_EMULATOR_EMULATEDRUNNER_H
