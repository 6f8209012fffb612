// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Files.cpp - whole files, and replacing them at once ----------------===//
#include "runtime/io/Npz.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mtp;

namespace {

Error fileError(const std::string &what, const std::string &path) {
  return {exits::BadInput,
          "file",
          what + " '" + path + "': " + strerror(errno),
          {}};
}

bool writeAll(int file, const std::string &bytes) {
  for (size_t at = 0; at < bytes.size();) {
    ssize_t wrote = write(file, bytes.data() + at, bytes.size() - at);
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote <= 0)
      return false;
    at += static_cast<size_t>(wrote);
  }
  return true;
}

} // namespace

bool mtp::isWritableFile(const std::string &path, Error &error) {
  struct stat status{};
  bool isThere = stat(path.c_str(), &status) == 0;
  if (isThere && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
  } else {
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "."
                         : slash == 0               ? "/"
                                                    : path.substr(0, slash);
    bool isSpecial = isThere && !S_ISREG(status.st_mode);
    if (isSpecial ? access(path.c_str(), W_OK) == 0
                  : stat(folder.c_str(), &status) == 0 &&
                        access(folder.c_str(), W_OK | X_OK) == 0)
      return true;
  }
  error = fileError("cannot write", path);
  return false;
}

bool mtp::writeFileAtomically(const std::string &path, const std::string &bytes,
                              Error &error) {
  // What isn't a regular file (a pipe, /dev/null) can't be replaced.
  struct stat status{};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    int file =
        S_ISDIR(status.st_mode) ? -1 : open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (S_ISDIR(status.st_mode))
      errno = EISDIR;
    bool ok = file >= 0 && writeAll(file, bytes);
    if (!ok)
      error = fileError("cannot write", path);
    if (file >= 0)
      close(file);
    return ok;
  }
  std::string beside = path + ".tmp-XXXXXX";
  int file = mkostemp(beside.data(), O_CLOEXEC);
  if (file < 0) {
    error = fileError("cannot write", path);
    return false;
  }
  mode_t mask = umask(0);
  umask(mask);
  bool ok = writeAll(file, bytes) && fchmod(file, 0666 & ~mask) == 0 &&
            fsync(file) == 0;
  int reason = errno;
  if (close(file) != 0 && ok) {
    ok = false;
    reason = errno;
  }
  if (ok && rename(beside.c_str(), path.c_str()) != 0) {
    ok = false;
    reason = errno;
  }
  if (!ok) {
    unlink(beside.c_str());
    errno = reason;
    error = fileError("cannot write", path);
  }
  return ok;
}

bool mtp::readFile(const std::string &path, std::string &bytes, Error &error,
                   uint64_t limit) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || fstat(file, &status) != 0) {
    error = fileError("cannot read", path);
    if (file >= 0)
      close(file);
    return false;
  }
  bool ok = true;
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    ok = false;
  }
  std::string result;
  if (ok && S_ISREG(status.st_mode))
    result.reserve(
        std::min<uint64_t>(limit, static_cast<uint64_t>(status.st_size)));
  std::string chunk(1 << 20, '\0');
  while (ok) {
    ssize_t got = read(file, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got == 0)
      break;
    if (got > 0 && static_cast<uint64_t>(got) > limit - result.size()) {
      errno = EFBIG;
      ok = false;
      break;
    }
    ok = got > 0;
    if (ok)
      result.append(chunk.data(), static_cast<size_t>(got));
  }
  if (ok)
    bytes = std::move(result);
  else
    error = fileError("cannot read", path);
  close(file);
  return ok;
}
