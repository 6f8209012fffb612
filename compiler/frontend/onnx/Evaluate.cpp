// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/Evaluate.h"

namespace mtp::onnx {

std::vector<int64_t> stridesOf(const Shape &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

BroadcastIndex::BroadcastIndex(const Shape &from, const Shape &to) {
  int64_t stride = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    int64_t extent = i < from.size() ? from[from.size() - 1 - i] : 1;
    extents.push_back(to[to.size() - 1 - i]);
    steps.push_back(extent == 1 ? 0 : stride);
    stride *= extent;
  }
}

int64_t BroadcastIndex::operator()(int64_t flat) const {
  int64_t index = 0;
  for (size_t i = 0; i < extents.size() && flat; ++i) {
    index += flat % extents[i] * steps[i];
    flat /= extents[i];
  }
  return index;
}

void copyElement(Constant &result, int64_t to, const Constant &source, int64_t from) {
  if (result.holdsFloats())
    result.floats[to] = source.numberAt(from);
  else
    result.ints[to] = source.intAt(from);
}

} // namespace mtp::onnx
