// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Compilation.h - a model becomes an artifact ------------------------===//
#ifndef MTP_COMPILER_DRIVER_COMPILATION_H
#define MTP_COMPILER_DRIVER_COMPILATION_H

#include "compiler/codegen/Kernels.h"
#include "compiler/driver/Cache.h"
#include "compiler/driver/StageRunner.h"
#include "compiler/plan/Plan.h"

namespace mtp {

class GpuKernelModule;

/// Dialects that any stage makes.
void registerDialects(mlir::DialectRegistry &registry);

/// One compile, from the file to the artifact. `files` become those that were
/// read, with their hashes.
class Compilation {
public:
  Compilation(const CompileRequest &request, CompileResult &result,
              std::string modelHash);
  ~Compilation();
  /// False if it failed; the reason stands in the result.
  bool run(std::vector<ReadFile> &files);

private:
  bool import(std::vector<ReadFile> &files);
  bool importMlir();
  bool importOnnx(std::vector<ReadFile> &files);
  /// Training: dropout and loss; which parameters; gradients and update.
  bool addLoss();
  bool simplify();
  bool chooseParameters();
  bool plan();
  bool differentiate();
  using Axes = llvm::ArrayRef<std::pair<std::string, int64_t>>;
  bool takeTypedModule(Axes axes);
  bool setTarget(Axes axes);
  plan::PlanOptions planOptions() const;
  /// The plan of a file or of a seed.
  mlir::FailureOr<plan::Plan> givenPlan(Axes axes);
  mlir::FailureOr<plan::Plan> makePlan(Axes axes);
  /// The same within the memory budget; `train` becomes what fits.
  mlir::FailureOr<plan::Plan> planWithin(Axes axes);
  bool checkBudget();
  bool savePlan(const plan::Plan &plan);
  bool lower();
  bool emit();
  bool emitKernels(KernelModule &kernels);
  bool emitGpuKernels(GpuKernelModule &kernels);
  /// Program and kernels, for the CPU or for GPUs.
  bool emitCode();
  bool isOnGpu() const { return request.device != "cpu"; }

  const CompileRequest &request;
  CompileResult &result;
  std::string modelHash;
  /// The request's; what a memory budget decides is filled in.
  std::optional<TrainRequest> train;
  nlohmann::json budget; ///< `plan.budget` of --json
  mlir::MLIRContext context;
  StageRunner stages;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  int64_t annotations = 0; ///< layouts that the model says, as it was read
};

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_COMPILATION_H
