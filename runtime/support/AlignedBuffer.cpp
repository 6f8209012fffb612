// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/AlignedBuffer.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>

using namespace mtp;

namespace {
constexpr size_t kAlignment = 64;
/// From here on memory comes straight from the system: zero, and given back at
/// once when freed.
constexpr size_t kMapThreshold = size_t(1) << 20;
} // namespace

AlignedBuffer::AlignedBuffer(size_t size) : length(size) {
  if (size == 0)
    return;
  if (size >= kMapThreshold) {
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw std::bad_alloc();
    madvise(memory, size, MADV_HUGEPAGE);
    pointer = static_cast<char *>(memory);
    return;
  }
  size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  pointer = static_cast<char *>(std::aligned_alloc(kAlignment, rounded));
  if (!pointer)
    throw std::bad_alloc();
  std::memset(pointer, 0, rounded);
}

AlignedBuffer::AlignedBuffer(const AlignedBuffer &other)
    : AlignedBuffer(other.length) {
  if (length)
    std::memcpy(pointer, other.pointer, length);
}

AlignedBuffer::~AlignedBuffer() {
  if (!pointer)
    return;
  if (length >= kMapThreshold)
    munmap(pointer, length);
  else
    std::free(pointer);
}
