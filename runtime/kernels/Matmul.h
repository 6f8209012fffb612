// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Matmul.h - a checked matrix product --------------------------------===//
#ifndef MTP_RUNTIME_KERNELS_MATMUL_H
#define MTP_RUNTIME_KERNELS_MATMUL_H

#include "runtime/kernels/KernelSupport.h"

namespace mtp {

/// The gradient is that of GeluTanh at another operand, times the product.
enum class Activation : uint8_t {
  None,
  Relu,
  GeluErf,
  GeluTanh,
  Silu,
  GeluTanhGradient
};
/// What a bias gradient is the sum of: the rows of the result, or, over the
/// contracted dimension, an operand.
enum class BiasGradient : uint8_t { None, Result, A, B };

/// Y = activation(alpha A B + bias) + residual for every batch, transposes
/// resolved into strides, batch dimensions merged as far as strides allow (into
/// m, too, where B has none).
struct MatmulProblem {
  struct View {
    DType type = DType::F32;
    std::vector<int64_t> batch; ///< strides, 0 where broadcast
    int64_t row = 0, column = 0;
  };
  std::vector<int64_t> batch;
  int64_t m = 0, n = 0, k = 0;
  View a, b, y, residual;
  bool hasBias = false, hasResidual = false;
  bool roundToBf16 = false;
  Activation activation = Activation::None;
  BiasGradient biasGradient = BiasGradient::None;
  bool hasAux = false; ///< the pre-activation, row-major, is read or written
  double alpha = 1;
  /// Positions among the site's operands; a is 0, b is 1.
  int biasAt = -1, residualAt = -1, yAt = -1, auxAt = -1, biasGradientAt = -1;

  int64_t batches() const;
  /// Element offset of batch `index` in `view`.
  int64_t offset(const View &view, int64_t index) const;
};

/// By oneDNN; null with a reason where it has no optimized implementation.
std::unique_ptr<LibraryKernel>
prepareOneDnnMatmul(const MatmulProblem &problem, const PrepareContext &context,
                    std::string &reason);
/// By mtp's own tiles; every type that matmul accepts.
std::unique_ptr<LibraryKernel>
prepareTiledMatmul(const MatmulProblem &problem, const PrepareContext &context);
/// Checks a site of kind "matmul".
MatmulProblem readMatmul(SiteReader &reader);

} // namespace mtp

#endif // MTP_RUNTIME_KERNELS_MATMUL_H
