// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuArch.h - the GPU of this machine --------------------------------===//
#ifndef MTP_TOOLS_COMMON_GPUARCH_H
#define MTP_TOOLS_COMMON_GPUARCH_H

#include <string>

namespace mtp {

/// Architecture of the first GPU, "sm_90" for compute capability 9.0; "" if
/// there is no driver or no GPU.
std::string gpuArchitecture();

} // namespace mtp

#endif // MTP_TOOLS_COMMON_GPUARCH_H
