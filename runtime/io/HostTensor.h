// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- HostTensor.h - a whole tensor in memory ----------------------------===//
#ifndef MTP_RUNTIME_IO_HOSTTENSOR_H
#define MTP_RUNTIME_IO_HOSTTENSOR_H

#include "runtime/artifact/Artifact.h"
#include "runtime/support/AlignedBuffer.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mtp {

/// A dense tensor, row-major, whole (global), 64-byte aligned.
struct HostTensor {
  DType type = DType::F32;
  std::vector<int64_t> shape;
  AlignedBuffer bytes; ///< elements() * byteSize(type)

  HostTensor() = default;
  /// Allocates, zero-filled. `shape` must be valid: every extent >= 0 and the
  /// size in bytes within int64.
  HostTensor(DType type, std::vector<int64_t> shape);

  int64_t elements() const;
  template <typename T> T *as() { return reinterpret_cast<T *>(bytes.data()); }
  template <typename T> const T *as() const {
    return reinterpret_cast<const T *>(bytes.data());
  }
  /// Element `i` of the flat tensor, converted to double (exact but for 64-bit
  /// integers above 2^53).
  double valueAt(int64_t i) const;
};

using TensorMap = std::map<std::string, HostTensor>;

/// "[2, 16]".
std::string shapeText(const std::vector<int64_t> &shape);

} // namespace mtp

#endif // MTP_RUNTIME_IO_HOSTTENSOR_H
