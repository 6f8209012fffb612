// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- HostProgram.h - the program of an artifact, to be read -------------===//
#ifndef MTP_COMPILER_CODEGEN_CUDA_HOSTPROGRAM_H
#define MTP_COMPILER_CODEGEN_CUDA_HOSTPROGRAM_H

#include "runtime/artifact/Artifact.h"

#include "mlir/IR/BuiltinOps.h"

namespace mtp {

/// Adds a function for each entry of `artifact` to `module`, which holds the
/// gpu.module @kernels: launches, calls of the library and of communicators, in
/// the order in which the runtime issues them. Arguments are addresses of
/// device memory: the rank (MtpGpuRank), its values, the arena, inputs,
/// outputs, parameters. The runtime executes the same list as data; this is for
/// reading.
void addHostProgram(mlir::ModuleOp module, const Artifact &artifact,
                    const std::vector<GpuKernel> &kernels);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_CUDA_HOSTPROGRAM_H
