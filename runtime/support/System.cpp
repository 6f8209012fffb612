// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/System.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

using namespace mtp;

namespace {

std::string readLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Directories of this process's cgroup (version 2), innermost first, up to the
/// root of the hierarchy.
template <typename Visit> void forEachCgroup(Visit &&visit) {
  std::ifstream file("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(file, line))
    if (line.rfind("0::", 0) == 0)
      path = line.substr(3);
  while (true) {
    visit("/sys/fs/cgroup" + path);
    size_t slash = path.find_last_of('/');
    if (slash == std::string::npos)
      return;
    path.resize(slash);
  }
}

/// cores that a "quota period" pair allows; 0 if it sets no limit.
int quotaCores(const std::string &quota, const std::string &period) {
  try {
    if (quota.empty() || quota == "max" || period.empty())
      return 0;
    double allowed = std::stod(quota), every = std::stod(period);
    if (allowed <= 0 || every <= 0)
      return 0;
    return std::max(1, static_cast<int>(allowed / every));
  } catch (const std::exception &) {
    return 0;
  }
}

std::atomic<int> stopSignal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void onSignal(int signal) { requestStop(signal); }

} // namespace

int mtp::usableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    cores = std::max(1, CPU_COUNT(&set));
  auto limit = [&](int allowed) {
    if (allowed > 0)
      cores = std::min(cores, allowed);
  };
  forEachCgroup([&](const std::string &directory) {
    std::istringstream words(readLine(directory + "/cpu.max"));
    std::string quota, period;
    words >> quota >> period;
    limit(quotaCores(quota, period));
  });
  limit(quotaCores(readLine("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
                   readLine("/sys/fs/cgroup/cpu/cpu.cfs_period_us")));
  return cores;
}

int64_t mtp::availableMemory() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
  auto limit = [&](const std::string &text) {
    try {
      if (!text.empty() && text != "max")
        bytes = std::min<int64_t>(bytes, std::stoll(text));
    } catch (const std::exception &) {
      // Version 1 writes 2^63 - 4096 for "no limit"; anything that isn't a
      // number sets none either.
    }
  };
  forEachCgroup([&](const std::string &directory) {
    limit(readLine(directory + "/memory.max"));
  });
  limit(readLine("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  return bytes;
}

int64_t mtp::peakResidentBytes() {
  // getrusage counts the memory of the program that started this one by vfork.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.compare(0, 6, "VmHWM:") == 0)
      return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

std::string mtp::programPath() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

std::string mtp::installedFile(const std::string &name) {
  std::filesystem::path program = programPath();
  return program.parent_path().parent_path() / name;
}

void mtp::requestStop(int signal) {
  stopSignal.store(signal, std::memory_order_relaxed);
}

int mtp::stopRequested() { return stopSignal.load(std::memory_order_relaxed); }

Error mtp::endedBySignal(int signal) {
  return {
      128 + signal, "signal", "ended by signal " + std::to_string(signal), {}};
}

void mtp::installSignalHandlers() {
  struct sigaction action {};
  action.sa_handler = onSignal;
  // The handler is gone after the first signal: a second one ends the process
  // even where a kernel doesn't return.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}
