// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- EmulatedKernels.h - the kernels of device "cuda-emulated" ----------===//
#ifndef MTP_RUNTIME_CUDA_EMULATEDKERNELS_H
#define MTP_RUNTIME_CUDA_EMULATEDKERNELS_H

#include "runtime/artifact/Artifact.h"
#include "runtime/cuda/software/KernelImage.h"

namespace mtp::cuda {

/// The kernels of an artifact of device "cuda-emulated", as what the software
/// driver loads: they run in the emulator. All devices share them. Throws
/// RuntimeError for an object that isn't sound, and for a launch of the program
/// that doesn't fit its kernel.
software::KernelImage emulatedImage(const Artifact &artifact);

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_EMULATEDKERNELS_H
