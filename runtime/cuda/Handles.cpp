// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/Handles.h"

#include <algorithm>
#include <array>

using namespace mtp;
using namespace mtp::cuda;

void mtp::cuda::check(const DriverApi &driver, DriverStatus status,
                      const char *what) {
  if (status == driver::Success)
    return;
  if (status == driver::LaunchFailed && driver.kernelFault)
    fail(exits::Internal, "emulator", driver.kernelFault());
  const char *text = nullptr, *name = nullptr;
  driver.errorString(status, &text);
  driver.errorName(status, &name);
  bool memory = status == driver::OutOfMemory;
  fail(memory ? exits::BadInput : exits::RankFailure,
       memory ? "memory" : "device",
       std::string(what) + " failed: " + (text ? text : "unknown error") +
           " (" + (name ? name : std::to_string(status)) + ")");
}

Device::Device(const DriverApi &driver, int ordinal)
    : driver(driver), number(ordinal) {
  check(driver, driver.deviceGet(&device, ordinal), "finding a CUDA device");
  std::array<char, 256> name{};
  check(driver, driver.deviceName(name.data(), int(name.size()) - 1, device),
        "asking a CUDA device for its name");
  text = name.data();
  auto attribute = [&](int which) {
    int value = 0;
    check(driver, driver.deviceAttribute(&value, which, device),
          "asking a CUDA device what it can do");
    return value;
  };
  version = 10 * attribute(driver::CapabilityMajor) +
            attribute(driver::CapabilityMinor);
  sharedBytes = attribute(driver::MaxSharedMemory);
  check(driver, driver.contextRetain(&context, device),
        "starting a CUDA device");
}

Device::~Device() { driver.contextRelease(device); }

void Device::makeCurrent() const {
  check(driver, driver.contextSetCurrent(context), "choosing a CUDA device");
}

int64_t Device::freeBytes() const {
  size_t left = 0, total = 0;
  check(driver, driver.memoryInfo(&left, &total),
        "asking a CUDA device for its memory");
  return static_cast<int64_t>(left);
}

Stream Device::makeStream() const {
  StreamHandle *stream = nullptr;
  check(driver, driver.streamCreate(&stream, driver::StreamNonBlocking),
        "creating a stream");
  return {driver, stream};
}

Event Device::makeEvent(bool timed) const {
  EventHandle *event = nullptr;
  check(driver,
        driver.eventCreate(&event, timed ? 0 : driver::EventDisableTiming),
        "creating an event");
  return {driver, event};
}

DeviceMemory Device::allocate(int64_t bytes, const char *what) const {
  Address address = 0;
  std::string text = "taking " + std::to_string(bytes) + " bytes on " +
                     this->text + " for " + what;
  check(driver,
        driver.memoryAlloc(&address,
                           static_cast<size_t>(std::max<int64_t>(bytes, 256))),
        text.c_str());
  return {driver, address};
}

PinnedMemory Device::allocatePinned(int64_t bytes) const {
  void *address = nullptr;
  check(driver,
        driver.hostAlloc(&address, static_cast<size_t>(bytes),
                         driver::HostPortable | driver::HostDeviceMap),
        "taking pinned memory");
  return {driver, address};
}

Module Device::loadModule(const void *image) const {
  std::array<char, 8192> log{};
  int names[] = {driver::JitErrorLog, driver::JitErrorLogBytes};
  void *values[] = {log.data(),
                    reinterpret_cast<void *>(uintptr_t(log.size()))};
  ModuleHandle *module = nullptr;
  DriverStatus status = driver.moduleLoad(&module, image, 2, names, values);
  std::string what = "loading the kernels of the artifact on " + text +
                     " (compute capability " + std::to_string(version / 10) +
                     "." + std::to_string(version % 10) + ")";
  if (log[0])
    what += ", whose assembler says '" + std::string(log.data()) + "',";
  check(driver, status, what.c_str());
  return {driver, module};
}
