// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Convolution.h - windows of a convolution, and back -----------------===//
#ifndef MTP_RUNTIME_KERNELS_CONVOLUTION_H
#define MTP_RUNTIME_KERNELS_CONVOLUTION_H

#include "runtime/kernels/KernelSupport.h"

namespace mtp {

/// X [B, C, x1...], W [O, C / group, w1...], Y [B, O, y1...]. A position is one
/// of Y's spatial elements, a window what it sees of one group's channels, as a
/// row [C / group, w1...].
struct ConvolutionGeometry {
  Tensor x, w, y;
  std::vector<int64_t> strides, pads, dilations; ///< pads: begins only
  int64_t group = 1;
  int64_t positions = 1;
  int64_t depth = 1;      ///< elements of a window
  int64_t image = 1;      ///< elements of X of one batch
  int64_t groupImage = 1; ///< of one group
  int64_t outputs = 0;    ///< channels of Y in one group

  int spatial() const { return x.rank() - 2; }
  int64_t channels() const { return w.dim(1); } ///< of a group

  /// Reads the attributes and checks them against the shapes.
  void read(SiteReader &reader);

  /// Calls row(offset in the window, offset of the row's dimension in the
  /// group's channels or -1 if it lies outside, first coordinate in it) for
  /// each row of the window of `position` in the channels [first, end).
  template <typename Row>
  void forEachRow(int64_t position, int64_t first, int64_t end,
                  Row &&row) const {
    int64_t start[16], at[16] = {};
    int dims = spatial();
    for (int i = dims; i-- > 0; position /= y.dim(2 + i))
      start[i] = position % y.dim(2 + i) * strides[i] - pads[i];
    int64_t width = w.dim(-1), perChannel = depth / channels() / width;
    at[0] = first;
    for (int64_t r = first * perChannel; r < end * perChannel; ++r) {
      int64_t from = at[0]; // channel
      bool outside = false;
      for (int i = 0; i + 1 < dims; ++i) {
        int64_t coordinate = start[i] + at[i + 1] * dilations[i];
        outside |= coordinate < 0 || coordinate >= x.dim(2 + i);
        from = from * x.dim(2 + i) + coordinate;
      }
      row(r * width, outside ? -1 : from * x.dim(-1), start[dims - 1]);
      // Next row of the window: channel, then the leading spatial dimensions.
      int d = dims - 1;
      while (d > 0 && ++at[d] == w.dim(1 + d))
        at[d--] = 0;
      if (d == 0)
        ++at[0];
    }
  }

  /// Copies the window of `position` out of the channels of one group.
  void copyWindow(const char *channels, int64_t position, char *row) const;
  /// Positions that are worked on at once: their windows take a few MiB.
  int64_t chunkOf(int64_t elementBytes) const;
};

} // namespace mtp

#endif // MTP_RUNTIME_KERNELS_CONVOLUTION_H
