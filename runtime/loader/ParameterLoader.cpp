// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/loader/ParameterLoader.h"
#include "runtime/loader/Convert.h"
#include "runtime/loader/StridedView.h"
#include "runtime/support/Box.h"
#include "runtime/support/Checked.h"

#include <algorithm>

using namespace mtp;

namespace {

alignas(64) char emptyBlock[64];

/// Conversions go through a dense copy of about this many bytes of the source.
constexpr int64_t kConvertBytes = 1 << 20;

/// Copies the dense, unconverted elements of `view`.
AlignedBuffer materialize(const StridedView &view) {
  AlignedBuffer buffer(view.elements() * view.elementBytes);
  copyStrided(view, buffer.data(), denseStrides(view.shape));
  return buffer;
}

/// Converts `view` into the corner of a tensor of `capacity`, a few rows of the
/// outermost dim at a time.
void convertInto(const StridedView &view, DType from, DType to,
                 const std::vector<int64_t> &capacity, char *target) {
  if (view.shape.empty()) {
    convertElements(from, view.data, to, target, 1);
    return;
  }
  int64_t rows = view.shape[0];
  int64_t rowBytes = view.elements() / rows * view.elementBytes;
  int64_t step = std::clamp<int64_t>(
      kConvertBytes / std::max<int64_t>(rowBytes, 1), 1, rows);
  const std::vector<int64_t> zero(capacity.size(), 0);
  for (int64_t row = 0; row < rows; row += step) {
    StridedView part = view;
    part.slice(0, row, std::min(step, rows - row));
    AlignedBuffer dense = materialize(part);
    std::vector<int64_t> start = zero;
    start[0] = row;
    // Sizes of both sides differ, so runs are counted in elements.
    BoxCopy box(part.shape, part.shape, zero, capacity, start, 1);
    box.forEachRun([&](int64_t source, int64_t destination) {
      convertElements(from, dense.data() + source * byteSize(from), to,
                      target + destination * byteSize(to), box.runBytes());
    });
  }
}

} // namespace

LoadedBlock mtp::loadBlock(const Parameter &parameter, const char *source,
                           const Mesh &mesh,
                           const std::vector<int64_t> &coordinates) {
  const TensorLayout &layout = parameter.layout;
  DType from = parameter.source.type, to = layout.type;
  StridedView view =
      StridedView::dense(source, byteSize(from), parameter.source.shape);
  AlignedBuffer reshaped;
  for (const RecipeStep &step : parameter.recipe) {
    switch (step.kind) {
    case RecipeStep::Kind::Transpose:
      view.transpose(step.values);
      break;
    case RecipeStep::Kind::Slice:
      view.slice(step.dim, step.start, step.size);
      break;
    case RecipeStep::Kind::Reshape:
      if (!view.reshape(step.values)) {
        reshaped = materialize(view);
        view =
            StridedView::dense(reshaped.data(), view.elementBytes, step.values);
      }
    }
  }
  bool padded = false;
  std::vector<int64_t> capacity;
  for (size_t i = 0; i < layout.shape.size(); ++i) {
    Block block = blockOf(layout.shape[i], layout.dims[i], mesh, coordinates);
    view.slice(static_cast<int64_t>(i), block.offset, block.valid);
    capacity.push_back(block.capacity);
    padded |= block.valid != block.capacity;
  }
  int64_t bytes = elementCount(capacity) * byteSize(to);
  if (bytes == 0)
    return {emptyBlock, {}};
  bool aligned = reinterpret_cast<uintptr_t>(view.data) % byteSize(to) == 0;
  if (from == to && !padded && aligned && reshaped.empty() && view.isDense())
    return {view.data, {}};
  LoadedBlock block;
  block.owned = AlignedBuffer(bytes);
  block.data = block.owned.data();
  if (view.elements() == 0)
    return block;
  if (from == to)
    copyStrided(view, block.owned.data(), denseStrides(capacity));
  else
    convertInto(view, from, to, capacity, block.owned.data());
  return block;
}
