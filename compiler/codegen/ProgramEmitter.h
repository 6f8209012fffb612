// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ProgramEmitter.h - a rank's program as data ------------------------===//
//
// The last step before the object: the module after `spmd-fuse` becomes the
// tables and the programs of an artifact: each function is an entry, @main the
// first, and all share the tables. Each op of a function is
//
//   spmd.parameter, mtp.constant    a parameter (equal ones once)
//   spmd.rank_value                 a rank value (equal ones once)
//   what moves no bytes             nothing (BufferPlan.h)
//   spmd.store                      nothing: its value lies there
//                                   (BufferPlan.h)
//   a fused region, a fusible op    a kernel launch
//   a collective                    a start, and later its done (Overlap.h)
//   anything else                   a library call (LibraryCalls.h)
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_PROGRAMEMITTER_H
#define MTP_COMPILER_CODEGEN_PROGRAMEMITTER_H

#include "compiler/codegen/Kernels.h"
#include "runtime/artifact/Artifact.h"

namespace mtp {

/// Fills `axes`, `entries`, `parameters`, `rankValues`, both lists of sites,
/// `faults`, `kernelNames` and `data` of `artifact`; adds the kernels to
/// `kernels`. The module may gain copies of returned and stored values.
/// Diagnostics stand at the op they are about.
mlir::LogicalResult emitProgram(mlir::ModuleOp module, KernelModule &kernels,
                                Artifact &artifact);

/// Bytes of the arena that emitProgram plans (that of the entry which needs
/// most: they share it), without emitting; -1 after a
/// diagnostic.
int64_t arenaBytesOf(mlir::ModuleOp module);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_PROGRAMEMITTER_H
