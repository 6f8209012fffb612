// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/Pieces.h"

#include <numeric>

using namespace mlir;
using namespace mtp;
using namespace mtp::training;

namespace {

using Steps = SmallVector<RecipeStepAttr>;

Steps stepsOf(ArrayAttr recipe) {
  return Steps(recipe.getAsRange<RecipeStepAttr>());
}

/// Shape after a transpose or reshape.
SmallVector<int64_t> shapeAfter(ArrayRef<int64_t> shape, RecipeStepAttr step) {
  SmallVector<int64_t> result;
  if (step.getKind() == "reshape")
    result.assign(step.getValues().begin(), step.getValues().end());
  else
    for (int64_t dim : step.getValues())
      result.push_back(shape[dim]);
  return result;
}

/// A piece as a box of the whole tensor: [begin, begin + size) a dimension.
struct Box {
  SmallVector<int64_t> begin, size;

  int64_t volume() const {
    return std::accumulate(size.begin(), size.end(), int64_t(1),
                           std::multiplies<>());
  }
  bool meets(const Box &other) const {
    for (auto [b, s, ob, os] :
         llvm::zip_equal(begin, size, other.begin, other.size))
      if (b + s <= ob || ob + os <= b)
        return false;
    return true;
  }
};

/// The box that `steps` take, if slices come before reshapes.
std::optional<Box> boxOf(ArrayRef<int64_t> shape,
                         ArrayRef<RecipeStepAttr> steps) {
  Box box;
  box.begin.assign(shape.size(), 0);
  box.size.assign(shape.begin(), shape.end());
  SmallVector<int64_t> source; // dimension of the whole tensor
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim)
    source.push_back(dim);
  bool reshaped = false;
  for (RecipeStepAttr step : steps) {
    ArrayRef<int64_t> values = step.getValues();
    if (step.getKind() == "slice") {
      if (reshaped)
        return std::nullopt;
      box.begin[source[values[0]]] += values[1];
      box.size[source[values[0]]] = values[2];
    } else if (step.getKind() == "reshape") {
      reshaped = true;
    } else if (!reshaped) {
      SmallVector<int64_t> moved;
      for (int64_t dim : values)
        moved.push_back(source[dim]);
      source = moved;
    }
  }
  return box;
}

} // namespace

bool training::arePartition(ArrayRef<int64_t> shape,
                            ArrayRef<ArrayAttr> recipes) {
  SmallVector<Steps> all = llvm::map_to_vector(recipes, stepsOf);
  SmallVector<int64_t> whole(shape);
  // What all do alike to all elements only changes how they are named.
  size_t common = 0;
  auto isCommon = [&] {
    return llvm::all_of(all, [&](const Steps &steps) {
      return steps.size() > common && steps[common] == all[0][common] &&
             steps[common].getKind() != "slice";
    });
  };
  for (; isCommon(); ++common)
    whole = shapeAfter(whole, all[0][common]);
  SmallVector<Box> boxes;
  int64_t covered = 0;
  for (const Steps &steps : all) {
    auto box = boxOf(whole, ArrayRef(steps).drop_front(common));
    if (!box || llvm::any_of(
                    boxes, [&](const Box &other) { return box->meets(other); }))
      return false;
    covered += box->volume();
    boxes.push_back(std::move(*box));
  }
  return covered == std::accumulate(whole.begin(), whole.end(), int64_t(1),
                                    std::multiplies<>());
}

Value training::replay(OpBuilder &builder, Location loc, Value value,
                       ArrayAttr recipe) {
  for (auto step : recipe.getAsRange<RecipeStepAttr>()) {
    auto type = cast<RankedTensorType>(value.getType());
    ArrayRef<int64_t> values = step.getValues();
    if (step.getKind() == "slice") {
      SmallVector<int64_t> shape(type.getShape());
      shape[values[0]] = values[2];
      value = StridedSliceOp::create(builder, loc, type.clone(shape), value,
                                     values[0], values[1], 1);
      continue;
    }
    RankedTensorType result = type.clone(shapeAfter(type.getShape(), step));
    value =
        step.getKind() == "reshape"
            ? Value(ReshapeOp::create(builder, loc, result, value))
            : Value(TransposeOp::create(builder, loc, result, value, values));
  }
  return value;
}
