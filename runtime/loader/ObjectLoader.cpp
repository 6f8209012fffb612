// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/loader/ObjectLoader.h"
#include "runtime/loader/CpuFeatures.h"
#include "runtime/loader/ElfCheck.h"
#include "runtime/support/Error.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mtp;

namespace {

[[noreturn]] void failObject(const std::string &message) {
  fail(exits::BadInput, "artifact", message);
}

void checkProcessor(const std::vector<std::string> &cpuFeatures) {
  auto missing = missingCpuFeatures(cpuFeatures);
  if (missing.empty())
    return;
  std::string list;
  for (const std::string &feature : missing)
    list += (list.empty() ? "" : ", ") + feature;
  failObject("the artifact was compiled for a processor with " + list +
             ", which " + cpuName() +
             " does not have; compile the model on this machine");
}

/// A file in memory that nobody can change any more.
int sealedFile(const std::string &bytes) {
  int file = memfd_create("mtp-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0)
    fail(exits::Internal, "system",
         std::string("cannot make a memory file: ") + strerror(errno));
  for (size_t at = 0; at < bytes.size();) {
    ssize_t wrote = write(file, bytes.data() + at, bytes.size() - at);
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote <= 0) {
      std::string reason = strerror(errno);
      close(file);
      fail(exits::Internal, "system", "cannot fill a memory file: " + reason);
    }
    at += static_cast<size_t>(wrote);
  }
  if (fcntl(file, F_ADD_SEALS,
            F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    std::string reason = strerror(errno);
    close(file);
    fail(exits::Internal, "system", "cannot seal a memory file: " + reason);
  }
  return file;
}

} // namespace

LoadedObject::LoadedObject(const Artifact &artifact) {
  if (artifact.object.empty() && artifact.kernelNames.empty())
    return;
  load(artifact.object, artifact.cpuFeatures,
       static_cast<int64_t>(artifact.kernelNames.size()));
}

LoadedObject::LoadedObject(const std::string &object,
                           const std::vector<std::string> &cpuFeatures) {
  load(object, cpuFeatures, -1);
}

void LoadedObject::load(const std::string &object,
                        const std::vector<std::string> &cpuFeatures,
                        int64_t expected) {
  checkProcessor(cpuFeatures);
  std::string error;
  if (!checkSharedObject(object, MTP_KERNELS_SYMBOL, error))
    failObject(error);
  file = sealedFile(object);
  std::string path = "/proc/self/fd/" + std::to_string(file);
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char *reason = handle ? nullptr : dlerror();
  std::string failure = reason ? reason : "";
  if (!handle) {
    unload();
    failObject("the compiled object cannot be loaded: " + failure);
  }
  auto entry =
      reinterpret_cast<MtpKernelsEntry>(dlsym(handle, MTP_KERNELS_SYMBOL));
  table = entry ? entry() : nullptr;
  if (!table || table->abiVersion != MTP_ABI_VERSION ||
      (expected >= 0 && count() != expected)) {
    std::string found =
        !table ? "no table of kernels"
               : "ABI version " + std::to_string(table->abiVersion) + " and " +
                     std::to_string(table->count) + " kernels";
    unload();
    failObject("the compiled object has " + found +
               "; this build has ABI version " +
               std::to_string(MTP_ABI_VERSION) +
               (expected < 0 ? ""
                             : " and the manifest names " +
                                   std::to_string(expected) + " kernels"));
  }
}

LoadedObject::~LoadedObject() { unload(); }

void LoadedObject::unload() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
  handle = nullptr;
  file = -1;
}

const MtpMath *mtp::mathTable() {
  static const MtpMath table = {.exp = std::exp,
                                .expm1 = std::expm1,
                                .log = std::log,
                                .log1p = std::log1p,
                                .sin = std::sin,
                                .cos = std::cos,
                                .tanh = std::tanh,
                                .erf = std::erf,
                                .pow = std::pow,
                                .fmod = std::fmod,
                                .expf = expf,
                                .expm1f = expm1f,
                                .logf = logf,
                                .log1pf = log1pf,
                                .sinf = sinf,
                                .cosf = cosf,
                                .tanhf = tanhf,
                                .erff = erff,
                                .powf = powf,
                                .fmodf = fmodf};
  return &table;
}
