// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ObjectLoader.h - compiled kernels in this process ------------------===//
#ifndef MTP_RUNTIME_LOADER_OBJECTLOADER_H
#define MTP_RUNTIME_LOADER_OBJECTLOADER_H

#include "runtime/abi/Abi.h"
#include "runtime/artifact/Artifact.h"

namespace mtp {

/// The loaded shared object of an artifact; unloaded with this object.
class LoadedObject {
public:
  /// Checks processor and object, copies the bytes to a sealed memory file and
  /// loads that. Throws RuntimeError. An artifact without kernels may have no
  /// object.
  explicit LoadedObject(const Artifact &artifact);
  /// The same for the bytes of an object with any number of kernels, made for a
  /// processor with `cpuFeatures`.
  LoadedObject(const std::string &object,
               const std::vector<std::string> &cpuFeatures);
  LoadedObject(const LoadedObject &) = delete;
  LoadedObject &operator=(const LoadedObject &) = delete;
  ~LoadedObject();

  MtpKernel kernel(int64_t index) const { return table->kernels[index]; }
  int64_t count() const {
    return table ? static_cast<int64_t>(table->count) : 0;
  }

private:
  void load(const std::string &object,
            const std::vector<std::string> &cpuFeatures, int64_t expected);
  void unload();
  /// Stays open: the loader recognises loaded objects by name, and the name has
  /// the number of the descriptor in it.
  int file = -1;
  void *handle = nullptr;
  const MtpKernelTable *table = nullptr;
};

/// The functions that compiled kernels may call.
const MtpMath *mathTable();

} // namespace mtp

#endif // MTP_RUNTIME_LOADER_OBJECTLOADER_H
