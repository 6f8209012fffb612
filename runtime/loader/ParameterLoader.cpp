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

/// Applies steps from `first` on that only change strides; the number of the
/// first one that has to copy, or of steps.
static size_t applySteps(const std::vector<RecipeStep> &recipe, size_t first,
                         StridedView &view) {
  for (; first < recipe.size(); ++first) {
    const RecipeStep &step = recipe[first];
    switch (step.kind) {
    case RecipeStep::Kind::Transpose:
      view.transpose(step.values);
      break;
    case RecipeStep::Kind::Slice:
      view.slice(step.dim, step.start, step.size);
      break;
    case RecipeStep::Kind::Reshape:
      if (!view.reshape(step.values))
        return first;
    }
  }
  return first;
}

LoadedBlock mtp::loadBlock(const Parameter &parameter, const char *source,
                           const Mesh &mesh,
                           const std::vector<int64_t> &coordinates) {
  const TensorLayout &layout = parameter.layout;
  if (!source) {
    int64_t bytes =
        elementCount(layout.localShape(mesh)) * byteSize(layout.type);
    LoadedBlock block{emptyBlock, AlignedBuffer(bytes)};
    if (bytes)
      block.data = block.owned.data();
    return block;
  }
  DType from = parameter.source.type, to = layout.type;
  StridedView view =
      StridedView::dense(source, byteSize(from), parameter.source.shape);
  AlignedBuffer reshaped;
  const std::vector<RecipeStep> &recipe = parameter.recipe;
  for (size_t done = 0; (done = applySteps(recipe, done, view)) < recipe.size();
       ++done) {
    reshaped = materialize(view);
    view = StridedView::dense(reshaped.data(), view.elementBytes,
                              recipe[done].values);
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
  if (from == to && !padded && aligned && reshaped.empty() && view.isDense() &&
      !parameter.updated)
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

/// Writes `piece` through `view`, after the steps from `first` on.
static void writeThrough(const std::vector<RecipeStep> &recipe, size_t first,
                         StridedView view, const char *piece) {
  auto write = [](const StridedView &to, const char *elements) {
    copyStrided(StridedView::dense(elements, to.elementBytes, to.shape),
                const_cast<char *>(to.data), to.strides);
  };
  size_t done = applySteps(recipe, first, view);
  if (done == recipe.size())
    return write(view, piece);
  AlignedBuffer copy = materialize(view);
  writeThrough(
      recipe, done + 1,
      StridedView::dense(copy.data(), view.elementBytes, recipe[done].values),
      piece);
  write(view, copy.data());
}

void mtp::undoRecipe(const std::vector<RecipeStep> &recipe,
                     int64_t elementBytes, const char *piece, char *whole,
                     const std::vector<int64_t> &shape) {
  if (elementCount(shape) > 0)
    writeThrough(recipe, 0, StridedView::dense(whole, elementBytes, shape),
                 piece);
}
