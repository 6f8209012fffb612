// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ConvolutionGradient.cpp - cotangents of input and filter -----------===//
//
// As the convolution, a few positions at a time, for each group of channels:
//
//   dW [O, depth] += G [O, positions] windows [positions, depth]
//   windows [positions, depth] = G' [positions, O] W [O, depth], added to dX
//
// Positions and images go in ascending order; a task of the second owns
// channels. So results don't depend on the number of threads.
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/Convolution.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <cstring>

namespace mtp {
namespace {

template <typename T> class ConvolutionGradient final : public LibraryKernel {
public:
  ConvolutionGradient(const ConvolutionGeometry &geometry, bool ofInput,
                      const PrepareContext &context);
  bool run(const MtpRank *rank, char *const *buffers,
           std::string &error) override;
  std::string implementation() const override {
    return "windows, " +
           (whole ? whole->implementation() : std::string("empty"));
  }

private:
  std::unique_ptr<LibraryKernel> product(int64_t positions,
                                         const PrepareContext &context) const;
  void addWindows(const T *rows, int64_t start, int64_t count, T *image) const;
  bool runInput(char *const *buffers, std::string &error);
  bool runFilter(char *const *buffers, std::string &error);

  const ConvolutionGeometry p;
  const bool ofInput;
  const int threads;
  int64_t chunk = 0;
  std::unique_ptr<LibraryKernel> whole, last;
  std::shared_ptr<Scratch> scratch;
};

template <typename T>
ConvolutionGradient<T>::ConvolutionGradient(const ConvolutionGeometry &geometry,
                                            bool ofInput,
                                            const PrepareContext &context)
    : p(geometry), ofInput(ofInput), threads(context.threads),
      scratch(scratchOf(context)) {
  if (p.y.elements() == 0)
    return;
  chunk = p.chunkOf(sizeof(T));
  // The product's memory is its own: the windows lie in the rank's.
  PrepareContext inner;
  inner.threads = threads;
  inner.scratch = std::make_shared<Scratch>();
  whole = product(chunk, inner);
  if (p.positions % chunk != 0)
    last = product(p.positions % chunk, inner);
  scratch->reserve(size_t(
      checkedMultiply(checkedMultiply(p.group * p.depth, chunk), sizeof(T))));
}

/// For each group. Operands: G, then W (windows), then the result.
template <typename T>
std::unique_ptr<LibraryKernel>
ConvolutionGradient<T>::product(int64_t positions,
                                const PrepareContext &context) const {
  MatmulProblem m;
  DType type = p.x.type;
  MatmulProblem::View filter{type, {}, p.depth, 1},
      windows{type, {}, p.depth, 1};
  int64_t filterStep = p.outputs * p.depth, windowStep = positions * p.depth;
  m.n = p.depth;
  if (ofInput) {
    m.m = positions, m.k = p.outputs;
    m.a = {type, {}, 1, p.positions};
    m.b = filter;
    m.y = windows;
  } else {
    m.m = p.outputs, m.k = positions;
    m.a = {type, {}, p.positions, 1};
    m.b = windows;
    m.y = filter;
    m.hasResidual = true; // the sum so far
    m.residual = filter;
    m.residualAt = 2;
  }
  m.yAt = 2;
  if (p.group > 1) {
    m.batch = {p.group};
    m.a.batch = {p.outputs * p.positions};
    m.b.batch = {ofInput ? filterStep : windowStep};
    m.y.batch = {ofInput ? windowStep : filterStep};
    if (m.hasResidual)
      m.residual.batch = m.y.batch;
  }
  return prepareTiledMatmul(m, context);
}

template <typename T>
void ConvolutionGradient<T>::addWindows(const T *rows, int64_t start,
                                        int64_t count, T *image) const {
  int64_t width = p.w.dim(-1), extent = p.x.dim(-1), step = p.dilations.back();
  parallelFor(threads, p.group * p.channels(), [&](int64_t index, int) {
    int64_t group = index / p.channels(), channel = index % p.channels();
    T *channels = image + group * p.groupImage;
    for (int64_t i = 0; i < count; ++i) {
      const T *window = rows + (group * count + i) * p.depth;
      p.forEachRow(start + i, channel, channel + 1,
                   [&](int64_t at, int64_t to, int64_t first) {
                     for (int64_t j = 0; to >= 0 && j < width; ++j) {
                       int64_t coordinate = first + j * step;
                       if (coordinate >= 0 && coordinate < extent)
                         channels[to + coordinate] += window[at + j];
                     }
                   });
    }
  });
}

template <typename T>
bool ConvolutionGradient<T>::runInput(char *const *buffers,
                                      std::string &error) {
  T *rows = reinterpret_cast<T *>(scratch->data());
  for (int64_t image = 0; image < p.x.dim(0); ++image) {
    T *to = reinterpret_cast<T *>(buffers[2]) + image * p.image;
    T *g = reinterpret_cast<T *>(buffers[1]) + image * p.y.dim(1) * p.positions;
    std::memset(to, 0, size_t(p.image) * sizeof(T));
    for (int64_t start = 0; start < p.positions; start += chunk) {
      int64_t count = std::min(chunk, p.positions - start);
      char *operands[] = {reinterpret_cast<char *>(g + start), buffers[0],
                          reinterpret_cast<char *>(rows)};
      LibraryKernel &kernel = count == chunk ? *whole : *last;
      if (!kernel.run(nullptr, operands, error))
        return false;
      addWindows(rows, start, count, to);
    }
  }
  return true;
}

template <typename T>
bool ConvolutionGradient<T>::runFilter(char *const *buffers,
                                       std::string &error) {
  T *rows = reinterpret_cast<T *>(scratch->data());
  std::memset(buffers[2], 0, size_t(p.w.elements()) * sizeof(T));
  for (int64_t image = 0; image < p.x.dim(0); ++image) {
    const T *x = reinterpret_cast<T *>(buffers[0]) + image * p.image;
    T *g = reinterpret_cast<T *>(buffers[1]) + image * p.y.dim(1) * p.positions;
    for (int64_t start = 0; start < p.positions; start += chunk) {
      int64_t count = std::min(chunk, p.positions - start);
      parallelFor(threads, p.group * count, [&](int64_t index, int) {
        int64_t group = index / count, i = index % count;
        p.copyWindow(reinterpret_cast<const char *>(x + group * p.groupImage),
                     start + i,
                     reinterpret_cast<char *>(rows + index * p.depth));
      });
      char *operands[] = {reinterpret_cast<char *>(g + start),
                          reinterpret_cast<char *>(rows), buffers[2]};
      LibraryKernel &kernel = count == chunk ? *whole : *last;
      if (!kernel.run(nullptr, operands, error))
        return false;
    }
  }
  return true;
}

template <typename T>
bool ConvolutionGradient<T>::run(const MtpRank *, char *const *buffers,
                                 std::string &error) {
  const Tensor &result = ofInput ? p.x : p.w;
  if (p.y.elements() == 0) {
    if (result.elements() > 0)
      std::memset(buffers[2], 0, size_t(result.elements()) * sizeof(T));
    return true;
  }
  return ofInput ? runInput(buffers, error) : runFilter(buffers, error);
}

std::unique_ptr<LibraryKernel> prepareGradient(SiteReader &reader,
                                               bool ofInput) {
  ConvolutionGeometry p;
  (ofInput ? p.w : p.x) = reader.next(ofInput ? "W" : "X");
  p.y = reader.next("G");
  (ofInput ? p.x : p.w) = reader.next(ofInput ? "dX" : "dW");
  p.read(reader);
  reader.finish();
  switch (p.x.type) {
  case DType::F32:
    return std::make_unique<ConvolutionGradient<float>>(p, ofInput,
                                                        reader.context);
  case DType::F64:
    return std::make_unique<ConvolutionGradient<double>>(p, ofInput,
                                                         reader.context);
  default:
    reader.require(false, toString(p.x) + " is not of type f32 or f64");
    return nullptr;
  }
}

} // namespace

std::unique_ptr<LibraryKernel>
prepareConvolutionInputGradient(SiteReader &reader) {
  return prepareGradient(reader, true);
}
std::unique_ptr<LibraryKernel>
prepareConvolutionFilterGradient(SiteReader &reader) {
  return prepareGradient(reader, false);
}

} // namespace mtp
