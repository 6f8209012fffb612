// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ObjectEmitter.h - loops to a hermetic shared object ----------------===//
#ifndef MTP_COMPILER_CODEGEN_OBJECTEMITTER_H
#define MTP_COMPILER_CODEGEN_OBJECTEMITTER_H

#include "compiler/codegen/Kernels.h"

namespace mtp {

/// Name of the function with the loops of kernel `index`.
std::string kernelBodyName(int index);

/// Features that kernels may use and this processor has, in LLVM's names.
std::vector<std::string> usedCpuFeatures();

/// Triple, processor and features, for cache keys.
std::string targetText();

/// Compiles the `count` kernel bodies of `loops` and links them. The object
/// exports only mtp_kernels and needs nothing from outside.
mlir::FailureOr<KernelObject> emitObject(mlir::ModuleOp loops, size_t count,
                                         const KernelOptions &options,
                                         std::string &error);

/// Links objects (bytes) into a shared object. `linker`: see KernelOptions.
mlir::FailureOr<std::string> linkShared(const std::vector<std::string> &objects,
                                        const std::string &linker,
                                        std::string &error);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_OBJECTEMITTER_H
