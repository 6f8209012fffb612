// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- JoinProcesses.cpp - opens the library that knows MPI ---------------===//
#include "runtime/processes/Processes.h"
#include "runtime/support/System.h"

#include <cstdlib>
#include <dlfcn.h>
#include <optional>

using namespace mtp;

namespace {

std::string libraryPath() {
  if (const char *given = std::getenv("MTP_MPI_LIBRARY"))
    return given;
  return installedFile("lib/libmtp-mpi.so");
}

Error missing(const std::string &reason) {
  return {exits::NotPresent,
          "communicator",
          "MPI is not present here: " + reason +
              " (mtp builds libmtp-mpi.so where CMake finds MPI; "
              "MTP_MPI_LIBRARY names another place)",
          {}};
}

using Join = decltype(&mtpJoinProcesses);

Join openLibrary(Error &error) {
  std::string path = libraryPath();
  // Open MPI opens parts of itself, which need its symbols.
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle) {
    const char *reason = dlerror();
    error = missing(reason ? reason : path);
    return nullptr;
  }
  auto join = reinterpret_cast<Join>(dlsym(handle, "mtpJoinProcesses"));
  if (!join)
    error = missing(path + " lacks mtpJoinProcesses");
  return join;
}

/// A number that the launcher of Open MPI or MPICH has set.
std::optional<int> launcherNumber(const char *openMpi, const char *mpich) {
  for (const char *name : {openMpi, mpich})
    if (const char *text = std::getenv(name)) {
      char *end = nullptr;
      long value = std::strtol(text, &end, 10);
      if (end != text && !*end && value >= 0 && value < (1 << 20))
        return static_cast<int>(value);
    }
  return std::nullopt;
}

} // namespace

bool mtp::canJoinProcesses(Error &error) { return openLibrary(error); }

std::shared_ptr<Processes> mtp::joinProcesses(Error &error) {
  Join join = openLibrary(error);
  if (!join)
    return nullptr;
  std::string reason;
  std::unique_ptr<ProcessGroup> group(join(kProcessGroupVersion, &reason));
  if (group)
    return std::make_shared<Processes>(std::move(group));
  error = missing(reason);
  return nullptr;
}

int mtp::launchedProcesses() {
  return std::max(
      1, launcherNumber("OMPI_COMM_WORLD_SIZE", "PMI_SIZE").value_or(1));
}

int mtp::launchedOnThisHost() {
  return std::max(
      1, launcherNumber("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
             .value_or(1));
}

int mtp::launchedRank() {
  return launcherNumber("OMPI_COMM_WORLD_RANK", "PMI_RANK").value_or(0);
}
