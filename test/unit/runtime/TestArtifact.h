// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TestArtifact.h - small artifacts made by hand ----------------------===//
#ifndef MTP_TEST_UNIT_RUNTIME_TESTARTIFACT_H
#define MTP_TEST_UNIT_RUNTIME_TESTARTIFACT_H

#include "runtime/artifact/Artifact.h"

#include <string>
#include <vector>

namespace mtp::test {

/// Kernels of objects/kernels.c, f32 unless said otherwise.
enum KernelNumber : int64_t {
  Multiply, ///< x, w -> y
  LookUp,   ///< i64 index, table of 4 -> y; fault 1 if out of range
  AddOne,   ///< y += 1
  Hang,     ///< i64 coordinate: never returns where that is 1
  Exponent  ///< x -> exp(x) + rankValues[0]
};

std::string objectBytes(const std::string &name);

inline TensorLayout whole(DType type, std::vector<int64_t> shape) {
  TensorLayout layout;
  layout.type = type;
  layout.dims.resize(shape.size());
  layout.shape = std::move(shape);
  return layout;
}
/// Cut along `dim` by mesh axis 0.
inline TensorLayout cut(DType type, std::vector<int64_t> shape, int dim,
                        int64_t unit = 1) {
  TensorLayout layout = whole(type, std::move(shape));
  layout.dims[dim] = {{0}, unit};
  return layout;
}

inline BufferRef at(BufferRef::Space space, int64_t index, int64_t offset,
                    int64_t bytes) {
  return {space, index, offset, bytes};
}
inline BufferRef arena(int64_t offset, int64_t bytes) {
  return at(BufferRef::Space::Arena, 0, offset, bytes);
}

/// x [rows] f32, cut by tp; w = 1, 2, 3, ... [rows] embedded, cut alike.
/// y = all_gather(x * w): whole, the same on all ranks.
Artifact multiplyAndGather(int64_t rows, int64_t ranks);

} // namespace mtp::test

#endif // MTP_TEST_UNIT_RUNTIME_TESTARTIFACT_H
