// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ModelInput.h - what mtp-opt reads ----------------------------------===//
#ifndef MTP_TOOLS_MTPOPT_MODELINPUT_H
#define MTP_TOOLS_MTPOPT_MODELINPUT_H

#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace mtp::ModelInput {

/// Flags that only concern .onnx files: --dim, --precision.
void registerOptions();

/// The module in `name`: the file's bytes, or for .onnx the imported module as
/// bytecode, so that locations (names of ONNX nodes) are kept. Null and a
/// reason if it can't be read.
std::unique_ptr<llvm::MemoryBuffer> open(const std::string &name,
                                         std::string &error);

} // namespace mtp::ModelInput

#endif // MTP_TOOLS_MTPOPT_MODELINPUT_H
