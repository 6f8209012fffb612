// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProgramRunner.h - runs typed programs on a mesh and on one rank -===//
#ifndef MTP_TEST_UNIT_PROGRAM_PROGRAMRUNNER_H
#define MTP_TEST_UNIT_PROGRAM_PROGRAMRUNNER_H

#include "runtime/session/Session.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace mtp::test {

/// One module with one function, as text.
struct TypedProgram {
  std::string name; ///< of the function
  std::string text;
};

/// The modules of a file whose parts are separated by `// -----`.
std::vector<TypedProgram> readPrograms(const std::string &path);

/// Results of a program.
struct RunResult {
  std::string error; ///< "" if it ran
  TensorMap outputs; ///< of the last step
  TensorMap parameters, states;
  int64_t arenaBytes = 0;
  int64_t kernelLaunches = 0; ///< of the first entry
  int64_t meanwhile = 0; ///< kernels and calls while a collective is under way
  std::vector<SiteCount> collectives; ///< of the last entry that ran
};

/// How the program of a rank is made.
enum class Form {
  Single,    ///< every op is a kernel of its own
  Fused,     ///< as for a CPU
  Overlapped ///< with products in two parts and collectives under way, as for
             ///< a GPU
};

/// Compiles and runs a module with layouts. Stored tensors become random
/// values; inputs are random (integers in [0, 5)), the same for every mesh.
/// With `whole` every mesh axis gets one rank. Padding and the fresh arena are
/// poisoned. Runs all entries in order, `steps` times.
RunResult runProgram(mlir::MLIRContext *context, const TypedProgram &program,
                     bool whole, Form form, int steps = 1);

/// max |a - b| / max |b|; infinite if NaNs differ.
double distance(const HostTensor &a, const HostTensor &b);

} // namespace mtp::test

#endif // MTP_TEST_UNIT_PROGRAM_PROGRAMRUNNER_H
