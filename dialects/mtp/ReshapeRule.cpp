// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ReshapeRule.cpp - factors of a reshape -----------------------------===//

#include "dialects/mtp/ShardingRule.h"

#include <numeric>

using namespace mlir;
using namespace mtp;

namespace {
/// Walks the dimensions of one shape from the major side, handing out pieces.
class Walker {
public:
  Walker(ArrayRef<int64_t> shape, TensorFactors &factors)
      : shape(shape), factors(factors) {
    factors.assign(shape.size(), {});
    skipDone();
  }
  bool done() const { return dim == shape.size(); }
  /// What is left of the current dimension.
  int64_t left() const { return rest; }
  /// Puts `factor` of `size` on the current dimension.
  void take(int factor, int64_t size) {
    factors[dim].push_back(factor);
    rest /= size;
    if (rest == 1) {
      ++dim;
      skipDone();
    }
  }

private:
  /// Dimensions of size 1 carry no factor.
  void skipDone() {
    while (dim < shape.size() && shape[dim] == 1)
      ++dim;
    rest = dim < shape.size() ? shape[dim] : 1;
  }
  ArrayRef<int64_t> shape;
  TensorFactors &factors;
  size_t dim = 0;
  int64_t rest = 1;
};
} // namespace

/// Dimensions that do not factor (2x3 -> 3x2) are whole: one factor for each.
static void addWhole(ArrayRef<int64_t> shape, SmallVectorImpl<Factor> &factors,
                     TensorFactors &placed) {
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    int64_t product = 1;
    for (int factor : placed[dim])
      product *= factors[factor].size;
    if (product == extent)
      continue;
    Factor &factor = factors.emplace_back();
    factor.name = "w" + std::to_string(factors.size() - 1);
    factor.kind = FactorKind::Whole;
    factor.size = product == 0 ? extent : extent / product;
    placed[dim].push_back(factors.size() - 1);
  }
}

void mtp::reshapeFactors(ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                         SmallVectorImpl<Factor> &factors,
                         TensorFactors &fromFactors, TensorFactors &toFactors) {
  Walker source(from, fromFactors), target(to, toFactors);
  bool empty = llvm::is_contained(from, 0) || llvm::is_contained(to, 0);
  while (!empty && !source.done() && !target.done()) {
    // One side's remainder must divide the other's; a common divisor that is
    // neither would leave a factor that straddles blocks.
    int64_t size = std::min(source.left(), target.left());
    if (std::max(source.left(), target.left()) % size != 0)
      break;
    Factor &factor = factors.emplace_back();
    factor.name = "f" + std::to_string(factors.size() - 1);
    factor.size = size;
    int index = factors.size() - 1;
    source.take(index, size);
    target.take(index, size);
  }
  addWhole(from, factors, fromFactors);
  addWhole(to, factors, toFactors);
}
