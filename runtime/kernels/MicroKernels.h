// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MicroKernels.h - inner loops, one version per instruction set ------===//
//
// The innermost loops of products and attention. MicroKernels.inc is compiled
// once for each instruction set into a table of functions; microKernels() picks
// the widest one that the CPU has.
//
// All work on a *panel*: a matrix [k, columns] whose rows are `columns` wide
// and contiguous, two vectors each.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_KERNELS_MICROKERNELS_H
#define MTP_RUNTIME_KERNELS_MICROKERNELS_H

#include <cstdint>

namespace mtp {

template <typename T> struct MicroKernels {
  const char *name; ///< "avx512", "avx2", "baseline"
  int rows;         ///< most rows of a tile
  int columns;      ///< width of a panel

  /// c[i * ldc + j] = (accumulate ? c : 0) + sum_p a(i, p) * b[p * columns + j]
  /// for i < m <= rows, j < columns, p ascending.
  /// unitRow: a(i, p) = a[i + p * stride]; unitColumn: a[i * stride + p].
  using Tile = void (*)(int m, int64_t k, const T *a, int64_t stride,
                        const T *b, T *c, int64_t ldc, bool accumulate);
  Tile unitRow;
  Tile unitColumn;

  /// One step of softmax over `keys` rows of the panel `scores`: maximum and
  /// sum (of `columns` running values each) take the rows in, the scores become
  /// exp(score - maximum), and correction is exp(old maximum - new maximum).
  /// True if any correction isn't 1.
  bool (*softmaxStep)(T *scores, int64_t keys, T *maximum, T *sum,
                      T *correction);
  /// Softmax with known statistics: scores = exp(scores - shift) * factor, each
  /// of `columns` values; scores exceed shift by no more than rounding.
  void (*softmaxOf)(T *scores, int64_t keys, const T *shift, const T *factor);
  /// Its gradient: g = p * (g - delta).
  void (*softmaxGradient)(const T *p, T *g, int64_t keys, const T *delta);
  /// panel[r][j] *= factor[j] for r < count.
  void (*scaleRows)(T *panel, int64_t count, const T *factor);
  /// x = cap * tanh(x / cap), `count` elements, a multiple of columns.
  void (*softcap)(T *x, int64_t count, T cap);
};

/// T: float, double, uint32_t, uint64_t. The softmax functions are null for the
/// integers.
template <typename T> const MicroKernels<T> &microKernels();

/// Every table this CPU can run, the widest first; for tests.
template <typename T> int microKernelTables(const MicroKernels<T> *tables[3]);

} // namespace mtp

#endif // MTP_RUNTIME_KERNELS_MICROKERNELS_H
