// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Convolution.cpp - N-d convolution as a matrix product --------------===//
//
// Windows are copied to rows, [positions, C / group * window] for each group,
// and multiplied by the weights, which are packed once where they are constant.
// The product is written transposed, right into [O, positions]. Positions come
// in chunks, so that the rows take a few MiB at most.
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/Convert.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <cstring>

namespace mtp {
namespace {

struct ConvolutionProblem {
  Tensor x, w, y;
  std::vector<int64_t> strides, pads, dilations; ///< pads: begins only
  int64_t group = 1;
  bool hasBias = false;
  int spatial() const { return x.rank() - 2; }
};

ConvolutionProblem readConvolution(SiteReader &reader) {
  ConvolutionProblem p;
  p.x = reader.next("X");
  p.w = reader.next("W");
  p.hasBias = reader.flag("bias", false);
  Tensor bias = p.hasBias ? reader.next("bias") : Tensor{};
  p.y = reader.next("Y");
  p.strides = reader.integers("strides");
  p.dilations = reader.integers("dilations");
  std::vector<int64_t> pads = reader.integers("pads");
  p.group = reader.integer("group", 1, 1, INT64_MAX);
  reader.finish();

  std::string shapes =
      "X " + toString(p.x) + ", W " + toString(p.w) + ", Y " + toString(p.y);
  int spatial = p.spatial();
  reader.require(spatial >= 1 && p.w.rank() == p.x.rank() &&
                     p.y.rank() == p.x.rank() && p.x.type == p.w.type &&
                     p.x.type == p.y.type && isFloat(p.x.type),
                 shapes + " don't fit together");
  reader.require(
      int(p.strides.size()) == spatial && int(p.dilations.size()) == spatial &&
          int(pads.size()) == 2 * spatial,
      "strides, dilations or pads don't have an entry a dimension of " +
          shapes);
  reader.require(p.x.dim(1) == checkedMultiply(p.w.dim(1), p.group) &&
                     p.w.dim(0) % p.group == 0 && p.y.dim(1) == p.w.dim(0) &&
                     p.y.dim(0) == p.x.dim(0),
                 shapes + " don't fit together with " +
                     std::to_string(p.group) + " groups");
  constexpr int64_t most = int64_t(1) << 31;
  for (int i = 0; i < spatial; ++i) {
    for (int64_t value : {p.strides[i], p.dilations[i], p.w.dim(2 + i)})
      reader.require(value >= 1 && value < most,
                     "a stride, dilation or window is " +
                         std::to_string(value));
    for (int64_t value : {pads[i], pads[spatial + i]})
      reader.require(value >= 0 && value < most,
                     "a pad is " + std::to_string(value));
    int64_t room = p.x.dim(2 + i) + pads[i] + pads[spatial + i] -
                   checkedMultiply(p.dilations[i], p.w.dim(2 + i) - 1) - 1;
    int64_t extent = room < 0 ? 0 : room / p.strides[i] + 1;
    reader.require(p.y.dim(2 + i) == extent,
                   "Y " + toString(p.y) + " has not " + std::to_string(extent) +
                       " elements in dimension " + std::to_string(2 + i));
  }
  pads.resize(size_t(spatial));
  p.pads = pads;
  reader.require(!p.hasBias || (bias.type == p.x.type && bias.rank() == 1 &&
                                bias.dim(0) == p.w.dim(0) && bias.isRowMajor()),
                 "bias is " + toString(bias) + ", " + shapes);
  reader.require(p.x.isRowMajor() && p.w.isRowMajor() && p.y.isRowMajor(),
                 "an operand isn't row-major");
  return p;
}

class Convolution final : public LibraryKernel {
public:
  Convolution(const ConvolutionProblem &problem, const PrepareContext &context);
  bool run(const MtpRank *rank, char *const *buffers,
           std::string &error) override;
  bool keepsConstant(int operand) const override {
    return operand != 1 || !whole || whole->keepsConstant(1);
  }
  int64_t packedBytes() const override {
    return whole ? whole->packedBytes() : 0;
  }
  std::string implementation() const override {
    return "windows, " +
           (whole ? whole->implementation() : std::string("empty"));
  }

private:
  std::unique_ptr<LibraryKernel> product(int64_t rows,
                                         const PrepareContext &context) const;
  void copyWindow(const char *x, int64_t position, char *row) const;

  const ConvolutionProblem p;
  const int threads;
  const int64_t size; ///< bytes of an element
  int64_t positions = 1, window = 1, depth = 0, chunk = 0, imageBytes = 0;
  bool addsBias; ///< not part of the product
  std::unique_ptr<LibraryKernel> whole,
      last; ///< of a whole chunk, of the last one
  std::shared_ptr<Scratch> scratch;
};

Convolution::Convolution(const ConvolutionProblem &problem,
                         const PrepareContext &context)
    : p(problem), threads(context.threads), size(byteSize(problem.x.type)),
      addsBias(problem.hasBias && problem.group > 1),
      scratch(scratchOf(context)) {
  for (int i = 0; i < p.spatial(); ++i) {
    positions = checkedMultiply(positions, p.y.dim(2 + i));
    window = checkedMultiply(window, p.w.dim(2 + i));
  }
  imageBytes = size;
  for (int i = 1; i < p.x.rank(); ++i)
    imageBytes *= p.x.dim(i);
  depth = checkedMultiply(p.w.dim(1), window);
  if (p.y.elements() == 0)
    return;
  int64_t rowBytes = checkedMultiply(checkedMultiply(depth, p.group), size);
  chunk = std::clamp<int64_t>(
      (int64_t(4) << 20) / std::max<int64_t>(1, rowBytes), 96, positions);
  chunk = std::min(chunk, positions);
  // The product's memory is its own: the windows lie in the rank's.
  PackCache packs;
  PrepareContext inner = context;
  inner.scratch = std::make_shared<Scratch>();
  inner.packs = context.packs ? context.packs : &packs;
  whole = product(chunk, inner);
  if (positions % chunk != 0)
    last = product(positions % chunk, inner);
  scratch->reserve(size_t(checkedMultiply(rowBytes, chunk)));
}

std::unique_ptr<LibraryKernel>
Convolution::product(int64_t rows, const PrepareContext &context) const {
  MatmulProblem m;
  int64_t outputs = p.w.dim(0) / p.group;
  m.m = rows, m.k = depth, m.n = outputs;
  DType type = p.x.type;
  m.a = {type, {}, depth, 1};
  m.b = {type, {}, 1, depth};
  m.y = {type, {}, 1, positions};
  if (p.group > 1) {
    m.batch = {p.group};
    m.a.batch = {rows * depth};
    m.b.batch = {outputs * depth};
    m.y.batch = {outputs * positions};
  }
  m.hasBias = p.hasBias && !addsBias;
  m.biasAt = 2;
  m.yAt = 3;
  return prepareTiledMatmul(m, context);
}

/// The window of output `position` over the channels of one group.
void Convolution::copyWindow(const char *x, int64_t position, char *row) const {
  int spatial = p.spatial();
  int64_t first[16], at[16] = {};
  for (int i = spatial; i-- > 0; position /= p.y.dim(2 + i))
    first[i] = position % p.y.dim(2 + i) * p.strides[i] - p.pads[i];
  int64_t width = p.w.dim(-1), extent = p.x.dim(-1),
          step = p.dilations[spatial - 1];
  for (int64_t r = 0; r < depth / width; ++r, row += width * size) {
    int64_t from = at[0]; // channel
    bool outside = false;
    for (int i = 0; i + 1 < spatial; ++i) {
      int64_t coordinate = first[i] + at[i + 1] * p.dilations[i];
      outside |= coordinate < 0 || coordinate >= p.x.dim(2 + i);
      from = from * p.x.dim(2 + i) + coordinate;
    }
    from *= extent;
    int64_t start = first[spatial - 1];
    if (outside) {
      std::memset(row, 0, size_t(width * size));
    } else if (step == 1 && start >= 0 && start + width <= extent) {
      std::memcpy(row, x + (from + start) * size, size_t(width * size));
    } else {
      for (int64_t j = 0; j < width; ++j) {
        int64_t coordinate = start + j * step;
        if (coordinate < 0 || coordinate >= extent)
          std::memset(row + j * size, 0, size_t(size));
        else
          std::memcpy(row + j * size, x + (from + coordinate) * size,
                      size_t(size));
      }
    }
    // Next row of the window: channel, then the leading spatial dimensions.
    int d = spatial - 1;
    while (d > 0 && ++at[d] == p.w.dim(1 + d))
      at[d--] = 0;
    if (d == 0)
      ++at[0];
  }
}

bool Convolution::run(const MtpRank *rank, char *const *buffers,
                      std::string &error) {
  if (p.y.elements() == 0)
    return true;
  char *rows = scratch->data();
  int64_t channelBytes = imageBytes / p.group;
  char *y = buffers[p.hasBias ? 3 : 2];
  for (int64_t image = 0; image < p.x.dim(0); ++image) {
    const char *x = buffers[0] + image * imageBytes;
    char *out = y + image * p.y.dim(1) * positions * size;
    for (int64_t start = 0; start < positions; start += chunk) {
      int64_t count = std::min(chunk, positions - start);
      parallelFor(threads, p.group * ceilDiv(count, 16),
                  [&](int64_t index, int) {
                    int64_t group = index / ceilDiv(count, 16),
                            from = index % ceilDiv(count, 16) * 16;
                    for (int64_t i = from; i < std::min(count, from + 16); ++i)
                      copyWindow(x + group * channelBytes, start + i,
                                 rows + (group * count + i) * depth * size);
                  });
      char *operands[] = {rows, buffers[1], p.hasBias ? buffers[2] : nullptr,
                          out + start * size};
      LibraryKernel &kernel = count == chunk ? *whole : *last;
      if (!kernel.run(rank, operands, error))
        return false;
    }
    for (int64_t o = 0; addsBias && o < p.y.dim(1); ++o) {
      double bias, value;
      loadRow<double>(p.y.type, buffers[2] + o * size, 1, &bias, 1, 1);
      for (int64_t i = o * positions; i < (o + 1) * positions; ++i) {
        loadRow<double>(p.y.type, out + i * size, 1, &value, 1, 1);
        value += bias;
        storeRow<double>(p.y.type, &value, out + i * size, 1, 1);
      }
    }
  }
  return true;
}

} // namespace

std::unique_ptr<LibraryKernel> prepareConvolution(SiteReader &reader) {
  return std::make_unique<Convolution>(readConvolution(reader), reader.context);
}

} // namespace mtp
