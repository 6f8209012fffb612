// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/GpuWorld.h"
#include "runtime/cuda/EmulatedKernels.h"
#include "runtime/cuda/GpuRank.h"
#include "runtime/cuda/software/SoftwareLibraries.h"
#include "runtime/session/Session.h"

#include <cstdlib>

using namespace mtp;
using namespace mtp::cuda;

namespace {

LibraryNeeds needsOf(const Artifact &artifact, const std::string &comm) {
  LibraryNeeds needs;
  needs.blas = !artifact.librarySites.empty();
  needs.nccl = comm == "nccl" && artifact.axes.ranks() > 1 &&
               !artifact.collectiveSites.empty();
  return needs;
}

/// With it a launch waits for its end, and a collective's end for the launches
/// of the other ranks.
void refuseBlockingLaunches(int64_t ranks) {
  const char *value = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (ranks > 1 && value && *value && std::string(value) != "0")
    fail(exits::Usage, "usage",
         "CUDA_LAUNCH_BLOCKING=" + std::string(value) +
             " makes the collectives of several ranks in one process hang: "
             "unset it");
}

} // namespace

GpuWorld::GpuWorld(Artifact given, const WorldOptions &options,
                   const std::string &comm, Libraries libraries,
                   bool checkMemory)
    : World(std::move(given), options), loopback(comm == "loopback"),
      libraries(libraries) {
  auto count = static_cast<int64_t>(here.size());
  const Processes *processes = options.processes.get();
  bool isEmulated = artifact.device == "cuda-emulated";
  if (isEmulated) {
    emulated = emulatedImage(artifact);
    std::string().swap(artifact.object);
  } else {
    refuseBlockingLaunches(count);
  }
  // The processes of a host take its devices in turn.
  int first = processes && !isEmulated ? processes->placeOnThisHost() : 0;
  checkDevices(comm, processes && !isEmulated ? processes->onThisHost() : count,
               this->libraries.devices);
  for (int i = 0; i < (loopback ? 1 : static_cast<int>(count)); ++i) {
    devices.push_back(
        std::make_unique<Place>(this->libraries.driver, first + i));
    const Device &device = devices.back()->device;
    device.makeCurrent();
    if (!isEmulated)
      checkArchitecture(device);
    if (checkMemory)
      checkSize(device, loopback ? count : 1);
  }
}

void GpuWorld::checkArchitecture(const Device &device) const {
  // "sm_90" runs on 9.0 and later, "sm_90a" on 9.0 only.
  const std::string &arch = artifact.gpu.arch;
  int wanted = std::atoi(arch.c_str() + 3), has = device.capability();
  bool exact = arch.back() == 'a' || arch.back() == 'f';
  if (exact ? has == wanted : has >= wanted)
    return;
  std::string here = std::to_string(has);
  fail(exits::NotPresent, "device",
       "the artifact was compiled for " + arch + "; " + device.name() +
           " is sm_" + here + ": compile it with --gpu-arch sm_" + here);
}

void GpuWorld::checkSize(const Device &device, int64_t ranks) const {
  int64_t each = predictMemory(artifact).bytesPerRank + libraryBytes(artifact);
  int64_t needed = 0, free = device.freeBytes();
  if (!__builtin_mul_overflow(each, ranks, &needed) && needed <= free)
    return;
  fail(exits::BadInput, "memory",
       std::to_string(ranks) + " rank" + (ranks == 1 ? " needs " : "s need ") +
           std::to_string(each) + " bytes each, and " + device.name() +
           " has " + std::to_string(free) + " bytes free");
}

std::vector<std::unique_ptr<Rank>> GpuWorld::makeRanks() {
  std::vector<std::unique_ptr<Rank>> result;
  for (int i : here) {
    auto rank = std::make_unique<GpuRank>(*this, i);
    ranks.push_back(rank.get());
    result.push_back(std::move(rank));
  }
  return result;
}

const Module &GpuWorld::moduleOf(int rank) {
  Place &place = *devices[deviceIndex(rank)];
  std::lock_guard lock(place.mutex);
  if (!place.module)
    place.module = place.device.loadModule(
        emulated.source ? static_cast<const void *>(&emulated)
                        : artifact.object.c_str());
  return place.module;
}

int64_t mtp::cuda::libraryBytes(const Artifact &artifact) {
  return artifact.librarySites.empty() ? 0 : Products::kWorkspaceBytes;
}

std::shared_ptr<World> mtp::cuda::makeGpuWorld(Artifact artifact,
                                               const WorldOptions &options,
                                               const std::string &comm,
                                               bool checkMemory) {
  Libraries libraries;
  if (artifact.device == "cuda-emulated")
    libraries =
        software::libraries(comm == "loopback" || options.processes
                                ? 1
                                : static_cast<int>(artifact.axes.ranks()),
                            static_cast<uint64_t>(availableMemory()));
  else
    libraries =
        loadLibraries(LibraryNames::ofThisProcess(), needsOf(artifact, comm));
  return std::make_shared<GpuWorld>(std::move(artifact), options, comm,
                                    libraries, checkMemory);
}
