// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- DeviceCopy.h - boxes of tensors, copied by a stream ----------------===//
#ifndef MTP_RUNTIME_CUDA_DEVICECOPY_H
#define MTP_RUNTIME_CUDA_DEVICECOPY_H

#include "runtime/cuda/Handles.h"
#include "runtime/support/Box.h"

#include <vector>

namespace mtp::cuda {

/// A BoxCopy as copies of the driver: one that is contiguous or whose rows have
/// one distance on each side is one call. Packed, the box is its runs in order,
/// without anything in between.
///
/// Example: columns 2..3 of a 4x8 matrix of f32 are four runs of 8 bytes, 32
/// apart; packed they are 32 bytes.
class DeviceCopy {
public:
  DeviceCopy() = default;
  explicit DeviceCopy(const BoxCopy &box);

  /// From the box's source to a packed target; from packed to the box's target.
  DeviceCopy packing() const;
  DeviceCopy unpacking() const;

  int64_t bytes() const;
  bool empty() const { return width == 0; }
  /// One run on both sides.
  bool contiguous() const { return loops.empty(); }
  int64_t sourceStart() const { return from; }
  int64_t targetStart() const { return to; }

  void enqueue(const DriverApi &driver, Address source, Address target,
               StreamHandle *stream) const;

private:
  void join();

  std::vector<BoxCopy::Loop>
      loops; ///< outermost first, none that can be joined
  int64_t from = 0, to = 0, width = 0;
};

/// A dense copy; nothing if both are the same.
void copyBytes(const DriverApi &driver, Address source, Address target,
               int64_t bytes, StreamHandle *stream);

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_DEVICECOPY_H
