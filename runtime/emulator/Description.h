// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Description.h - what is known of emulated kernels ------------------===//
//
// The text that an object of emulated kernels has in it (EmulatorAbi.h).
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_EMULATOR_DESCRIPTION_H
#define MTP_RUNTIME_EMULATOR_DESCRIPTION_H

#include "runtime/emulator/WarpOperation.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtp::emulator {

/// An operation of a kernel that calls the emulator.
struct Site {
  enum class Kind { Load, Store, Atomic, Barrier, Warp, Copy, Commit, Wait };
  enum class Memory { Parameter, Array, Any };
  Kind kind = Kind::Load;
  Memory memory = Memory::Any;
  int64_t index = 0; ///< of the parameter or the array
  int64_t bytes = 0;
  WarpOperation operation; ///< of a warp
  std::string where;       ///< for people
};

struct KernelParameter {
  int64_t bytes = -1;   ///< of the memory it is the address of; -1: unknown
  bool written = false; ///< whether a store goes there
  int64_t granule = 1;  ///< least bytes of an access
  int64_t align = 1;
};

/// An array in shared memory.
struct SharedArray {
  int64_t begin = 0, bytes = 0, granule = 1;
};

struct KernelDescription {
  std::string symbol;
  std::vector<KernelParameter> parameters;
  std::vector<SharedArray> arrays;
  int64_t sharedBytes = 0;
  std::vector<Site> sites;
  /// Each thread needs a fiber: it meets others, or has copies under way.
  bool meets = false;
};

/// Throws RuntimeError on a text that is not as EmulatorAbi.h says.
std::vector<KernelDescription> parseDescription(const char *text);

} // namespace mtp::emulator

#endif // MTP_RUNTIME_EMULATOR_DESCRIPTION_H
