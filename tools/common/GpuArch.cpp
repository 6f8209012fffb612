// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/GpuArch.h"

#include "runtime/cuda/Libraries.h"

using namespace mtp::cuda;

std::string mtp::gpuArchitecture() {
  try {
    Libraries libraries = loadLibraries(LibraryNames::ofThisProcess(),
                                        {.blas = false, .nccl = false});
    const DriverApi &driver = libraries.driver;
    DeviceNumber device = 0;
    int major = 0, minor = 0;
    if (driver.deviceGet(&device, 0) != driver::Success ||
        driver.deviceAttribute(&major, driver::CapabilityMajor, device) !=
            driver::Success ||
        driver.deviceAttribute(&minor, driver::CapabilityMinor, device) !=
            driver::Success)
      return "";
    return "sm_" + std::to_string(10 * major + minor);
  } catch (const RuntimeError &) {
    return ""; // whoever wants to run there is told what is missing
  }
}
