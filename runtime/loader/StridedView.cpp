// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/loader/StridedView.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <cstring>

using namespace mtp;

std::vector<int64_t> mtp::denseStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  return strides;
}

StridedView StridedView::dense(const char *data, int64_t elementBytes,
                               std::vector<int64_t> shape) {
  auto strides = denseStrides(shape);
  return {data, elementBytes, std::move(shape), std::move(strides)};
}

int64_t StridedView::elements() const { return elementCount(shape); }

bool StridedView::isDense() const {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected)
      return false;
    expected *= shape[i];
  }
  return true;
}

void StridedView::transpose(const std::vector<int64_t> &permutation) {
  std::vector<int64_t> newShape, newStrides;
  for (int64_t dim : permutation) {
    newShape.push_back(shape[dim]);
    newStrides.push_back(strides[dim]);
  }
  shape = std::move(newShape);
  strides = std::move(newStrides);
}

void StridedView::slice(int64_t dim, int64_t start, int64_t size) {
  shape[dim] = size;
  if (elements() > 0)
    data += start * strides[dim] * elementBytes;
}

bool StridedView::reshape(const std::vector<int64_t> &newShape) {
  if (elements() == 0) {
    *this = dense(data, elementBytes, newShape);
    return true;
  }
  // Dims that are contiguous with each other are merged; each merged dim must
  // be split exactly by consecutive new extents.
  std::vector<std::pair<int64_t, int64_t>> merged; // extent, stride
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1)
      continue;
    if (!merged.empty() && merged.back().second == strides[i] * shape[i]) {
      merged.back().first *= shape[i];
      merged.back().second = strides[i];
    } else {
      merged.emplace_back(shape[i], strides[i]);
    }
  }
  std::vector<int64_t> newStrides(newShape.size(), 1);
  size_t next = 0;
  for (const auto &[extent, stride] : merged) {
    std::vector<size_t> part;
    int64_t product = 1;
    while (product < extent && next < newShape.size()) {
      product *= newShape[next];
      part.push_back(next++);
    }
    if (product != extent)
      return false;
    int64_t step = stride;
    for (size_t i = part.size(); i-- > 0;) {
      newStrides[part[i]] = step;
      step *= newShape[part[i]];
    }
  }
  shape = newShape;
  strides = std::move(newStrides);
  return true;
}

namespace {

constexpr int64_t kTile = 32;

/// rows x columns elements, both sides with two strides, in elements.
template <typename T>
void copyPlane(const char *source, int64_t sourceRow, int64_t sourceColumn,
               char *target, int64_t targetRow, int64_t targetColumn,
               int64_t rows, int64_t columns) {
  // memcpy of one element: the source may lie anywhere in a file.
  auto move = [&](int64_t r, int64_t c) {
    std::memcpy(
        target + (r * targetRow + c * targetColumn) * int64_t(sizeof(T)),
        source + (r * sourceRow + c * sourceColumn) * int64_t(sizeof(T)),
        sizeof(T));
  };
  if (sourceColumn == 1 && targetColumn == 1) {
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(target + r * targetRow * int64_t(sizeof(T)),
                  source + r * sourceRow * int64_t(sizeof(T)),
                  columns * sizeof(T));
    return;
  }
  for (int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (int64_t c0 = 0; c0 < columns; c0 += kTile)
      for (int64_t r = r0; r < std::min(r0 + kTile, rows); ++r)
        for (int64_t c = c0; c < std::min(c0 + kTile, columns); ++c)
          move(r, c);
}

void copyPlaneOf(int64_t elementBytes, const char *source, int64_t sourceRow,
                 int64_t sourceColumn, char *target, int64_t targetRow,
                 int64_t targetColumn, int64_t rows, int64_t columns) {
  auto as = [&](auto type) {
    copyPlane<decltype(type)>(source, sourceRow, sourceColumn, target,
                              targetRow, targetColumn, rows, columns);
  };
  switch (elementBytes) {
  case 8:
    return as(uint64_t());
  case 4:
    return as(uint32_t());
  case 2:
    return as(uint16_t());
  default:
    return as(uint8_t());
  }
}

} // namespace

void mtp::copyStrided(const StridedView &view, char *target,
                      const std::vector<int64_t> &targetStrides) {
  if (view.elements() == 0)
    return;
  // The plane: the target's fastest dim, and the source's fastest other dim.
  int64_t rank = static_cast<int64_t>(view.shape.size());
  auto fastest = [&](const std::vector<int64_t> &strides, int64_t except) {
    int64_t best = -1;
    for (int64_t i = 0; i < rank; ++i)
      if (i != except && view.shape[i] > 1 &&
          (best < 0 || strides[i] < strides[best]))
        best = i;
    return best;
  };
  int64_t column = fastest(targetStrides, -1);
  int64_t row = column < 0 ? -1 : fastest(view.strides, column);
  std::vector<int64_t> outer;
  for (int64_t i = 0; i < rank; ++i)
    if (i != row && i != column && view.shape[i] > 1)
      outer.push_back(i);
  auto pick = [](const std::vector<int64_t> &values, int64_t dim,
                 int64_t none) { return dim < 0 ? none : values[dim]; };
  std::vector<int64_t> index(outer.size(), 0);
  int64_t from = 0, to = 0, e = view.elementBytes;
  while (true) {
    copyPlaneOf(e, view.data + from * e, pick(view.strides, row, 0),
                pick(view.strides, column, 1), target + to * e,
                pick(targetStrides, row, 0), pick(targetStrides, column, 1),
                pick(view.shape, row, 1), pick(view.shape, column, 1));
    size_t k = outer.size();
    while (k-- > 0) {
      from += view.strides[outer[k]];
      to += targetStrides[outer[k]];
      if (++index[k] < view.shape[outer[k]])
        break;
      from -= view.strides[outer[k]] * view.shape[outer[k]];
      to -= targetStrides[outer[k]] * view.shape[outer[k]];
      index[k] = 0;
    }
    if (k == static_cast<size_t>(-1))
      return;
  }
}
