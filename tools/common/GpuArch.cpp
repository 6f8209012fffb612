// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/GpuArch.h"

#include <dlfcn.h>

/// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and MINOR of the driver's
/// interface.
static constexpr int kMajor = 75, kMinor = 76;

std::string mtp::gpuArchitecture() {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!driver)
    return "";
  auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  auto get =
      reinterpret_cast<int (*)(int *, int)>(dlsym(driver, "cuDeviceGet"));
  auto attribute = reinterpret_cast<int (*)(int *, int, int)>(
      dlsym(driver, "cuDeviceGetAttribute"));
  int device = 0, major = 0, minor = 0;
  // The driver stays loaded: it doesn't come back after it was closed.
  if (!init || !get || !attribute || init(0) != 0 || get(&device, 0) != 0 ||
      attribute(&major, kMajor, device) != 0 ||
      attribute(&minor, kMinor, device) != 0)
    return "";
  return "sm_" + std::to_string(10 * major + minor);
}
