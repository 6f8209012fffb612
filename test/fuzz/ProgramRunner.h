// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProgramRunner.h - compile a module, run it, compare ----------------===//
#ifndef MTP_TEST_FUZZ_PROGRAMRUNNER_H
#define MTP_TEST_FUZZ_PROGRAMRUNNER_H

#include "dialects/mtp/Layout.h"
#include "runtime/io/HostTensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <random>

namespace mtp {
class Session;
}

namespace mtp::fuzz {

struct RunOptions {
  std::string mesh = "tp=1";
  std::string plan;    ///< of an untyped module: "" or "random:SEED"
  bool poison = false; ///< NaN in all padding and in the fresh arena
  bool doublePrecision = true;
};

/// A module compiled in this process, with its ranks.
class CompiledProgram {
public:
  /// `error` is the reason if it cannot be compiled or loaded, "" otherwise.
  CompiledProgram(mlir::ModuleOp module, const RunOptions &options,
                  std::string &error);
  ~CompiledProgram();
  /// One step. Returns the reason if it fails, "" otherwise.
  std::string run(const TensorMap &inputs, TensorMap &outputs);

private:
  std::unique_ptr<Session> session;
};

/// Compiles a module in this process and runs it once. Returns the reason if
/// that fails, "" otherwise.
std::string runProgram(mlir::ModuleOp module, const RunOptions &options,
                       const TensorMap &inputs, TensorMap &outputs);

/// Largest difference over the largest value; NaN equals NaN, infinities by
/// sign. Infinity if shapes or types differ. The largest value counts as
/// `floor` at least.
double difference(const HostTensor &have, const HostTensor &want,
                  double floor = 1e-300);

/// Random values of mixed signs for each argument of a function, by `mtp.name`
/// or "arg<index>". Integers lie in -20..20, in -`indexRange`..`indexRange`-1
/// if that is given.
TensorMap randomInputs(mlir::func::FuncOp function, int64_t indexRange,
                       uint64_t seed);

/// `dp=2,tp=3`; `tp=2x2` is an axis in two factors. Nothing if it is malformed.
std::optional<MeshShape> parseMesh(llvm::StringRef text);
/// The same mesh as the compiler's --mesh takes it: without factors.
std::string plainMesh(const MeshShape &mesh);

} // namespace mtp::fuzz

#endif // MTP_TEST_FUZZ_PROGRAMRUNNER_H
