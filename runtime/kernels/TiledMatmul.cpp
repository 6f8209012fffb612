// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- TiledMatmul.cpp - matrix products by mtp's own tiles ---------------===//
//
// B is packed into panels (constants once, at load), A a block of rows at a
// time. A task computes blockRows x blockColumns of one batch: over K in steps
// of blockDepth, tile by tile, into a buffer of its thread, then applies the
// epilogue on the way out. Each element is summed over K in ascending order,
// whatever the blocks and the number of threads: results don't depend on them.
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/Convert.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/kernels/MicroKernels.h"
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace mtp {
namespace {

template <typename T> T activate(T x, Activation activation) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (activation) {
    case Activation::None:
      return x;
    case Activation::Relu:
      return x > 0 || x != x ? x : T(0);
    case Activation::GeluErf:
      return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
    case Activation::GeluTanh:
      return T(0.5) * x *
             (T(1) + std::tanh(T(0.79788456080286535588) *
                               (x + T(0.044715) * x * x * x)));
    case Activation::Silu:
      return x / (T(1) + std::exp(-x));
    case Activation::GeluTanhGradient: // prepareMatmul() refuses it
      break;
    }
  }
  return x;
}

template <typename T> class TiledMatmul final : public LibraryKernel {
public:
  TiledMatmul(const MatmulProblem &problem, const PrepareContext &context);
  bool run(const MtpRank *rank, char *const *buffers,
           std::string &error) override;
  bool keepsConstant(int operand) const override {
    return operand != 1 || !packed;
  }
  int64_t packedBytes() const override {
    return packed ? int64_t(packed->size()) : 0;
  }
  std::string implementation() const override {
    return std::string("tiled ") + micro.name;
  }

private:
  void packPanel(const char *b, int64_t panel, T *to) const;
  void task(int64_t index, char *const *buffers, const T *panels,
            T *work) const;
  void epilogue(char *const *buffers, int64_t batch, int64_t row, int64_t rows,
                int64_t column, int64_t columns, T *block, T *extra) const;

  const MatmulProblem problem;
  const MicroKernels<T> &micro = microKernels<T>();
  const int threads;
  static constexpr int64_t blockDepth = sizeof(T) == 4 ? 384 : 192;
  int64_t blockRows, blockColumns, rowBlocks, columnBlocks, panelsPerBatch;
  bool packsA;
  /// B's distinct batches: those that differ in offset.
  std::vector<int64_t> batchOfB, offsetsOfB;
  std::shared_ptr<AlignedBytes> packed;
  std::shared_ptr<Scratch> scratch;
  size_t panelBytes = 0, taskBytes = 0;
};

template <typename T>
TiledMatmul<T>::TiledMatmul(const MatmulProblem &given,
                            const PrepareContext &context)
    : problem(given), threads(context.threads), scratch(scratchOf(context)) {
  const MatmulProblem &p = problem;
  blockRows = std::clamp<int64_t>(ceilDiv(p.m, micro.rows), 1, 8) * micro.rows;
  panelsPerBatch = ceilDiv(p.n, micro.columns);
  int64_t batches = p.batches();
  rowBlocks = ceilDiv(p.m, blockRows);
  // Wide blocks amortize packing of A; narrower ones give every thread work.
  int64_t panels = 16;
  while (panels > 2 &&
         batches * rowBlocks * ceilDiv(panelsPerBatch, panels) < 4 * threads &&
         threads > 1)
    panels /= 2;
  panels = std::max<int64_t>(1, std::min(panels, panelsPerBatch));
  blockColumns = panels * micro.columns;
  columnBlocks = ceilDiv(p.n, blockColumns);

  DType compute = std::is_same_v<T, float> ? DType::F32 : DType::F64;
  bool sameType = std::is_floating_point_v<T>
                      ? p.a.type == compute
                      : byteSize(p.a.type) == int64_t(sizeof(T));
  packsA = !(sameType && !p.roundToBf16 && p.a.column == 1 &&
             (panelsPerBatch <= 2 || p.m < micro.rows));

  std::map<int64_t, int64_t> seen;
  for (int64_t batch = 0; batch < batches && p.m > 0 && p.n > 0; ++batch) {
    int64_t offset = p.offset(p.b, batch);
    auto [it, fresh] = seen.try_emplace(offset, int64_t(offsetsOfB.size()));
    if (fresh)
      offsetsOfB.push_back(offset);
    batchOfB.push_back(it->second);
  }

  panelBytes = sizeof(T) * size_t(checkedMultiply(p.k, micro.columns));
  size_t bytes = size_t(
      checkedMultiply(checkedMultiply(int64_t(panelBytes), panelsPerBatch),
                      int64_t(offsetsOfB.size())));
  taskBytes = alignUp(sizeof(T) * size_t(blockRows * blockColumns)) +
              alignUp(sizeof(T) * size_t(blockColumns)) +
              alignUp(sizeof(T) * size_t(blockRows * blockDepth));
  if (const char *constant = constantBytes(context, 1)) {
    std::string format =
        "tiled " + std::string(micro.name) + " " + name(p.b.type) +
        std::to_string(sizeof(T)) + (p.roundToBf16 ? "r " : " ") +
        std::to_string(p.k) + " " + std::to_string(p.n) + " " +
        std::to_string(p.b.row) + " " + std::to_string(p.b.column);
    for (int64_t offset : offsetsOfB)
      format += " " + std::to_string(offset);
    packed = packConstant(context, 1, format, bytes, [&](char *to) {
      for (int64_t i = 0; i < int64_t(offsetsOfB.size()) * panelsPerBatch; ++i)
        packPanel(constant, i, reinterpret_cast<T *>(to));
    });
    bytes = 0;
  }
  panelBytes = alignUp(bytes);
  scratch->reserve(panelBytes + size_t(threads) * taskBytes);
}

/// Packs panel `panel` (over all distinct batches of B) into its place in `to`;
/// columns past N are 0.
template <typename T>
void TiledMatmul<T>::packPanel(const char *b, int64_t panel, T *to) const {
  const MatmulProblem &p = problem;
  if (p.k == 0)
    return;
  const int64_t width = micro.columns;
  to += panel * p.k * width;
  int64_t column = panel % panelsPerBatch * width;
  int64_t columns = std::min(width, p.n - column);
  int64_t size = byteSize(p.b.type);
  b += (offsetsOfB[panel / panelsPerBatch] + column * p.b.column) * size;
  if (columns < width)
    std::memset(to, 0, sizeof(T) * size_t(p.k * width));
  if (p.b.column == 1) {
    for (int64_t i = 0; i < p.k; ++i)
      loadRow<T>(p.b.type, b + i * p.b.row * size, 1, to + i * width, 1,
                 columns, p.roundToBf16);
    return;
  }
  // A transposed B: short runs along K, so that the panel's rows stay in cache.
  for (int64_t start = 0; start < p.k; start += 64)
    for (int64_t j = 0; j < columns; ++j)
      loadRow<T>(p.b.type, b + (j * p.b.column + start * p.b.row) * size,
                 p.b.row, to + start * width + j, width,
                 std::min<int64_t>(64, p.k - start), p.roundToBf16);
}

template <typename T>
void TiledMatmul<T>::task(int64_t index, char *const *buffers, const T *panels,
                          T *work) const {
  const MatmulProblem &p = problem;
  int64_t columnBlock = index % columnBlocks;
  int64_t rowBlock = index / columnBlocks % rowBlocks;
  int64_t batch = index / columnBlocks / rowBlocks;
  int64_t row = rowBlock * blockRows, rows = std::min(blockRows, p.m - row);
  int64_t column = columnBlock * blockColumns;
  int64_t columns = std::min(blockColumns, p.n - column);
  int64_t size = byteSize(p.a.type);
  const char *a = buffers[0] + (p.offset(p.a, batch) + row * p.a.row) * size;
  T *block = work;
  T *extra =
      block + alignUp(sizeof(T) * size_t(blockRows * blockColumns)) / sizeof(T);
  T *packedA = extra + alignUp(sizeof(T) * size_t(blockColumns)) / sizeof(T);
  panels += (batchOfB[batch] * panelsPerBatch + column / micro.columns) * p.k *
            micro.columns;

  if (p.k == 0)
    std::memset(block, 0, sizeof(T) * size_t(rows * blockColumns));
  for (int64_t depth = 0; depth < p.k; depth += blockDepth) {
    int64_t depths = std::min(blockDepth, p.k - depth);
    if (packsA)
      for (int64_t i = 0; i < rows; ++i) {
        int64_t first = i / micro.rows * micro.rows;
        int64_t tileRows = std::min<int64_t>(micro.rows, rows - first);
        loadRow<T>(p.a.type, a + (i * p.a.row + depth * p.a.column) * size,
                   p.a.column, packedA + first * depths + (i - first), tileRows,
                   depths, p.roundToBf16);
      }
    for (int64_t j = 0; j < columns; j += micro.columns) {
      const T *panel = panels + j * p.k + depth * micro.columns;
      for (int64_t i = 0; i < rows; i += micro.rows) {
        int tileRows = int(std::min<int64_t>(micro.rows, rows - i));
        T *to = block + i * blockColumns + j;
        if (packsA)
          micro.unitRow(tileRows, depths, packedA + i * depths, tileRows, panel,
                        to, blockColumns, depth > 0);
        else
          micro.unitColumn(tileRows, depths,
                           reinterpret_cast<const T *>(a) + i * p.a.row + depth,
                           p.a.row, panel, to, blockColumns, depth > 0);
      }
    }
  }
  epilogue(buffers, batch, row, rows, column, columns, block, extra);
}

template <typename T>
void TiledMatmul<T>::epilogue(char *const *buffers, int64_t batch, int64_t row,
                              int64_t rows, int64_t column, int64_t columns,
                              T *block, T *extra) const {
  const MatmulProblem &p = problem;
  int64_t size = byteSize(p.y.type);
  char *y = buffers[p.yAt] +
            (p.offset(p.y, batch) + row * p.y.row + column * p.y.column) * size;
  const char *residual = nullptr;
  if (p.hasResidual)
    residual = buffers[p.residualAt] +
               (p.offset(p.residual, batch) + row * p.residual.row +
                column * p.residual.column) *
                   size;
  for (int64_t i = 0; i < rows; ++i) {
    T *line = block + i * blockColumns;
    if (p.alpha != 1)
      for (int64_t j = 0; j < columns; ++j)
        line[j] = T(line[j] * p.alpha);
    if (p.hasBias) {
      loadRow<T>(p.y.type, buffers[p.biasAt] + column * size, 1, extra, 1,
                 columns);
      for (int64_t j = 0; j < columns; ++j)
        line[j] += extra[j];
    }
    if (p.activation != Activation::None)
      for (int64_t j = 0; j < columns; ++j)
        line[j] = activate(line[j], p.activation);
    if (p.hasResidual) {
      loadRow<T>(p.y.type, residual + i * p.residual.row * size,
                 p.residual.column, extra, 1, columns);
      for (int64_t j = 0; j < columns; ++j)
        line[j] += extra[j];
    }
    storeRow<T>(p.y.type, line, y + i * p.y.row * size, p.y.column, columns);
  }
}

template <typename T>
bool TiledMatmul<T>::run(const MtpRank *, char *const *buffers, std::string &) {
  if (problem.m == 0 || problem.n == 0 || problem.batches() == 0)
    return true;
  char *memory = scratch->data();
  const T *panels;
  if (packed) {
    panels = reinterpret_cast<const T *>(packed->data());
  } else {
    T *to = reinterpret_cast<T *>(memory);
    parallelFor(threads, int64_t(offsetsOfB.size()) * panelsPerBatch,
                [&](int64_t panel, int) { packPanel(buffers[1], panel, to); });
    panels = to;
  }
  parallelFor(threads, problem.batches() * rowBlocks * columnBlocks,
              [&](int64_t index, int thread) {
                char *work = memory + panelBytes + size_t(thread) * taskBytes;
                task(index, buffers, panels, reinterpret_cast<T *>(work));
              });
  return true;
}

} // namespace

std::unique_ptr<LibraryKernel>
prepareTiledMatmul(const MatmulProblem &problem,
                   const PrepareContext &context) {
  switch (problem.y.type) {
  case DType::F64:
    return std::make_unique<TiledMatmul<double>>(problem, context);
  case DType::I64:
  case DType::U64:
    return std::make_unique<TiledMatmul<uint64_t>>(problem, context);
  case DType::I32:
  case DType::U32:
    return std::make_unique<TiledMatmul<uint32_t>>(problem, context);
  default:
    return std::make_unique<TiledMatmul<float>>(problem, context);
  }
}

} // namespace mtp
