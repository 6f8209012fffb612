// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Skeleton.h - an ONNX file without the bytes of its tensors ---------===//
//
// Weights must stay in the mapped file. The protobuf parser copies every bytes
// field, so the parser never sees them: a walk over the wire format copies the
// model without the large payloads of TensorProto and leaves, in their place,
// unknown fields that say where in the file they lie.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_FRONTEND_ONNX_SKELETON_H
#define MTP_COMPILER_FRONTEND_ONNX_SKELETON_H

#include <cstdint>
#include <string>

namespace mtp::onnx {

/// Numbers of the unknown varint fields that the walk adds to a TensorProto. A
/// field of the file with such a number is dropped.
namespace payload {
inline constexpr uint32_t First = 200000;
inline constexpr uint32_t Field =
    200000; ///< 9 raw_data, 4 float_data, 10 double_data
inline constexpr uint32_t Offset = 200001; ///< bytes from the start of the file
inline constexpr uint32_t Length = 200002; ///< bytes
/// Smaller payloads stay in the skeleton: none, weights never are literals.
inline constexpr uint64_t Least = 1;
} // namespace payload

/// The skeleton of the ModelProto in `data`. On failure returns false and says
/// in `error` what is wrong and at which byte.
bool makeSkeleton(const uint8_t *data, uint64_t size, std::string &skeleton,
                  std::string &error);

} // namespace mtp::onnx

#endif // MTP_COMPILER_FRONTEND_ONNX_SKELETON_H
