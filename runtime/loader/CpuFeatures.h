// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CpuFeatures.h - what an artifact needs of the processor ------------===//
#ifndef MTP_RUNTIME_LOADER_CPUFEATURES_H
#define MTP_RUNTIME_LOADER_CPUFEATURES_H

#include <string>
#include <vector>

namespace mtp {

/// Those of `features` (named as LLVM names them, with or without '+') that
/// this processor doesn't have or this build doesn't know. Names with '-' ask
/// for nothing.
std::vector<std::string>
missingCpuFeatures(const std::vector<std::string> &features);

/// "x86-64" or "arm64" and the vendor's name of the processor.
std::string cpuName();

} // namespace mtp

#endif // MTP_RUNTIME_LOADER_CPUFEATURES_H
