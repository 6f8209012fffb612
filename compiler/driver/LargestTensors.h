// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LargestTensors.h - what takes most of a rank's memory --------------===//
#ifndef MTP_COMPILER_DRIVER_LARGESTTENSORS_H
#define MTP_COMPILER_DRIVER_LARGESTTENSORS_H

#include "runtime/artifact/Artifact.h"

#include "mlir/IR/BuiltinOps.h"

namespace mtp {

/// A tensor that a rank holds at its peak, or several of one name.
struct ResidentTensor {
  std::string name, what; ///< "wte.weight", "parameter"
  int64_t bytes = 0;      ///< of all
  int64_t count = 1;
};

/// The largest `most` tensors of a rank: parameters, states, inputs, outputs,
/// and the values of the arena at the step that needs most of it. `module` is
/// that of which `artifact` was emitted.
std::vector<ResidentTensor>
largestTensors(mlir::ModuleOp module, const Artifact &artifact, size_t most);
/// "'wte.weight' (parameter) 1234 bytes, ...".
std::string text(const std::vector<ResidentTensor> &tensors);

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_LARGESTTENSORS_H
