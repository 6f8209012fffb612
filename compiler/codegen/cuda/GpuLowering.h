// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuLowering.h - a gpu.module to PTX --------------------------------===//
//
//   gpu, scf, arith, math --(lowerToNvvm)--> nvvm, llvm --(emitPtx)--> PTX
//
// exp, tanh, erf and log in single precision are the polynomials of the CPU;
// what else has no instruction (double precision, sine, cosine, powers, exp
// minus one) is a call of libdevice, which comes with the CUDA toolkit and is
// looked for only if a kernel needs it.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_CUDA_GPULOWERING_H
#define MTP_COMPILER_CODEGEN_CUDA_GPULOWERING_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mtp {

/// Architectures that kernels can be made for, ascending: "sm_75", ...
const std::vector<std::string> &gpuArchitectures();
/// 90 for "sm_90"; 0 if the name is none of the above.
int gpuCapability(const std::string &arch);

/// Lowers the kernels of the gpu.module in place.
mlir::LogicalResult lowerToNvvm(mlir::gpu::GPUModuleOp module);

/// The text of one PTX module of a lowered gpu.module. On failure `error` says
/// why, in one sentence.
mlir::FailureOr<std::string> emitPtx(mlir::gpu::GPUModuleOp module,
                                     const std::string &arch,
                                     std::string &error);

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_CUDA_GPULOWERING_H
