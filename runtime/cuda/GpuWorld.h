// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuWorld.h - the devices that the ranks of a session share ---------===//
#ifndef MTP_RUNTIME_CUDA_GPUWORLD_H
#define MTP_RUNTIME_CUDA_GPUWORLD_H

#include "runtime/cuda/GpuCommunicator.h"
#include "runtime/cuda/Products.h"
#include "runtime/cuda/software/KernelImage.h"
#include "runtime/program/Rank.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace mtp::cuda {

class GpuRank;

struct GpuWorld : World {
  /// `comm` is "nccl" (a device for each rank here) or "loopback" (all ranks on
  /// the first one). Throws RuntimeError: exit 6 for what is missing here, exit
  /// 1 for what doesn't fit into the memory of a device.
  GpuWorld(Artifact given, const WorldOptions &options, const std::string &comm,
           Libraries libraries, bool checkMemory);

  std::vector<std::unique_ptr<Rank>> makeRanks() override;

  const Device &deviceOf(int rank) const {
    return devices[deviceIndex(rank)]->device;
  }
  /// The artifact's code on that device, loaded by the first rank that asks.
  /// The device is current.
  const Module &moduleOf(int rank);

  const bool loopback;
  const Libraries libraries;

private:
  struct Place {
    explicit Place(const DriverApi &driver, int ordinal)
        : device(driver, ordinal) {}
    ~Place() {
      try {
        device.makeCurrent();
      } catch (const RuntimeError &) {
        // The device is lost, and the module with it.
      }
      module = {};
    }
    Device device;
    std::mutex mutex;
    Module module;
  };
  size_t deviceIndex(int rank) const {
    return loopback || options.processes ? 0 : static_cast<size_t>(rank);
  }
  void checkArchitecture(const Device &device) const;
  void checkSize(const Device &device, int64_t ranks) const;

  software::KernelImage emulated; ///< device "cuda-emulated"
  std::vector<std::unique_ptr<Place>> devices;

public:
  std::shared_ptr<MeetingPlaces> places = std::make_shared<MeetingPlaces>();
  std::shared_ptr<ProductChoices> choices = std::make_shared<ProductChoices>();
  std::vector<GpuRank *> ranks;
  /// Steps that rank 0 has driven for all ranks of one device.
  std::atomic<uint64_t> stepsDriven{0};
};

/// Bytes on a device beside the artifact's own: cuBLASLt's workspace. Staging
/// of communicators comes on top.
int64_t libraryBytes(const Artifact &artifact);

/// The world of an artifact of device "cuda" with the libraries of this
/// process, or of "cuda-emulated" with a driver that needs none; throws
/// RuntimeError.
std::shared_ptr<World> makeGpuWorld(Artifact artifact,
                                    const WorldOptions &options,
                                    const std::string &comm, bool checkMemory);

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_GPUWORLD_H
