// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Emulator.h - launches of GPU kernels on the CPU --------------------===//
//
// A launch runs its blocks one after the other, the threads of a block as
// fibers. A thread runs until it meets others:
//
//   barrier           waits for all threads of the block
//   warp operation    waits for the 32 threads of its warp
//
// Every access of memory is watched (Shadow.h). What a GPU would hide is an
// error here that names kernel, block, thread and operation:
//
//   - a thread that ends, or waits elsewhere, while others wait for it
//   - an access outside of the buffer or array it belongs to
//   - a read of shared memory that no thread of the block wrote
//   - a race: two threads, one of which writes, and no barrier between
//   - an asynchronous copy that is used before it is waited for
//
// Not watched: memory that a thread has for itself, and pointers that a kernel
// reads from memory (the fault of the rank).
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_EMULATOR_EMULATOR_H
#define MTP_RUNTIME_EMULATOR_EMULATOR_H

#include "runtime/abi/EmulatorAbi.h"
#include "runtime/emulator/Description.h"
#include "runtime/loader/ObjectLoader.h"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace mtp::emulator {

struct Launch {
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1}; ///< x, y, z
  /// Bytes from the address that a parameter is, as the launcher knows them; -1
  /// or left out: it doesn't. The kernel's own bound holds, too.
  std::vector<int64_t> extents{};
};

/// The emulated kernels of an artifact, loaded. Launches of several threads of
/// the process may run at the same time.
class Kernels {
public:
  /// `object` as Artifact::object, `cpuFeatures` as Artifact::cpuFeatures.
  /// Throws RuntimeError.
  Kernels(const std::string &object,
          const std::vector<std::string> &cpuFeatures);

  /// -1 if there is none of that name.
  int find(const std::string &symbol) const;
  size_t count() const { return descriptions.size(); }
  const KernelDescription &description(int kernel) const {
    return descriptions[static_cast<size_t>(kernel)];
  }

  /// Runs a kernel; `parameters` are addresses or numbers, one for each of its
  /// parameters. Throws RuntimeError on whatever is wrong in the kernel.
  void launch(int kernel, const Launch &launch,
              const std::vector<char *> &parameters) const;

private:
  LoadedObject object;
  std::vector<KernelDescription> descriptions;
  std::map<std::string, int> bySymbol;
};

} // namespace mtp::emulator

#endif // MTP_RUNTIME_EMULATOR_EMULATOR_H
