// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CublasLt.cpp - the entry points of cuBLASLt ------------------------===//
#include "runtime/cuda/software/Engine.h"
#include "runtime/cuda/software/Numbers.h"

#include <algorithm>
#include <vector>

using namespace mtp;
using namespace mtp::cuda;
using namespace mtp::software;

namespace mtp::cuda {
struct BlasHandle {};
struct ProductHandle {
  int compute = 0, scaleType = 0;
  bool transposeA = false, transposeB = false;
  uint32_t epilogue = blas::EpilogueNone;
  Address bias = 0, aux = 0;
  int64_t auxLeading = 0;
  bool has(int flag) const {
    return (epilogue & static_cast<uint32_t>(flag)) != 0;
  }
};
struct LayoutHandle {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, stride = 0;
  int32_t count = 1;
};
struct PreferenceHandle {};
} // namespace mtp::cuda

namespace {

int note(const char *name, uint64_t handle, int change) {
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  Call call;
  call.name = name;
  call.handle = handle;
  engine.note(std::move(call));
  engine.otherHandles += static_cast<uint64_t>(change);
  return blas::Success;
}

/// A product with everything that it needs, by columns.
struct Product {
  ProductHandle product;
  double alpha = 1;
  const char *a, *b;
  char *d;
  LayoutHandle aLayout, bLayout, dLayout;

  double element(const LayoutHandle &layout, const char *base, int64_t batch,
                 int64_t row, int64_t column) const {
    int64_t at = batch * layout.stride + column * layout.leading + row;
    return loadBlas(layout.type, base + at * static_cast<int64_t>(
                                                 sizeOfBlasType(layout.type)));
  }
  static double gelu(double x) {
    return 0.5 * x * (1 + std::tanh(kRoot * (x + kCubic * x * x * x)));
  }
  static double geluGradient(double x) {
    double t = std::tanh(kRoot * (x + kCubic * x * x * x));
    return 0.5 * (1 + t) +
           0.5 * x * (1 - t * t) * kRoot * (1 + 3 * kCubic * x * x);
  }
  double left(int64_t batch, int64_t row, int64_t k) const {
    return product.transposeA ? element(aLayout, a, batch, k, row)
                              : element(aLayout, a, batch, row, k);
  }
  double right(int64_t batch, int64_t k, int64_t column) const {
    return product.transposeB ? element(bLayout, b, batch, column, k)
                              : element(bLayout, b, batch, k, column);
  }
  /// An operand as a product of its compute type sees it.
  double rounded(double x, int type) const {
    if (type != blas::TypeF32)
      return x;
    auto narrow = static_cast<float>(x);
    if (product.compute == blas::ComputeFastTF32)
      return floatToTf32(narrow);
    if (product.compute == blas::ComputeFastBF16)
      return bf16ToFloat(floatToBf16(narrow));
    return x;
  }
  /// Element `index` of the bias, or of its gradient.
  char *bias(int64_t index) const {
    return reinterpret_cast<char *>(product.bias) +
           index * static_cast<int64_t>(sizeOfBlasType(dLayout.type));
  }
  /// What the epilogue makes of a sum of products.
  double finished(double sum, int64_t row, int64_t column) const {
    if (product.has(blas::EpilogueBias))
      sum += loadBlas(dLayout.type, bias(row));
    bool isGelu = product.has(blas::EpilogueGelu);
    if (!product.has(blas::EpilogueAux))
      return isGelu ? gelu(sum) : sum;
    char *aux = reinterpret_cast<char *>(product.aux) +
                (column * product.auxLeading + row) *
                    static_cast<int64_t>(sizeOfBlasType(dLayout.type));
    if (!isGelu)
      return sum * geluGradient(loadBlas(dLayout.type, aux));
    storeBlas(dLayout.type, aux, sum);
    return gelu(sum);
  }
  /// Gradients of a bias that are sums over the contracted dimension.
  void sumOperand(int64_t depth) const {
    bool ofA = product.has(blas::EpilogueSumA);
    if (!ofA && !product.has(blas::EpilogueSumB))
      return;
    auto size = static_cast<int64_t>(ofA ? dLayout.rows : dLayout.columns);
    for (int64_t i = 0; i < size; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += ofA ? left(0, i, k) : right(0, k, i);
      storeBlas(dLayout.type, bias(i), sum);
    }
  }
  /// sums[row] += left[k][row] * right[k] for k from 0 on, with rows of kBlock.
  static void accumulate(const std::vector<double> &left,
                         const std::vector<double> &right, int64_t rows,
                         double *sums) {
    auto depth = static_cast<int64_t>(right.size());
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      const double *l = left.data() + k * kBlock, *r = right.data() + k;
      for (int64_t row = 0; row < rows; ++row) {
        double sum = sums[row] + l[row] * r[0];
        sum += l[row + kBlock] * r[1];
        sum += l[row + 2 * kBlock] * r[2];
        sums[row] = sum + l[row + 3 * kBlock] * r[3];
      }
    }
    for (; k < depth; ++k)
      for (int64_t row = 0; row < rows; ++row)
        sums[row] += left[static_cast<size_t>(k * kBlock + row)] *
                     right[static_cast<size_t>(k)];
  }
  /// `count` rows from `first` on of one batch.
  void compute(int64_t batch, int64_t first, int64_t count, int64_t depth,
               std::vector<double> &rowSums) const {
    auto columns = static_cast<int64_t>(dLayout.columns),
         size = static_cast<int64_t>(sizeOfBlasType(dLayout.type));
    std::vector<double> packed(static_cast<size_t>(depth * kBlock)),
        other(static_cast<size_t>(depth));
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t row = 0; row < count; ++row)
        packed[static_cast<size_t>(k * kBlock + row)] =
            rounded(left(batch, first + row, k), aLayout.type);
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t k = 0; k < depth; ++k)
        other[static_cast<size_t>(k)] =
            rounded(right(batch, k, column), bLayout.type);
      double sums[kBlock] = {};
      accumulate(packed, other, count, sums);
      for (int64_t row = first; row < first + count; ++row) {
        double value = finished(sums[row - first] * alpha, row, column);
        if (!rowSums.empty())
          rowSums[static_cast<size_t>(row)] += value;
        int64_t at = batch * dLayout.stride + column * dLayout.leading + row;
        storeBlas(dLayout.type, d + at * size, value);
      }
    }
  }
  void operator()() const {
    auto rows = static_cast<int64_t>(dLayout.rows),
         depth = static_cast<int64_t>(product.transposeA ? aLayout.rows
                                                         : aLayout.columns);
    std::vector<double> rowSums(
        product.has(blas::EpilogueGradientSum) ? dLayout.rows : 0);
    for (int64_t batch = 0; batch < dLayout.count; ++batch)
      for (int64_t first = 0; first < rows; first += kBlock)
        compute(batch, first, std::min(kBlock, rows - first), depth, rowSums);
    for (size_t row = 0; row < rowSums.size(); ++row)
      storeBlas(dLayout.type, bias(static_cast<int64_t>(row)), rowSums[row]);
    sumOperand(depth);
  }

  static constexpr int64_t kBlock = 256; ///< rows that are computed at once
  static constexpr double kRoot = 0.7978845608028654, ///< sqrt(2 / pi)
      kCubic = 0.044715;
};

} // namespace

extern "C" {

int mtp_cublasLtCreate(BlasHandle **handle) {
  *handle = new BlasHandle;
  return note("cublasLtCreate", numberOf(*handle), 1);
}
int mtp_cublasLtDestroy(BlasHandle *handle) {
  note("cublasLtDestroy", numberOf(handle), -1);
  delete handle;
  return blas::Success;
}
const char *mtp_cublasLtGetStatusString(int status) {
  return status == blas::NotSupported ? "not supported"
                                      : "an error of the recording cuBLASLt";
}
int mtp_cublasLtMatmulDescCreate(ProductHandle **product, int compute,
                                 int scaleType) {
  *product = new ProductHandle;
  (*product)->compute = compute;
  (*product)->scaleType = scaleType;
  return blas::Success;
}
int mtp_cublasLtMatmulDescDestroy(ProductHandle *product) {
  delete product;
  return blas::Success;
}
int mtp_cublasLtMatmulDescSetAttribute(ProductHandle *product, int attribute,
                                       const void *value, size_t bytes) {
  auto integer = [&] {
    int32_t number = 0;
    std::memcpy(&number, value, sizeof(number));
    return number;
  };
  bool isWide = attribute == blas::BiasPointer ||
                attribute == blas::AuxPointer || attribute == blas::AuxLeading;
  if (bytes != (isWide ? 8u : 4u))
    return blas::InvalidValue;
  if (attribute == blas::TransposeA)
    product->transposeA = integer() == blas::TransposedOperand;
  else if (attribute == blas::TransposeB)
    product->transposeB = integer() == blas::TransposedOperand;
  else if (attribute == blas::Epilogue)
    product->epilogue = static_cast<uint32_t>(integer());
  else if (attribute == blas::BiasPointer)
    std::memcpy(&product->bias, value, bytes);
  else if (attribute == blas::AuxPointer)
    std::memcpy(&product->aux, value, bytes);
  else if (attribute == blas::AuxLeading)
    std::memcpy(&product->auxLeading, value, bytes);
  else
    return blas::InvalidValue;
  return blas::Success;
}
int mtp_cublasLtMatrixLayoutCreate(LayoutHandle **layout, int type,
                                   uint64_t rows, uint64_t columns,
                                   int64_t leading) {
  if (leading < static_cast<int64_t>(rows))
    return blas::InvalidValue;
  *layout = new LayoutHandle{type, rows, columns, leading, 0, 1};
  return blas::Success;
}
int mtp_cublasLtMatrixLayoutDestroy(LayoutHandle *layout) {
  delete layout;
  return blas::Success;
}
int mtp_cublasLtMatrixLayoutSetAttribute(LayoutHandle *layout, int attribute,
                                         const void *value, size_t bytes) {
  if (attribute == blas::BatchCount && bytes == 4)
    std::memcpy(&layout->count, value, bytes);
  else if (attribute == blas::BatchStride && bytes == 8)
    std::memcpy(&layout->stride, value, bytes);
  else
    return blas::InvalidValue;
  return blas::Success;
}
int mtp_cublasLtMatmulPreferenceCreate(PreferenceHandle **preference) {
  *preference = new PreferenceHandle;
  return blas::Success;
}
int mtp_cublasLtMatmulPreferenceDestroy(PreferenceHandle *preference) {
  delete preference;
  return blas::Success;
}
int mtp_cublasLtMatmulPreferenceSetAttribute(PreferenceHandle *, int attribute,
                                             const void *, size_t bytes) {
  return bytes == (attribute == blas::MaxWorkspace ? 8u : 4u)
             ? blas::Success
             : blas::InvalidValue;
}
int mtp_cublasLtMatmulAlgoGetHeuristic(BlasHandle *handle,
                                       ProductHandle *product, LayoutHandle *,
                                       LayoutHandle *, LayoutHandle *,
                                       LayoutHandle *d, PreferenceHandle *,
                                       int wanted, BlasCandidate *found,
                                       int *count) {
  note("cublasLtMatmulAlgoGetHeuristic", numberOf(handle), 0);
  bool hasAux = product->has(blas::EpilogueAux);
  *count = 0;
  if (hasAux && (product->auxLeading % blas::AuxGranule != 0 ||
                 product->auxLeading < static_cast<int64_t>(d->rows) ||
                 product->aux % static_cast<Address>(blas::AuxAlignment) != 0))
    return blas::NotSupported;
  *count = std::min(wanted, Engine::get().settings.products);
  for (int i = 0; i < *count; ++i) {
    found[i] = {};
    found[i].algorithm.data[0] = static_cast<uint64_t>(i) + 1;
    found[i].workspaceBytes = 1024;
  }
  return blas::Success;
}
int mtp_cublasLtMatmul(BlasHandle *handle, ProductHandle *product,
                       const void *alpha, const void *a, LayoutHandle *aLayout,
                       const void *b, LayoutHandle *bLayout, const void *beta,
                       const void *, LayoutHandle *, void *d,
                       LayoutHandle *dLayout, const BlasAlgorithm *algorithm,
                       void *workspace, size_t workspaceBytes,
                       StreamHandle *stream) {
  bool isDouble = product->scaleType == blas::TypeF64;
  double factor = isDouble ? *static_cast<const double *>(alpha)
                           : *static_cast<const float *>(alpha);
  double kept = isDouble ? *static_cast<const double *>(beta)
                         : *static_cast<const float *>(beta);
  if (kept != 0 || algorithm->data[0] == 0 || workspaceBytes < 1024)
    return blas::InvalidValue;
  Product work{*product,
               factor,
               static_cast<const char *>(a),
               static_cast<const char *>(b),
               static_cast<char *>(d),
               *aLayout,
               *bLayout,
               *dLayout};
  Engine &engine = Engine::get();
  std::lock_guard lock(engine.mutex);
  Call call;
  call.name = "cublasLtMatmul";
  call.handle = numberOf(handle);
  call.stream = numberOf(stream);
  call.detail = std::to_string(algorithm->data[0]);
  engine.note(std::move(call));
  Work given;
  given.what = "cublasLtMatmul";
  takeTouched(given);
  given.writes.push_back(
      {numberOf(workspace), numberOf(workspace) + workspaceBytes});
  return engine.give(numberOf(stream), std::move(given), work)
             ? blas::Success
             : blas::InvalidValue;
}

} // extern "C"
