// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ElfCheck.h - what a compiled object must not contain ---------------===//
#ifndef MTP_RUNTIME_LOADER_ELFCHECK_H
#define MTP_RUNTIME_LOADER_ELFCHECK_H

#include <string>

namespace mtp {

/// Accepts a hermetic shared object for this machine: no needed libraries, no
/// initializers or finalizers, no undefined symbols or indirect functions, no
/// relocation outside of writable data, no segment that is writable and
/// executable, no interpreter, no thread-local storage, and exactly one
/// exported symbol, the function `symbol`. Otherwise false and one sentence in
/// `error`.
bool checkSharedObject(const std::string &bytes, const std::string &symbol,
                       std::string &error);

} // namespace mtp

#endif // MTP_RUNTIME_LOADER_ELFCHECK_H
