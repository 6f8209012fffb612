// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- BuildId.h - which compiler this is ---------------------------------===//
#ifndef MTP_COMPILER_DRIVER_BUILDID_H
#define MTP_COMPILER_DRIVER_BUILDID_H

#include <string>

namespace mtp {

/// Version and, in hex, the build id that the linker gave to the object this
/// function lies in: another compiler, another text.
std::string buildId();

} // namespace mtp

#endif // MTP_COMPILER_DRIVER_BUILDID_H
