// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Scatter.cpp - scatter_elements, scatter_nd, gather_nd --------------===//
//
// Updates go one after the other, in row-major order of the indices, on one
// thread: indices may repeat.
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/ElementTypes.h"
#include "runtime/kernels/KernelSupport.h"
#include <algorithm>
#include <cstring>

namespace mtp {
namespace {

enum class Reduction : uint8_t { None, Add, Mul, Max, Min };

Reduction readReduction(SiteReader &reader, DType type) {
  std::vector<std::string> names = {"none", "add", "mul", "max", "min"};
  std::string name = reader.choice("reduction", "none", names);
  reader.require(name == "none" || type != DType::Bool,
                 "bool has no reduction " + name);
  return Reduction(std::find(names.begin(), names.end(), name) - names.begin());
}

/// NaN on either side gives NaN under every reduction.
template <typename T> T combine(T old, T update, Reduction reduction) {
  using A = typename Accumulator<T>::Type;
  switch (reduction) {
  case Reduction::None:
    return update;
  case Reduction::Add:
    return T(A(A(old) + A(update)));
  case Reduction::Mul:
    return T(A(A(old) * A(update)));
  case Reduction::Max:
  case Reduction::Min:
    break;
  }
  if constexpr (std::is_integral_v<T>) {
    return reduction == Reduction::Max ? std::max(old, update)
                                       : std::min(old, update);
  } else {
    A a = old, b = update;
    if (a != a || b != b)
      return a != a ? old : update;
    return (reduction == Reduction::Max ? b > a : b < a) ? update : old;
  }
}

/// Reads indices of i64 or i32 and checks them.
struct Indices {
  Tensor tensor;
  std::string kind;

  int64_t get(const char *buffer, int64_t at) const {
    return tensor.type == DType::I64
               ? reinterpret_cast<const int64_t *>(buffer)[at]
               : reinterpret_cast<const int32_t *>(buffer)[at];
  }
  /// Index `at` counted from 0 in a dimension of `extent`; -1 sets `error`.
  int64_t checked(const char *buffer, int64_t at, int64_t extent, int axis,
                  std::string &error) const {
    int64_t index = get(buffer, at);
    if (index >= -extent && index < extent)
      return index < 0 ? index + extent : index;
    std::string position;
    std::vector<int64_t> strides = rowMajorStrides(tensor.shape);
    for (int i = 0; i < tensor.rank(); ++i)
      position +=
          (i ? ", " : "") + std::to_string(at / strides[i] % tensor.shape[i]);
    error = kind + ": index " + std::to_string(index) + " at position [" +
            position + "] is out of range: dimension " + std::to_string(axis) +
            " has " + std::to_string(extent) + " elements";
    return -1;
  }
};

Indices readIndices(SiteReader &reader) {
  Indices indices{reader.next("indices"), reader.kind()};
  reader.require(
      indices.tensor.type == DType::I64 || indices.tensor.type == DType::I32,
      "indices are " + toString(indices.tensor) + ", not i64 or i32");
  return indices;
}

void requireRowMajor(const SiteReader &reader,
                     std::initializer_list<const Tensor *> tensors) {
  for (const Tensor *tensor : tensors)
    reader.require(tensor->isRowMajor(), "an operand isn't row-major");
}

void copyData(const Tensor &data, char *const *buffers) {
  if (buffers[3] != buffers[0] && data.elements() > 0)
    std::memcpy(buffers[3], buffers[0],
                size_t(data.elements() * byteSize(data.type)));
}

template <typename T> class ScatterElements final : public LibraryKernel {
public:
  ScatterElements(Tensor data, Indices indices, int axis, Reduction reduction)
      : data(std::move(data)), indices(std::move(indices)), axis(axis),
        reduction(reduction) {}
  std::string implementation() const override { return "loop"; }

  bool run(const MtpRank *, char *const *buffers, std::string &error) override {
    copyData(data, buffers);
    T *y = reinterpret_cast<T *>(buffers[3]);
    const T *updates = reinterpret_cast<const T *>(buffers[2]);
    int64_t count = indices.tensor.elements();
    std::vector<int64_t> position(data.shape.size(), 0);
    for (int64_t i = 0; i < count; ++i) {
      int64_t index =
          indices.checked(buffers[1], i, data.shape[axis], axis, error);
      if (index < 0)
        return false;
      int64_t to = index * data.strides[axis];
      for (int d = 0; d < data.rank(); ++d)
        to += d == axis ? 0 : position[d] * data.strides[d];
      y[to] = combine(y[to], updates[i], reduction);
      for (int d = data.rank(); d-- > 0;) {
        if (++position[d] < indices.tensor.shape[d])
          break;
        position[d] = 0;
      }
    }
    return true;
  }

private:
  const Tensor data;
  const Indices indices;
  const int axis;
  const Reduction reduction;
};

template <typename T> class ScatterNd final : public LibraryKernel {
public:
  ScatterNd(Tensor data, Indices indices, Reduction reduction)
      : data(std::move(data)), indices(std::move(indices)),
        reduction(reduction) {}
  std::string implementation() const override { return "loop"; }

  bool run(const MtpRank *, char *const *buffers, std::string &error) override {
    copyData(data, buffers);
    T *y = reinterpret_cast<T *>(buffers[3]);
    const T *updates = reinterpret_cast<const T *>(buffers[2]);
    int depth = int(indices.tensor.dim(-1));
    int64_t slice = 1, count = 1;
    for (int i = depth; i < data.rank(); ++i)
      slice *= data.shape[i];
    for (int i = 0; i + 1 < indices.tensor.rank(); ++i)
      count *= indices.tensor.shape[i];
    for (int64_t i = 0; i < count; ++i) {
      int64_t to = 0;
      for (int d = 0; d < depth; ++d) {
        int64_t index =
            indices.checked(buffers[1], i * depth + d, data.shape[d], d, error);
        if (index < 0)
          return false;
        to += index * data.strides[d];
      }
      if (reduction == Reduction::None)
        std::memcpy(y + to, updates + i * slice, size_t(slice) * sizeof(T));
      else
        for (int64_t j = 0; j < slice; ++j)
          y[to + j] = combine(y[to + j], updates[i * slice + j], reduction);
    }
    return true;
  }

private:
  const Tensor data;
  const Indices indices;
  const Reduction reduction;
};

class GatherNd final : public LibraryKernel {
public:
  GatherNd(Tensor data, Indices indices, int batchDims)
      : data(std::move(data)), indices(std::move(indices)),
        batchDims(batchDims) {}
  std::string implementation() const override { return "loop"; }

  bool run(const MtpRank *, char *const *buffers, std::string &error) override {
    int depth = int(indices.tensor.dim(-1));
    int64_t size = byteSize(data.type), slice = size, batches = 1, perBatch = 1,
            batchSize = 1;
    for (int i = 0; i < data.rank(); ++i) {
      slice *= i >= batchDims + depth ? data.shape[i] : 1;
      batchSize *= i >= batchDims ? data.shape[i] : 1;
    }
    for (int i = 0; i + 1 < indices.tensor.rank(); ++i)
      (i < batchDims ? batches : perBatch) *= indices.tensor.shape[i];
    for (int64_t i = 0; i < batches * perBatch; ++i) {
      int64_t from = i / perBatch * batchSize;
      for (int d = 0; d < depth; ++d) {
        int axis = batchDims + d;
        int64_t index = indices.checked(buffers[1], i * depth + d,
                                        data.shape[axis], axis, error);
        if (index < 0)
          return false;
        from += index * data.strides[axis];
      }
      if (slice > 0)
        std::memcpy(buffers[2] + i * slice, buffers[0] + from * size,
                    size_t(slice));
    }
    return true;
  }

private:
  const Tensor data;
  const Indices indices;
  const int batchDims;
};

} // namespace

std::unique_ptr<LibraryKernel> prepareScatterElements(SiteReader &reader) {
  Tensor data = reader.next("data");
  Indices indices = readIndices(reader);
  Tensor updates = reader.next("updates"), y = reader.next("Y");
  int axis = reader.axis("axis", data.rank(), 0);
  Reduction reduction = readReduction(reader, data.type);
  reader.finish();
  bool fits = indices.tensor.rank() == data.rank() &&
              updates.shape == indices.tensor.shape &&
              updates.type == data.type && y.shape == data.shape &&
              y.type == data.type;
  for (int i = 0; fits && i < data.rank(); ++i)
    fits = i == axis || indices.tensor.shape[i] <= data.shape[i];
  reader.require(fits, "data " + toString(data) + ", indices " +
                           toString(indices.tensor) + ", updates " +
                           toString(updates) + ", Y " + toString(y) +
                           " don't fit together");
  requireRowMajor(reader, {&data, &indices.tensor, &updates, &y});
  data.strides = rowMajorStrides(data.shape);
  return withElementType(data.type,
                         [&](auto tag) -> std::unique_ptr<LibraryKernel> {
                           using T = typename decltype(tag)::Type;
                           return std::make_unique<ScatterElements<T>>(
                               data, indices, axis, reduction);
                         });
}

std::unique_ptr<LibraryKernel> prepareScatterNd(SiteReader &reader) {
  Tensor data = reader.next("data");
  Indices indices = readIndices(reader);
  Tensor updates = reader.next("updates"), y = reader.next("Y");
  Reduction reduction = readReduction(reader, data.type);
  reader.finish();
  bool fits =
      indices.tensor.rank() >= 1 && indices.tensor.dim(-1) <= data.rank() &&
      updates.type == data.type && y.shape == data.shape && y.type == data.type;
  if (fits) {
    std::vector<int64_t> expected(indices.tensor.shape.begin(),
                                  indices.tensor.shape.end() - 1);
    expected.insert(expected.end(), data.shape.begin() + indices.tensor.dim(-1),
                    data.shape.end());
    fits = updates.shape == expected;
  }
  reader.require(fits, "data " + toString(data) + ", indices " +
                           toString(indices.tensor) + ", updates " +
                           toString(updates) + ", Y " + toString(y) +
                           " don't fit together");
  requireRowMajor(reader, {&data, &indices.tensor, &updates, &y});
  data.strides = rowMajorStrides(data.shape);
  return withElementType(
      data.type, [&](auto tag) -> std::unique_ptr<LibraryKernel> {
        using T = typename decltype(tag)::Type;
        return std::make_unique<ScatterNd<T>>(data, indices, reduction);
      });
}

std::unique_ptr<LibraryKernel> prepareGatherNd(SiteReader &reader) {
  Tensor data = reader.next("data");
  Indices indices = readIndices(reader);
  Tensor y = reader.next("Y");
  int batchDims = int(reader.integer("batchDims", 0, 0, data.rank()));
  reader.finish();
  const std::vector<int64_t> &shape = indices.tensor.shape;
  bool fits = indices.tensor.rank() > batchDims &&
              batchDims + shape.back() <= data.rank() && y.type == data.type;
  for (int i = 0; fits && i < batchDims; ++i)
    fits = shape[i] == data.shape[i];
  if (fits) {
    std::vector<int64_t> expected(shape.begin(), shape.end() - 1);
    expected.insert(expected.end(),
                    data.shape.begin() + batchDims + shape.back(),
                    data.shape.end());
    fits = y.shape == expected;
  }
  reader.require(fits, "data " + toString(data) + ", indices " +
                           toString(indices.tensor) + ", Y " + toString(y) +
                           " don't fit together");
  requireRowMajor(reader, {&data, &indices.tensor, &y});
  data.strides = rowMajorStrides(data.shape);
  return std::make_unique<GatherNd>(data, indices, batchDims);
}

} // namespace mtp
