// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/MappedFile.h"

#include "compiler/frontend/onnx/OnnxError.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtp::onnx {

namespace {
struct Descriptor {
  int value = -1;
  ~Descriptor() {
    if (value >= 0)
      ::close(value);
  }
};

std::string realPath(const std::string &path) {
  char *resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved)
    return "";
  std::string result = resolved;
  std::free(resolved);
  return result;
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool isUnder(const std::string &path, const std::string &folder) {
  if (folder.empty())
    return false;
  if (folder == "/")
    return true;
  return path.size() > folder.size() + 1 && path[folder.size()] == '/' &&
         path.compare(0, folder.size(), folder) == 0;
}
} // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string &path) {
  if (path.empty() || path.find('\0') != std::string::npos)
    failInput("the path of the model is empty");
  Descriptor file;
  // O_NONBLOCK: a named pipe must not hang the open; it is refused below.
  file.value = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.value < 0)
    failInput("cannot open '" + path + "': " + std::strerror(errno));
  struct stat status {};
  if (::fstat(file.value, &status) != 0)
    failInput("cannot read '" + path + "': " + std::strerror(errno));
  if (S_ISDIR(status.st_mode))
    failInput("'" + path + "' is a directory, not a file");
  if (!S_ISREG(status.st_mode))
    failInput("'" + path + "' is not a regular file");
  std::shared_ptr<MappedFile> result(new MappedFile);
  result->filePath = path;
  result->length = static_cast<uint64_t>(status.st_size);
  if (result->length == 0)
    return result;
  void *address =
      ::mmap(nullptr, result->length, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (address == MAP_FAILED)
    failInput("cannot map '" + path + "': " + std::strerror(errno));
  result->bytes = static_cast<const uint8_t *>(address);
  return result;
}

MappedFile::~MappedFile() {
  if (bytes)
    ::munmap(const_cast<uint8_t *>(bytes), length);
}

std::string resolveExternalData(const std::string &modelPath,
                                const std::string &location,
                                const std::string &tensor) {
  std::string what = "external data of '" + tensor + "'";
  if (location.empty())
    failInput(what + " has no location");
  if (location.find('\0') != std::string::npos)
    failInput(what + " has a location with a zero byte in it");
  if (location[0] == '/')
    failInput(what + " has the absolute location '" + location +
              "'; it must be relative to the model");
  std::string folder = folderOf(modelPath);
  std::string resolved = realPath(folder + "/" + location);
  if (resolved.empty())
    failInput("cannot open the " + what + ", '" + location +
              "' beside the model: " + std::strerror(errno));
  std::string logical = realPath(folder);
  std::string physical = folderOf(realPath(modelPath));
  if (!isUnder(resolved, logical) && !isUnder(resolved, physical))
    failInput(what + ", '" + location + "', leaves the folder of the model");
  struct stat status {};
  if (::stat(resolved.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    failInput(what + ", '" + location + "', is not a regular file");
  return resolved;
}

} // namespace mtp::onnx
