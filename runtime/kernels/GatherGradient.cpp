// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GatherGradient.cpp - slices summed into rows -----------------------===//
//
// A task owns a range of rows, or of columns where there are few rows: it sets
// them to zero and goes through all indices. So every sum has the order of the
// indices, whatever the number of threads.
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/ElementTypes.h"
#include "runtime/kernels/KernelSupport.h"
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <cstring>

namespace mtp {
namespace {

struct GatherProblem {
  DType indexType = DType::I64;
  int64_t outer = 1, indices = 1, rows = 1, inner = 1;
};

template <typename T> class GatherGradient final : public LibraryKernel {
public:
  GatherGradient(const GatherProblem &problem, int threads)
      : p(problem), threads(threads) {
    // A few tasks a thread: rows that many indices hit lie together.
    rowTasks = std::clamp<int64_t>(p.rows / 64, 1, 8 * int64_t(threads));
    columnTasks =
        rowTasks >= threads ? 1 : std::clamp<int64_t>(p.inner / 64, 1, threads);
  }
  std::string implementation() const override { return "loop"; }

  bool run(const MtpRank *, char *const *buffers, std::string &) override {
    if (p.rows == 0 || p.inner == 0)
      return true;
    parallelFor(threads, p.outer * rowTasks * columnTasks,
                [&](int64_t task, int) {
                  int64_t part = task % (rowTasks * columnTasks);
                  sum(buffers, task / (rowTasks * columnTasks),
                      part / columnTasks, part % columnTasks);
                });
    return true;
  }

private:
  void sum(char *const *buffers, int64_t outer, int64_t rowTask,
           int64_t columnTask) const {
    int64_t firstRow = p.rows * rowTask / rowTasks,
            endRow = p.rows * (rowTask + 1) / rowTasks,
            first = p.inner * columnTask / columnTasks,
            count = p.inner * (columnTask + 1) / columnTasks - first;
    const T *g = reinterpret_cast<const T *>(buffers[1]) +
                 outer * p.indices * p.inner + first;
    T *y = reinterpret_cast<T *>(buffers[2]) + outer * p.rows * p.inner + first;
    for (int64_t row = firstRow; row < endRow; ++row)
      std::memset(y + row * p.inner, 0, size_t(count) * sizeof(T));
    for (int64_t i = 0; i < p.indices; ++i) {
      int64_t row = p.indexType == DType::I64
                        ? reinterpret_cast<const int64_t *>(buffers[0])[i]
                        : reinterpret_cast<const int32_t *>(buffers[0])[i];
      row += row < 0 ? p.rows : 0;
      if (row < firstRow || row >= endRow)
        continue;
      const T *from = g + i * p.inner;
      T *to = y + row * p.inner;
      for (int64_t j = 0; j < count; ++j)
        to[j] = T(to[j] + from[j]);
    }
  }

  const GatherProblem p;
  const int threads;
  int64_t rowTasks, columnTasks;
};

} // namespace

std::unique_ptr<LibraryKernel> prepareGatherGradient(SiteReader &reader) {
  Tensor indices = reader.next("indices"), g = reader.next("G"),
         y = reader.next("Y");
  int axis = reader.axis("axis", y.rank(), std::nullopt);
  reader.finish();
  reader.require(indices.type == DType::I64 || indices.type == DType::I32,
                 "indices are " + toString(indices) + ", not i64 or i32");
  std::vector<int64_t> expected(y.shape.begin(), y.shape.begin() + axis);
  expected.insert(expected.end(), indices.shape.begin(), indices.shape.end());
  expected.insert(expected.end(), y.shape.begin() + axis + 1, y.shape.end());
  reader.require(g.shape == expected && g.type == y.type && isFloat(y.type),
                 "indices " + toString(indices) + ", G " + toString(g) +
                     ", Y " + toString(y) + " don't fit together");
  for (const Tensor *tensor : {&indices, &g, &y})
    reader.require(tensor->isRowMajor(), "an operand isn't row-major");
  GatherProblem p;
  p.indexType = indices.type;
  p.indices = indices.elements();
  p.rows = y.shape[size_t(axis)];
  for (int i = 0; i < y.rank(); ++i)
    if (i != axis)
      (i < axis ? p.outer : p.inner) *= y.shape[size_t(i)];
  int threads = reader.context.threads;
  return withElementType(
      y.type, [&](auto tag) -> std::unique_ptr<LibraryKernel> {
        using T = typename decltype(tag)::Type;
        if constexpr (std::is_integral_v<T>)
          return nullptr;
        else
          return std::make_unique<GatherGradient<T>>(p, threads);
      });
}

} // namespace mtp
