// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Reductions.h - sums over ranks by kernels of the artifact ----------===//
#ifndef MTP_RUNTIME_CUDA_REDUCTIONS_H
#define MTP_RUNTIME_CUDA_REDUCTIONS_H

#include "runtime/artifact/Artifact.h"
#include "runtime/cuda/Handles.h"

#include <map>
#include <string>

namespace mtp::cuda {

/// The mtp_reduce_* kernels of a module (runtime/artifact/GpuCode.h), loaded
/// when the rank is, for every reduction and type among the sites.
class Reductions {
public:
  Reductions() = default;
  /// Throws RuntimeError that names a kernel which the module doesn't have.
  Reductions(const Device &device, const Module &module,
             const std::vector<CollectiveSite> &sites);

  /// out[i] = out[i] op in[i].
  void enqueue(const CollectiveSite &site, Address out, Address in,
               int64_t elements, StreamHandle *stream) const;

private:
  const DriverApi *driver = nullptr;
  std::map<std::string, FunctionHandle *> functions;
};

/// The kernel of the module, loaded now rather than at its first launch.
/// `sharedBytes`: dynamic shared memory of its launches.
FunctionHandle *loadFunction(const Device &device, const Module &module,
                             const std::string &symbol, int64_t sharedBytes);

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_REDUCTIONS_H
