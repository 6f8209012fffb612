// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- StridedView.h - load-time recipes without copies -------------------===//
#ifndef MTP_RUNTIME_LOADER_STRIDEDVIEW_H
#define MTP_RUNTIME_LOADER_STRIDEDVIEW_H

#include "runtime/artifact/Artifact.h"

#include <vector>

namespace mtp {

/// A tensor in memory, strides in elements.
struct StridedView {
  const char *data = nullptr;
  int64_t elementBytes = 1;
  std::vector<int64_t> shape, strides;

  static StridedView dense(const char *data, int64_t elementBytes,
                           std::vector<int64_t> shape);
  bool isDense() const;
  int64_t elements() const;

  void transpose(const std::vector<int64_t> &permutation);
  void slice(int64_t dim, int64_t start, int64_t size);
  /// False, and nothing changes, if no strides give the new shape.
  bool reshape(const std::vector<int64_t> &newShape);
};

/// Row-major strides of `shape`, in elements.
std::vector<int64_t> denseStrides(const std::vector<int64_t> &shape);

/// Copies all elements of `view` to `target`, whose strides are in elements.
/// Goes through small tiles where source and target run along different dims.
void copyStrided(const StridedView &view, char *target,
                 const std::vector<int64_t> &targetStrides);

} // namespace mtp

#endif // MTP_RUNTIME_LOADER_STRIDEDVIEW_H
