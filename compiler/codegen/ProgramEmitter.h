// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProgramEmitter.h - a rank's program as data
//-------------------------===//
//
// The last step before the object: the module after `spmd-fuse` becomes the
// tables and the program of an artifact. Each op of @main is
//
//   spmd.parameter, mtp.constant    a parameter (equal ones once)
//   spmd.rank_value                 a rank value (equal ones once)
//   what moves no bytes             nothing (BufferPlan.h)
//   a fused region, a fusible op    a kernel launch
//   a collective                    a start, then its done
//   anything else                   a library call (LibraryCalls.h)
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_PROGRAMEMITTER_H
#define MTP_COMPILER_CODEGEN_PROGRAMEMITTER_H

#include "compiler/codegen/Kernels.h"
#include "runtime/artifact/Artifact.h"

namespace mtp {

/// Fills `axes`, `entries` (one, "forward"), `parameters`, `rankValues`, both
/// lists of sites, `faults`, `kernelNames` and `data` of `artifact`; adds the
/// kernels of @main to `kernels`. The module may gain copies of returned
/// values. Diagnostics stand at the op they are about.
mlir::LogicalResult emitProgram(mlir::ModuleOp module, KernelModule &kernels,
                                Artifact &artifact);

/// Bytes of the arena that emitProgram plans, without emitting; -1 after a
/// diagnostic.
int64_t arenaBytesOf(mlir::ModuleOp module);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_PROGRAMEMITTER_H
