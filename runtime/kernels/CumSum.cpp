// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CumSum.cpp - running sums along an axis ----------------------------===//
#include "runtime/kernels/ElementTypes.h"
#include "runtime/kernels/KernelSupport.h"
#include "runtime/kernels/Parallel.h"

namespace mtp {
namespace {

template <typename T> class CumSum final : public LibraryKernel {
public:
  CumSum(AxisView view, bool exclusive, bool reverse,
         const PrepareContext &context)
      : view(view), exclusive(exclusive), reverse(reverse),
        threads(context.threads) {}
  std::string implementation() const override { return "scan"; }

  bool run(const MtpRank *, char *const *buffers, std::string &) override {
    const T *x = reinterpret_cast<const T *>(buffers[0]);
    T *y = reinterpret_cast<T *>(buffers[1]);
    parallelFor(threads, view.rows(), [&](int64_t row, int) {
      int64_t at = view.start(row, view.extent), step = view.inner;
      if (reverse) {
        at += (view.extent - 1) * step;
        step = -step;
      }
      typename Accumulator<T>::Type sum = 0;
      for (int64_t i = 0; i < view.extent; ++i, at += step) {
        auto before = sum;
        sum += typename Accumulator<T>::Type(x[at]);
        y[at] = T(exclusive ? before : sum);
      }
    });
    return true;
  }

private:
  const AxisView view;
  const bool exclusive, reverse;
  const int threads;
};

} // namespace

std::unique_ptr<LibraryKernel> prepareCumSum(SiteReader &reader) {
  Tensor x = reader.next("X"), y = reader.next("Y");
  int axis = reader.axis("axis", x.rank(), std::nullopt);
  bool exclusive = reader.flag("exclusive", false),
       reverse = reader.flag("reverse", false);
  reader.finish();
  reader.require(x.shape == y.shape && x.type == y.type,
                 "Y " + toString(y) + " differs from X " + toString(x));
  reader.require(x.type != DType::Bool, "bool can't be summed");
  reader.require(x.isRowMajor() && y.isRowMajor(),
                 "an operand isn't row-major");
  return withElementType(
      x.type, [&](auto tag) -> std::unique_ptr<LibraryKernel> {
        using T = typename decltype(tag)::Type;
        return std::make_unique<CumSum<T>>(AxisView(x.shape, axis), exclusive,
                                           reverse, reader.context);
      });
}

} // namespace mtp
