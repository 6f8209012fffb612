// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/Libraries.h"

#include <cstdlib>
#include <dlfcn.h>
#include <sys/stat.h>

using namespace mtp;
using namespace mtp::cuda;

namespace {

constexpr const char *kRecorderVariable = "MTP_CUDA_RECORDER";
constexpr const char *kRecorderPrefix = "mtp_";

[[noreturn]] void absent(const std::string &message) {
  fail(exits::NotPresent, "device", message);
}

/// Opens the first of `names` that is there.
void *open(const std::vector<std::string> &names, const std::string &what) {
  std::string reason, list;
  for (const std::string &name : names) {
    if (void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return handle;
    const char *text = dlerror();
    if (reason.empty() && text)
      reason = text;
    list += (list.empty() ? "" : " or ") + name;
  }
  absent("device cuda needs " + what + ", and " + list +
         " can't be loaded: " + reason);
}

template <typename Function>
void find(void *handle, const std::string &prefix, const char *symbol,
          const std::string &what, Function &function) {
  function =
      reinterpret_cast<Function>(dlsym(handle, (prefix + symbol).c_str()));
  if (!function)
    absent("device cuda needs " + what + " with the function " + symbol +
           ", which the one on this machine doesn't have: update it");
}

std::string text(const DriverApi &driver, DriverStatus status) {
  const char *string = nullptr;
  if (driver.errorString(status, &string) == driver::Success && string)
    return string;
  return "CUDA error " + std::to_string(status);
}

void loadDriver(const LibraryNames &names, Libraries &libraries) {
  static const std::string what = "the CUDA driver";
  void *handle = open(names.driver, what);
  DriverApi &driver = libraries.driver;
#define MTP_FIND(member, symbol, parameters)                                   \
  find(handle, names.prefix, #symbol, what, driver.member);
  MTP_DRIVER_FUNCTIONS(MTP_FIND)
#undef MTP_FIND
  driver.touches = reinterpret_cast<decltype(driver.touches)>(
      dlsym(handle, (names.prefix + "touches").c_str()));
  DriverStatus status = driver.init(0);
  if (status == driver::NoDevice)
    absent("the CUDA driver is here, but no CUDA device: " +
           text(driver, status));
  if (status != driver::Success)
    absent("the CUDA driver doesn't start: " + text(driver, status));
  status = driver.deviceCount(&libraries.devices);
  if (status != driver::Success || libraries.devices < 1)
    absent("the CUDA driver is here, but no CUDA device" +
           (status == driver::Success ? std::string()
                                      : ": " + text(driver, status)));
}

void loadBlas(const LibraryNames &names, Libraries &libraries) {
  static const std::string what = "cuBLASLt";
  void *handle = open(names.blas, what);
  CublasLtApi &blas = libraries.blas;
#define MTP_FIND(member, symbol, parameters)                                   \
  find(handle, names.prefix, #symbol, what, blas.member);
  MTP_CUBLASLT_FUNCTIONS(MTP_FIND)
#undef MTP_FIND
  find(handle, names.prefix, "cublasLtGetStatusString", what, blas.statusText);
}

void loadNccl(const LibraryNames &names, Libraries &libraries) {
  static const std::string what = "NCCL";
  void *handle = open(names.nccl, what);
  NcclApi &nccl = libraries.nccl;
#define MTP_FIND(member, symbol, parameters)                                   \
  find(handle, names.prefix, #symbol, what, nccl.member);
  MTP_NCCL_FUNCTIONS(MTP_FIND)
#undef MTP_FIND
  find(handle, names.prefix, "ncclGetErrorString", what, nccl.errorText);
  find(handle, names.prefix, "ncclGetLastError", what, nccl.lastError);
  if (nccl.version(&libraries.ncclVersion) != nccl::Success ||
      libraries.ncclVersion < 21801)
    absent("device cuda needs NCCL 2.18.1 or newer; here is version code " +
           std::to_string(libraries.ncclVersion));
}

} // namespace

LibraryNames LibraryNames::ofThisProcess() {
  LibraryNames names;
  const char *given = std::getenv(kRecorderVariable);
  if (!given)
    return names;
  struct stat info;
  if (given[0] != '/' || stat(given, &info) != 0 || !S_ISREG(info.st_mode))
    fail(exits::Usage, "usage",
         std::string(kRecorderVariable) +
             " is for tests and names a library "
             "by its absolute path; '" +
             given + "' is none");
  names.driver = names.blas = names.nccl = {given};
  names.prefix = kRecorderPrefix;
  return names;
}

Libraries mtp::cuda::loadLibraries(const LibraryNames &names,
                                   const LibraryNeeds &needs) {
  Libraries libraries;
  loadDriver(names, libraries);
  if (needs.blas)
    loadBlas(names, libraries);
  if (needs.nccl)
    loadNccl(names, libraries);
  return libraries;
}

void mtp::cuda::checkDevices(const std::string &comm, int64_t ranks,
                             int devices) {
  if (comm == "loopback" || ranks <= devices)
    return;
  fail(exits::NotPresent, "device",
       "the mesh has " + std::to_string(ranks) + " ranks and here " +
           (devices == 1 ? "is 1 CUDA device"
                         : "are " + std::to_string(devices) + " CUDA devices") +
           "; NCCL takes one rank a device: use a smaller mesh, or --comm "
           "loopback, which runs all ranks on one device");
}

Error mtp::cuda::checkMachine(const std::string &comm, int64_t ranks) {
  try {
    LibraryNeeds needs;
    needs.nccl = comm == "nccl" && ranks > 1;
    Libraries libraries = loadLibraries(LibraryNames::ofThisProcess(), needs);
    checkDevices(comm, ranks, libraries.devices);
    return {};
  } catch (const RuntimeError &e) {
    return e.error;
  }
}
