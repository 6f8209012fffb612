// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MachineCopies.cpp - asynchronous copies to shared memory -----------===//
//
// cp.async: a thread begins copies, commits those since the last commit as a
// group, and waits until at most n of its groups are under way. A copy happens
// when its thread has waited for it, which is the latest that a GPU may do it;
// other threads see it after a barrier.
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Machine.h"

#include <algorithm>
#include <cstring>

using namespace mtp::emulator;

void Machine::begin(Thread &thread, int64_t site, const uint64_t *operands) {
  Copy copy;
  copy.to = reinterpret_cast<char *>(operands[0]);
  copy.from = reinterpret_cast<const char *>(operands[1]);
  copy.bytes = static_cast<int64_t>(operands[2]);
  copy.site = site;
  copy.readSite = static_cast<int64_t>(operands[3]);
  copy.group = thread.groups;
  int64_t size = kernel->sites[static_cast<size_t>(site)].bytes;
  // More than the size is as much as the size.
  copy.bytes = std::min(copy.bytes, size);
  if (!arrayAt(copy.to))
    failIn(thread, Trouble::NotShared, site);
  if (!isAligned(thread, site, copy.to) ||
      !isAligned(thread, copy.readSite, copy.from) ||
      (copy.bytes > 0 &&
       !inspect(thread, copy.readSite, copy.from, copy.bytes, Use::Read)) ||
      !inspect(thread, site, copy.to, size, Use::BeginCopy))
    failIn(thread);
  memcpy(copy.contents.data(), copy.from, static_cast<size_t>(copy.bytes));
  thread.copies.push_back(copy);
}

void Machine::end(Thread &thread, const Copy &copy) {
  auto read = static_cast<size_t>(copy.bytes);
  if (read > 0 &&
      !inspect(thread, copy.readSite, copy.from, copy.bytes, Use::Read))
    failIn(thread);
  if (memcmp(copy.contents.data(), copy.from, read) != 0)
    failIn(thread, Trouble::SourceChanged, copy.readSite);
  int64_t size = kernel->sites[static_cast<size_t>(copy.site)].bytes;
  memcpy(copy.to, copy.contents.data(), static_cast<size_t>(size));
  // The begin has seen that the destination lies in an array.
  const SharedArray *array = arrayAt(copy.to);
  auto index = static_cast<size_t>(array - kernel->arrays.data());
  arrays[index].endCopy(copy.to - shared.data() - array->begin, size,
                        {phase, firstPhase, thread.number});
}

void Machine::wait(Thread &thread, int64_t left) {
  // Groups ascend.
  auto copy = thread.copies.begin();
  for (; copy != thread.copies.end() && copy->group + left < thread.groups;
       ++copy)
    end(thread, *copy);
  thread.copies.erase(thread.copies.begin(), copy);
}

void Machine::async(MtpEmulatedThread *self, int64_t number, void *operands) {
  auto &thread = static_cast<Thread &>(*self);
  Machine &machine = thread.machine;
  auto *values = static_cast<const uint64_t *>(operands);
  switch (machine.kernel->sites[static_cast<size_t>(number)].kind) {
  case Site::Kind::Copy:
    return machine.begin(thread, number, values);
  case Site::Kind::Commit:
    ++thread.groups;
    return;
  default:
    return machine.wait(thread, static_cast<int64_t>(values[0]));
  }
}
