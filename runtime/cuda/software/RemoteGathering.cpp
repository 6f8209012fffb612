// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/cuda/software/RemoteGathering.h"
#include "runtime/support/Error.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace mtp;
using namespace mtp::software;

namespace {

/// A rank that has failed leaves nothing any more.
constexpr double kMostSeconds = 60;

[[noreturn]] void failFile(const std::string &what, const std::string &path) {
  fail(exits::RankFailure, "communication",
       "cannot " + what + " " + path + ": " + strerror(errno));
}

bool exists(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

std::string readAll(const std::string &path) {
  std::string bytes;
  FILE *file = fopen(path.c_str(), "rb");
  if (!file)
    failFile("read", path);
  char part[1 << 16];
  size_t size;
  while ((size = fread(part, 1, sizeof(part), file)) > 0)
    bytes.append(part, size);
  fclose(file);
  return bytes;
}

} // namespace

bool mtp::software::ranksAreProcesses() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char *text = std::getenv(name))
      return std::atoi(text) > 1;
  return false;
}

std::string mtp::software::randomName() {
  std::random_device device;
  char text[33];
  snprintf(text, sizeof(text), "%08x%08x%08x%08x", device(), device(), device(),
           device());
  return text;
}

RemoteGathering::RemoteGathering(const std::string &name, int ranks, int rank)
    : folder("/dev/shm/mtp-nccl-" + name), ranks(ranks), rank(rank) {
  struct stat found;
  if (mkdir(folder.c_str(), 0700) && errno != EEXIST)
    failFile("make", folder);
  if (lstat(folder.c_str(), &found))
    failFile("look at", folder);
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
      (found.st_mode & 077))
    fail(exits::RankFailure, "communication",
         folder + " is not a folder that only its owner may read");
  leave(0, "");
}

RemoteGathering::~RemoteGathering() {
  // The last rank finds the folder empty.
  for (uint64_t number = next > 2 ? next - 2 : 0; number < next; ++number)
    unlink(file(rank, number).c_str());
  unlink(file(rank, 0).c_str());
  rmdir(folder.c_str());
}

std::string RemoteGathering::file(int of, uint64_t number) const {
  return folder + "/" + std::to_string(of) + "." + std::to_string(number);
}

void RemoteGathering::leave(uint64_t number, const std::string &bytes) const {
  std::string path = file(rank, number), beside = path + ".new";
  int out = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (out < 0)
    failFile("make", beside);
  size_t at = 0;
  while (at < bytes.size()) {
    ssize_t written = write(out, bytes.data() + at, bytes.size() - at);
    if (written <= 0) {
      close(out);
      failFile("write", beside);
    }
    at += static_cast<size_t>(written);
  }
  close(out);
  if (rename(beside.c_str(), path.c_str()))
    failFile("rename", beside);
}

bool RemoteGathering::complete() {
  for (; joined < ranks; ++joined)
    if (!exists(file(joined, 0)))
      return false;
  return true;
}

std::vector<std::string> RemoteGathering::exchange(const std::string &mine) {
  uint64_t number = next++;
  leave(number, mine);
  // Who has left `number - 1` has read all of `number - 2`.
  if (number > 2)
    unlink(file(rank, number - 2).c_str());
  std::vector<std::string> all(static_cast<size_t>(ranks));
  auto begin = std::chrono::steady_clock::now();
  for (int other = 0; other < ranks; ++other) {
    if (other == rank) {
      all[static_cast<size_t>(other)] = mine;
      continue;
    }
    std::string path = file(other, number);
    while (!exists(path)) {
      std::chrono::duration<double> passed =
          std::chrono::steady_clock::now() - begin;
      if (passed.count() > kMostSeconds)
        fail(exits::RankFailure, "communication",
             "rank " + std::to_string(other) +
                 " of a communicator did not bring its part of collective " +
                 std::to_string(number));
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    all[static_cast<size_t>(other)] = readAll(path);
  }
  return all;
}
