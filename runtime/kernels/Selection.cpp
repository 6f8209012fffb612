// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Selection.cpp - topk, argmax, argmin -------------------------------===//
#include "runtime/kernels/ElementTypes.h"
#include "runtime/kernels/KernelSupport.h"
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <numeric>

namespace mtp {
namespace {

/// a before b in descending order; NaN is the largest.
template <typename T> bool greater(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a > b;
  } else {
    typename Accumulator<T>::Type x = a, y = b;
    return x > y || (x != x && y == y);
  }
}

void requireRowMajor(const SiteReader &reader, const Tensor &tensor,
                     const char *what) {
  reader.require(tensor.isRowMajor(), std::string(what) + " isn't row-major");
}

template <typename T> class TopK final : public LibraryKernel {
public:
  TopK(AxisView view, int64_t k, bool largest, const PrepareContext &context)
      : view(view), k(k), largest(largest), threads(context.threads),
        scratch(scratchOf(context)) {
    scratch->reserve(size_t(checkedMultiply(rowBytes(), threads)));
  }
  std::string implementation() const override { return "partial sort"; }

  bool run(const MtpRank *, char *const *buffers, std::string &) override {
    const T *x = reinterpret_cast<const T *>(buffers[0]);
    T *values = reinterpret_cast<T *>(buffers[1]);
    int64_t *indices = reinterpret_cast<int64_t *>(buffers[2]);
    if (k == 0)
      return true;
    char *memory = scratch->data();
    parallelFor(threads, view.rows(), [&](int64_t row, int thread) {
      int64_t *order =
          reinterpret_cast<int64_t *>(memory + thread * rowBytes());
      std::iota(order, order + view.extent, 0);
      const T *from = x + view.start(row, view.extent);
      int64_t inner = view.inner;
      std::partial_sort(order, order + k, order + view.extent,
                        [&](int64_t a, int64_t b) {
                          T first = from[a * inner], second = from[b * inner];
                          if (greater(first, second))
                            return largest;
                          if (greater(second, first))
                            return !largest;
                          return a < b;
                        });
      int64_t to = view.start(row, k);
      for (int64_t i = 0; i < k; ++i) {
        values[to + i * inner] = from[order[i] * inner];
        indices[to + i * inner] = order[i];
      }
    });
    return true;
  }

private:
  int64_t rowBytes() const {
    return int64_t(alignUp(size_t(checkedMultiply(view.extent, 8))));
  }
  const AxisView view;
  const int64_t k;
  const bool largest;
  const int threads;
  std::shared_ptr<Scratch> scratch;
};

template <typename T> class ArgMax final : public LibraryKernel {
public:
  ArgMax(AxisView view, bool largest, bool last, const PrepareContext &context)
      : view(view), largest(largest), last(last), threads(context.threads) {}
  std::string implementation() const override { return "scan"; }

  bool run(const MtpRank *, char *const *buffers, std::string &) override {
    const T *x = reinterpret_cast<const T *>(buffers[0]);
    int64_t *indices = reinterpret_cast<int64_t *>(buffers[1]);
    parallelFor(threads, view.rows(), [&](int64_t row, int) {
      const T *from = x + view.start(row, view.extent);
      int64_t best = 0;
      for (int64_t i = 1; i < view.extent; ++i) {
        T candidate = from[i * view.inner], current = from[best * view.inner];
        if (wins(candidate, current) || (last && !wins(current, candidate)))
          best = i;
      }
      indices[row] = best;
    });
    return true;
  }

private:
  /// NaN wins over every number, both for the largest and the smallest.
  bool wins(T a, T b) const {
    if constexpr (!std::is_integral_v<T>) {
      typename Accumulator<T>::Type x = a, y = b;
      if (x != x || y != y)
        return x != x && y == y;
    }
    return largest ? greater(a, b) : greater(b, a);
  }
  const AxisView view;
  const bool largest, last;
  const int threads;
};

} // namespace

std::unique_ptr<LibraryKernel> prepareTopK(SiteReader &reader) {
  Tensor x = reader.next("X"), values = reader.next("values"),
         indices = reader.next("indices");
  int axis = reader.axis("axis", x.rank(), -1);
  int64_t k = reader.integer("k", std::nullopt, 0, INT64_MAX);
  bool largest = reader.flag("largest", true);
  reader.flag("sorted", true); // sorted either way
  reader.finish();
  reader.require(k <= x.shape[axis], "k = " + std::to_string(k) + " of " +
                                         std::to_string(x.shape[axis]) +
                                         " elements");
  std::vector<int64_t> expected = x.shape;
  expected[axis] = k;
  reader.require(values.shape == expected && values.type == x.type &&
                     indices.shape == expected && indices.type == DType::I64,
                 "results " + toString(values) + ", " + toString(indices) +
                     " don't fit X " + toString(x) +
                     " and k = " + std::to_string(k));
  for (const Tensor *tensor : {&x, &values, &indices})
    requireRowMajor(reader, *tensor, "an operand");
  return withElementType(
      x.type, [&](auto tag) -> std::unique_ptr<LibraryKernel> {
        using T = typename decltype(tag)::Type;
        return std::make_unique<TopK<T>>(AxisView(x.shape, axis), k, largest,
                                         reader.context);
      });
}

std::unique_ptr<LibraryKernel> prepareArgMax(SiteReader &reader) {
  Tensor x = reader.next("X"), indices = reader.next("indices");
  int axis = reader.axis("axis", x.rank(), 0);
  bool last = reader.flag("selectLastIndex", false);
  reader.finish();
  std::vector<int64_t> kept = x.shape, dropped = x.shape;
  kept[axis] = 1;
  dropped.erase(dropped.begin() + axis);
  reader.require((indices.shape == kept || indices.shape == dropped) &&
                     indices.type == DType::I64,
                 "indices " + toString(indices) + " don't fit X " +
                     toString(x));
  reader.require(x.shape[axis] > 0 || indices.elements() == 0,
                 "no element along axis " + std::to_string(axis) + " of X " +
                     toString(x));
  for (const Tensor *tensor : {&x, &indices})
    requireRowMajor(reader, *tensor, "an operand");
  return withElementType(
      x.type, [&](auto tag) -> std::unique_ptr<LibraryKernel> {
        using T = typename decltype(tag)::Type;
        return std::make_unique<ArgMax<T>>(AxisView(x.shape, axis),
                                           reader.kind() == "argmax", last,
                                           reader.context);
      });
}

} // namespace mtp
