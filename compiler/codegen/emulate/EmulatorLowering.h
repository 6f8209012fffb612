// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- EmulatorLowering.h - a gpu.module to code of the host --------------===//
//
// The kernels of which PTX is made, bodies untouched. What a thread can't do by
// itself becomes a call of the emulator (runtime/abi/EmulatorAbi.h):
//
//   gpu.thread_id, block_id, block_dim, grid_dim   fields of the thread
//   gpu.barrier                                    thread->barrier
//   gpu.shuffle, nvvm.vote, mma.sync, ldmatrix     thread->warp
//   nvvm.cp.async.*                                thread->async
//   llvm.load, llvm.store, llvm.atomicrmw          thread->access before it
//   arrays in shared memory                        parts of thread->shared
//   functions without an instruction               thread->math
//
// An operation that is none of these, and has no lowering of its own to the
// host, is refused by name.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_EMULATE_EMULATORLOWERING_H
#define MTP_COMPILER_CODEGEN_EMULATE_EMULATORLOWERING_H

#include "compiler/codegen/Kernels.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mtp {

/// Attribute of a gpu.func: bytes of the memory that each parameter is the
/// address of; -1: it is not known, or a number.
inline constexpr llvm::StringLiteral kParameterBytes("mtp.bytes");

/// Functions body_0, body_1, ... of one thread each, in the order of the
/// module's kernels, and last the one that gives the description. The module is
/// left as it is. On failure `error` says why.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
lowerToEmulator(mlir::gpu::GPUModuleOp module, std::string &error);

/// The same as a shared object (Artifact::object of device "cuda-emulated").
mlir::FailureOr<KernelObject> emitEmulated(mlir::gpu::GPUModuleOp module,
                                           const KernelOptions &options,
                                           std::string &error);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMULATE_EMULATORLOWERING_H
