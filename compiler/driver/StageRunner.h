// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- StageRunner.h - stages with a gate, a clock and a dump -------------===//
#ifndef MTP_COMPILER_DRIVER_STAGERUNNER_H
#define MTP_COMPILER_DRIVER_STAGERUNNER_H

#include "compiler/driver/CompilerApi.h"
#include "compiler/driver/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mtp {

/// Runs the stages of one compile in order. After each one that leaves a
/// module, the module is verified and dumped as NN-name.mlir. Errors, times,
/// warnings and progress go to the request and result.
class StageRunner {
public:
  StageRunner(const CompileRequest &request, CompileResult &result,
              mlir::MLIRContext *context);

  /// The stages of `total`, for progress.
  void expect(int total) { expected = total; }

  /// Runs `body`, which reports what is wrong as diagnostics or by `fail`. If
  /// it returns false and hasn't called `fail`, the diagnostics are an error of
  /// `exitCode`, `kind`.
  bool run(llvm::StringRef name, llvm::function_ref<bool()> body,
           int exitCode = kInternal, llvm::StringRef kind = "internal");
  /// A stage of passes on `module`, then gate and dump.
  bool runPasses(llvm::StringRef name, mlir::ModuleOp module,
                 llvm::function_ref<void(mlir::OpPassManager &)> add,
                 int exitCode = kInternal, llvm::StringRef kind = "internal");
  /// Verifies `module` and dumps it under the name of the stage; for stages
  /// that aren't passes, at their end. After the import an op that doesn't
  /// verify is one of the user's file: bad input.
  bool gate(llvm::StringRef name, mlir::ModuleOp module,
            int exitCode = kInternal, llvm::StringRef kind = "internal");

  /// Records an error. Always returns false.
  bool fail(int exitCode, llvm::StringRef kind, std::string message,
            std::vector<std::string> nodes = {});

  DiagnosticCollector diagnostics;

private:
  bool dump(llvm::StringRef name, mlir::ModuleOp module);
  /// An error of the diagnostics so far.
  bool failWithDiagnostics(llvm::StringRef stage, int exitCode,
                           llvm::StringRef kind);

  const CompileRequest &request;
  CompileResult &result;
  mlir::MLIRContext *context;
  int started = 0, dumped = 0, expected = 1;
};

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_STAGERUNNER_H
