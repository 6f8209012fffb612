// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- AlignedBuffer.h - owned bytes on a cache-line border ---------------===//
#ifndef MTP_RUNTIME_SUPPORT_ALIGNEDBUFFER_H
#define MTP_RUNTIME_SUPPORT_ALIGNEDBUFFER_H

#include <cstddef>
#include <cstdint>

namespace mtp {

/// Bytes aligned to 64, at least one cache line long, movable. Fresh memory is
/// zero (large buffers get untouched pages). Throws std::bad_alloc.
class AlignedBuffer {
public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size);
  AlignedBuffer(const AlignedBuffer &other);
  AlignedBuffer(AlignedBuffer &&other) noexcept { swap(other); }
  AlignedBuffer &operator=(AlignedBuffer other) noexcept {
    swap(other);
    return *this;
  }
  ~AlignedBuffer();

  char *data() { return pointer; }
  const char *data() const { return pointer; }
  size_t size() const { return length; }
  bool empty() const { return length == 0; }

private:
  void swap(AlignedBuffer &other) noexcept {
    char *p = pointer;
    size_t l = length;
    pointer = other.pointer;
    length = other.length;
    other.pointer = p;
    other.length = l;
  }
  char *pointer = nullptr;
  size_t length = 0;
};

} // namespace mtp

#endif // MTP_RUNTIME_SUPPORT_ALIGNEDBUFFER_H
