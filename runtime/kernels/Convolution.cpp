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
#include "runtime/kernels/Convolution.h"
#include "runtime/kernels/Convert.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <cstring>

namespace mtp {

void ConvolutionGeometry::read(SiteReader &reader) {
  strides = reader.integers("strides");
  dilations = reader.integers("dilations");
  pads = reader.integers("pads");
  group = reader.integer("group", 1, 1, INT64_MAX);
  std::string shapes =
      "X " + toString(x) + ", W " + toString(w) + ", Y " + toString(y);
  int dims = spatial();
  reader.require(dims >= 1 && w.rank() == x.rank() && y.rank() == x.rank() &&
                     x.type == w.type && x.type == y.type && isFloat(x.type),
                 shapes + " don't fit together");
  reader.require(
      int(strides.size()) == dims && int(dilations.size()) == dims &&
          int(pads.size()) == 2 * dims,
      "strides, dilations or pads don't have an entry a dimension of " +
          shapes);
  reader.require(
      x.dim(1) == checkedMultiply(w.dim(1), group) && w.dim(0) % group == 0 &&
          y.dim(1) == w.dim(0) && y.dim(0) == x.dim(0),
      shapes + " don't fit together with " + std::to_string(group) + " groups");
  constexpr int64_t most = int64_t(1) << 31;
  int64_t window = 1;
  for (int i = 0; i < dims; ++i) {
    for (int64_t value : {strides[i], dilations[i], w.dim(2 + i)})
      reader.require(value >= 1 && value < most,
                     "a stride, dilation or window is " +
                         std::to_string(value));
    for (int64_t value : {pads[i], pads[dims + i]})
      reader.require(value >= 0 && value < most,
                     "a pad is " + std::to_string(value));
    int64_t room = x.dim(2 + i) + pads[i] + pads[dims + i] -
                   checkedMultiply(dilations[i], w.dim(2 + i) - 1) - 1;
    int64_t extent = room < 0 ? 0 : room / strides[i] + 1;
    reader.require(y.dim(2 + i) == extent,
                   "Y " + toString(y) + " has not " + std::to_string(extent) +
                       " elements in dimension " + std::to_string(2 + i));
    positions = checkedMultiply(positions, y.dim(2 + i));
    window = checkedMultiply(window, w.dim(2 + i));
  }
  pads.resize(size_t(dims));
  reader.require(x.isRowMajor() && w.isRowMajor() && y.isRowMajor(),
                 "an operand isn't row-major");
  depth = checkedMultiply(w.dim(1), window);
  for (int i = 1; i < x.rank(); ++i)
    image *= x.dim(i);
  groupImage = image / group;
  outputs = w.dim(0) / group;
}

void ConvolutionGeometry::copyWindow(const char *channelBytes, int64_t position,
                                     char *to) const {
  int64_t size = byteSize(x.type), width = w.dim(-1), extent = x.dim(-1),
          step = dilations.back();
  forEachRow(position, 0, channels(),
             [&](int64_t at, int64_t from, int64_t start) {
               char *row = to + at * size;
               if (from < 0) {
                 std::memset(row, 0, size_t(width * size));
               } else if (step == 1 && start >= 0 && start + width <= extent) {
                 std::memcpy(row, channelBytes + (from + start) * size,
                             size_t(width * size));
               } else {
                 for (int64_t j = 0; j < width; ++j) {
                   int64_t coordinate = start + j * step;
                   if (coordinate < 0 || coordinate >= extent)
                     std::memset(row + j * size, 0, size_t(size));
                   else
                     std::memcpy(row + j * size,
                                 channelBytes + (from + coordinate) * size,
                                 size_t(size));
                 }
               }
             });
}

int64_t ConvolutionGeometry::chunkOf(int64_t elementBytes) const {
  int64_t rowBytes =
      checkedMultiply(checkedMultiply(depth, group), elementBytes);
  int64_t fits = (int64_t(4) << 20) / std::max<int64_t>(1, rowBytes);
  return std::min(std::max<int64_t>(fits, 96), positions);
}

namespace {

struct ConvolutionProblem : ConvolutionGeometry {
  bool hasBias = false;
};

ConvolutionProblem readConvolution(SiteReader &reader) {
  ConvolutionProblem p;
  p.x = reader.next("X");
  p.w = reader.next("W");
  p.hasBias = reader.flag("bias", false);
  Tensor bias = p.hasBias ? reader.next("bias") : Tensor{};
  p.y = reader.next("Y");
  p.read(reader);
  reader.finish();
  reader.require(!p.hasBias || (bias.type == p.x.type && bias.rank() == 1 &&
                                bias.dim(0) == p.w.dim(0) && bias.isRowMajor()),
                 "bias is " + toString(bias) + ", X " + toString(p.x) + ", W " +
                     toString(p.w));
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

  const ConvolutionProblem p;
  const int threads;
  const int64_t size; ///< bytes of an element
  int64_t chunk = 0;  ///< positions
  bool addsBias;      ///< not part of the product
  std::unique_ptr<LibraryKernel> whole,
      last; ///< of a whole chunk, of the last one
  std::shared_ptr<Scratch> scratch;
};

Convolution::Convolution(const ConvolutionProblem &problem,
                         const PrepareContext &context)
    : p(problem), threads(context.threads), size(byteSize(problem.x.type)),
      addsBias(problem.hasBias && problem.group > 1),
      scratch(scratchOf(context)) {
  if (p.y.elements() == 0)
    return;
  chunk = p.chunkOf(size);
  // The product's memory is its own: the windows lie in the rank's.
  PackCache packs;
  PrepareContext inner = context;
  inner.scratch = std::make_shared<Scratch>();
  inner.packs = context.packs ? context.packs : &packs;
  whole = product(chunk, inner);
  if (p.positions % chunk != 0)
    last = product(p.positions % chunk, inner);
  scratch->reserve(size_t(checkedMultiply(p.group * p.depth * size, chunk)));
}

std::unique_ptr<LibraryKernel>
Convolution::product(int64_t rows, const PrepareContext &context) const {
  MatmulProblem m;
  m.m = rows, m.k = p.depth, m.n = p.outputs;
  DType type = p.x.type;
  m.a = {type, {}, p.depth, 1};
  m.b = {type, {}, 1, p.depth};
  m.y = {type, {}, 1, p.positions};
  if (p.group > 1) {
    m.batch = {p.group};
    m.a.batch = {rows * p.depth};
    m.b.batch = {p.outputs * p.depth};
    m.y.batch = {p.outputs * p.positions};
  }
  m.hasBias = p.hasBias && !addsBias;
  m.biasAt = 2;
  m.yAt = 3;
  return prepareTiledMatmul(m, context);
}

bool Convolution::run(const MtpRank *rank, char *const *buffers,
                      std::string &error) {
  if (p.y.elements() == 0)
    return true;
  char *rows = scratch->data();
  char *y = buffers[p.hasBias ? 3 : 2];
  for (int64_t image = 0; image < p.x.dim(0); ++image) {
    const char *x = buffers[0] + image * p.image * size;
    char *out = y + image * p.y.dim(1) * p.positions * size;
    for (int64_t start = 0; start < p.positions; start += chunk) {
      int64_t count = std::min(chunk, p.positions - start);
      parallelFor(threads, p.group * ceilDiv(count, 16),
                  [&](int64_t index, int) {
                    int64_t group = index / ceilDiv(count, 16),
                            from = index % ceilDiv(count, 16) * 16;
                    for (int64_t i = from; i < std::min(count, from + 16); ++i)
                      p.copyWindow(x + group * p.groupImage * size, start + i,
                                   rows + (group * count + i) * p.depth * size);
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
      for (int64_t i = o * p.positions; i < (o + 1) * p.positions; ++i) {
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
