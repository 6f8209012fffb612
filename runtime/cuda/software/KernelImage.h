// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- KernelImage.h - a module whose kernels run on the CPU --------------===//
#ifndef MTP_RUNTIME_CUDA_SOFTWARE_KERNELIMAGE_H
#define MTP_RUNTIME_CUDA_SOFTWARE_KERNELIMAGE_H

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mtp::software {

struct KernelLaunch {
  std::array<unsigned, 3> grid{}, block{}; ///< x, y, z
  std::vector<uint64_t> parameters;        ///< addresses or numbers
  /// Bytes from the address that a parameter is, as the program gave it to the
  /// launch; -1: not known, or a number.
  std::vector<int64_t> extents = {};
};

/// Kernels by symbol. Launches of several threads run at the same time.
class KernelSource {
public:
  virtual ~KernelSource() = default;
  /// -1 if there is none.
  virtual int find(const std::string &symbol) const = 0;
  virtual int parameters(int kernel) const = 0;
  /// Runs it to its end. Throws RuntimeError on whatever is wrong in it.
  virtual void launch(int kernel, const KernelLaunch &launch) const = 0;
};

/// What the software driver loads in place of PTX: begins, as fat binaries do,
/// with a word that no text begins with.
struct KernelImage {
  static constexpr uint64_t kMagic = 0x8d6d74702d656d75;
  uint64_t magic = kMagic;
  std::shared_ptr<const KernelSource> source;
};

} // namespace mtp::software

#endif // MTP_RUNTIME_CUDA_SOFTWARE_KERNELIMAGE_H
