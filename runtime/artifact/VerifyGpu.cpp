// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- VerifyGpu.cpp - device code of an artifact -------------------------===//
#include "runtime/artifact/PtxText.h"
#include "runtime/artifact/VerifyProgram.h"

#include <algorithm>
#include <map>
#include <regex>

using namespace mtp;
using namespace mtp::verify;

namespace {

/// What every GPU from sm_75 on accepts; the driver knows the rest.
constexpr std::array<int64_t, 3> kMaxGrid = {2147483647, 65535, 65535};
constexpr std::array<int64_t, 3> kMaxBlock = {1024, 1024, 64};
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxSharedBytes = 227 << 10;

void checkLaunch(const GpuKernel &kernel, const std::string &what) {
  int64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    require(kernel.grid[i] >= 1 && kernel.grid[i] <= kMaxGrid[i],
            what + " has a grid of " + std::to_string(kernel.grid[i]) +
                " blocks in dimension " + std::to_string(i));
    require(kernel.block[i] >= 1 && kernel.block[i] <= kMaxBlock[i],
            what + " has blocks of " + std::to_string(kernel.block[i]) +
                " threads in dimension " + std::to_string(i));
    threads *= kernel.block[i];
  }
  require(threads <= kMaxThreads, what + " has blocks of " +
                                      std::to_string(threads) +
                                      " threads, more than 1024");
  require(kernel.sharedBytes >= 0 && kernel.sharedBytes <= kMaxSharedBytes,
          what + " asks for " + std::to_string(kernel.sharedBytes) +
              " bytes of shared memory");
}

} // namespace

void verify::checkGpuCode(const Artifact &artifact) {
  const GpuCode &gpu = artifact.gpu;
  bool isEmulated = artifact.device == "cuda-emulated";
  if (artifact.device != "cuda" && !isEmulated) {
    require(gpu.kernels.empty() && gpu.arch.empty(),
            "there is GPU code for device " + quoted(artifact.device));
    return;
  }
  static const std::regex arch("sm_[0-9]{2,3}[af]?");
  require(std::regex_match(gpu.arch, arch),
          "GPU architecture " + quoted(gpu.arch) + " is not of the form sm_90");
  require(gpu.kernels.size() == artifact.kernelNames.size(),
          "there are " + std::to_string(gpu.kernels.size()) +
              " GPU kernels and " +
              std::to_string(artifact.kernelNames.size()) + " names");
  // What an object has in it, the loader sees.
  std::map<std::string, int> entries;
  if (!isEmulated) {
    require(artifact.object.find('\0') == std::string::npos,
            "the PTX is no text");
    entries = ptxEntries(artifact.object);
  }
  for (size_t i = 0; i < gpu.kernels.size(); ++i) {
    std::string what =
        "GPU kernel " + std::to_string(i) + " " + quoted(gpu.kernels[i].symbol);
    require(isEmulated || entries.count(gpu.kernels[i].symbol) != 0,
            what + " is not in the PTX");
    checkLaunch(gpu.kernels[i], what);
  }
  for (const LibrarySite &site : artifact.librarySites)
    require(site.kind == "matmul", "library calls of kind " +
                                       quoted(site.kind) +
                                       " are kernels on a GPU");
  if (isEmulated)
    return;
  for (const Entry &entry : artifact.entries)
    for (const Instruction &step : entry.program)
      if (step.kind == Instruction::Kind::Kernel && step.index >= 0 &&
          step.index < static_cast<int64_t>(gpu.kernels.size())) {
        const std::string &symbol = gpu.kernels[step.index].symbol;
        int wanted = static_cast<int>(step.buffers.size()) + 1;
        require(entries[symbol] == wanted,
                entry.name + " launches " + quoted(symbol) + " with " +
                    std::to_string(wanted) + " arguments; it takes " +
                    std::to_string(entries[symbol]));
      }
}
