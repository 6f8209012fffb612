// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- KernelRunner.h - compiles, loads and runs kernels ------------------===//
#ifndef MTP_TEST_UNIT_CODEGEN_KERNELRUNNER_H
#define MTP_TEST_UNIT_CODEGEN_KERNELRUNNER_H

#include "compiler/codegen/Kernels.h"
#include "runtime/abi/Abi.h"
#include "test/unit/codegen/Interpreter.h"

#include <memory>

namespace mtp::test {

/// All kernels of a module of funcs, compiled and loaded.
class KernelRunner {
public:
  /// Throws std::runtime_error with the diagnostics if anything fails.
  explicit KernelRunner(mlir::ModuleOp module);
  /// The kernels of the given spmd.fused ops.
  KernelRunner(mlir::MLIRContext *context,
               llvm::ArrayRef<mlir::Operation *> fused);
  ~KernelRunner();

  /// Runs kernel `index` of `func` in `slices` slices.
  std::vector<Tensor> run(mlir::func::FuncOp func,
                          const std::vector<Tensor> &arguments, int slices = 3);
  std::vector<Tensor> run(int index, mlir::TypeRange inputs,
                          mlir::TypeRange results,
                          const std::vector<Tensor> &arguments, int slices);
  /// Milliseconds of one run, best of several.
  double time(mlir::func::FuncOp func, const std::vector<Tensor> &arguments);
  /// Number of the last fault, 0 if none.
  int64_t fault() const { return lastFault; }
  const KernelModule &kernels() const { return *module; }
  const KernelObject &object() const { return compiled; }
  int indexOf(mlir::func::FuncOp func) const {
    return indices.at(func.getName().str());
  }
  int indexOf(mlir::Operation *fused) const { return fusedIndices.at(fused); }

private:
  void compile();
  std::unique_ptr<KernelModule> module;
  KernelObject compiled;
  std::map<std::string, int> indices;
  std::map<mlir::Operation *, int> fusedIndices;
  void *handle = nullptr;
  const MtpKernelTable *table = nullptr;
  int64_t lastFault = 0;
};

/// Inputs for a func: floats from a normal distribution, integers in [-9, 9],
/// booleans. An argument with the attribute mtp.below is in [0, below).
std::vector<Tensor> randomArguments(mlir::func::FuncOp func, uint64_t seed);

/// Empty if both agree within `tolerance` (against the larger of 1 and the
/// largest magnitude), else what differs.
std::string difference(const Tensor &actual, const Tensor &expected,
                       double tolerance);

} // namespace mtp::test

#endif // MTP_TEST_UNIT_CODEGEN_KERNELRUNNER_H
