// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/EmulatedKernels.h"
#include "runtime/emulator/Emulator.h"
#include "runtime/support/Error.h"

using namespace mtp;
using namespace mtp::cuda;

namespace {

class EmulatedKernels : public software::KernelSource {
public:
  explicit EmulatedKernels(const Artifact &artifact)
      : kernels(artifact.object, artifact.cpuFeatures) {}

  int find(const std::string &symbol) const override {
    return kernels.find(symbol);
  }
  int parameters(int kernel) const override {
    return static_cast<int>(kernels.description(kernel).parameters.size());
  }
  void launch(int kernel, const software::KernelLaunch &given) const override {
    emulator::Launch launch;
    std::copy(given.grid.begin(), given.grid.end(), launch.grid.begin());
    std::copy(given.block.begin(), given.block.end(), launch.block.begin());
    launch.extents = given.extents;
    std::vector<char *> parameters;
    for (uint64_t value : given.parameters)
      parameters.push_back(reinterpret_cast<char *>(value));
    kernels.launch(kernel, launch, parameters);
  }

private:
  emulator::Kernels kernels;
};

} // namespace

software::KernelImage mtp::cuda::emulatedImage(const Artifact &artifact) {
  auto kernels = std::make_shared<EmulatedKernels>(artifact);
  for (const Entry &entry : artifact.entries)
    for (const Instruction &step : entry.program) {
      if (step.kind != Instruction::Kind::Kernel)
        continue;
      const std::string &symbol =
          artifact.gpu.kernels[static_cast<size_t>(step.index)].symbol;
      int kernel = kernels->find(symbol),
          wanted = static_cast<int>(step.buffers.size()) + 1;
      if (kernel < 0 || kernels->parameters(kernel) != wanted)
        fail(exits::BadInput, "artifact",
             "the emulated object has no kernel '" + symbol + "' of " +
                 std::to_string(wanted) + " parameters");
    }
  software::KernelImage image;
  image.source = std::move(kernels);
  return image;
}
