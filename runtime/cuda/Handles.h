// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Handles.h - what the driver hands out, each with one owner ---------===//
//
// Every handle has one owner that can be moved and not copied, so each is given
// back once. Members of a class are destroyed from the last to the first: a
// class declares its device first, then memory and streams, then what uses
// them.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_HANDLES_H
#define MTP_RUNTIME_CUDA_HANDLES_H

#include "runtime/cuda/Libraries.h"

#include <memory>
#include <utility>

namespace mtp::cuda {

/// Bytes of a block whose successor begins as memory of the driver does.
inline int64_t deviceAligned(int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

/// Throws RuntimeError unless `status` is success. Out of memory is exit 1,
/// what the emulator finds in a kernel exit 5, everything else exit 4.
void check(const DriverApi &driver, DriverStatus status, const char *what);

/// A handle that `Destroy`, a member of DriverApi, gives back.
template <typename Handle, auto Destroy> class Owned {
public:
  Owned() = default;
  Owned(const DriverApi &driver, Handle handle)
      : driver(&driver), handle(handle) {}
  Owned(Owned &&other) noexcept { swap(other); }
  Owned &operator=(Owned other) noexcept {
    swap(other);
    return *this;
  }
  ~Owned() {
    if (handle)
      (driver->*Destroy)(handle);
  }
  Handle get() const { return handle; }
  explicit operator bool() const { return handle != Handle{}; }

private:
  void swap(Owned &other) noexcept {
    std::swap(driver, other.driver);
    std::swap(handle, other.handle);
  }
  const DriverApi *driver = nullptr;
  Handle handle{};
};

using Stream = Owned<StreamHandle *, &DriverApi::streamDestroy>;
using Event = Owned<EventHandle *, &DriverApi::eventDestroy>;
using Module = Owned<ModuleHandle *, &DriverApi::moduleUnload>;
using Graph = Owned<GraphHandle *, &DriverApi::graphDestroy>;
using GraphExec = Owned<GraphExecHandle *, &DriverApi::graphExecDestroy>;
using DeviceMemory = Owned<Address, &DriverApi::memoryFree>;
using PinnedMemory = Owned<void *, &DriverApi::hostFree>;

/// A GPU with its primary context. Outlives everything that is made on it.
class Device {
public:
  Device(const DriverApi &driver, int ordinal);
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  ~Device();

  /// For this thread.
  void makeCurrent() const;
  int ordinal() const { return number; }
  const std::string &name() const { return text; }
  /// 90 for compute capability 9.0.
  int capability() const { return version; }
  int64_t maxSharedBytes() const { return sharedBytes; }
  /// Needs the current device.
  int64_t freeBytes() const;

  // All need the current device.
  Stream makeStream() const;
  /// `timed`: eventElapsed works on it.
  Event makeEvent(bool timed = false) const;
  DeviceMemory allocate(int64_t bytes, const char *what) const;
  /// Of the host, at one address for host and devices.
  PinnedMemory allocatePinned(int64_t bytes) const;
  /// `image` is PTX, or the software driver's KernelImage. The error has the
  /// assembler's words.
  Module loadModule(const void *image) const;

  const DriverApi &api() const { return driver; }

private:
  const DriverApi &driver;
  int number;
  DeviceNumber device = 0;
  ContextHandle *context = nullptr;
  std::string text;
  int version = 0;
  int64_t sharedBytes = 0;
};

inline Address addressOf(const void *pointer) {
  return reinterpret_cast<Address>(pointer);
}
inline char *pointerTo(Address address) {
  return reinterpret_cast<char *>(address);
}

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_HANDLES_H
