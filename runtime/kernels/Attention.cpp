// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Attention.cpp - softmax(Q K') V without a stored score matrix ------===//
//
// A task takes a block of queries of one key head; the queries of all heads
// that read it count as one list (head in group major). Queries lie along the
// lanes of vectors, one *panel* of them at a time:
//
//      Q' [D, lanes]          S' = K Q' [keys, lanes]        O' = V' P' [Dv,
//      lanes]
//
// so that K and V are read where they lie, softmax runs down columns, and its
// maximum and sum are vectors. Keys come in blocks; each block rescales O'.
// Sums run over keys in ascending order: results don't depend on blocks of
// queries or threads.
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/Convert.h"
#include "runtime/kernels/KernelSupport.h"
#include "runtime/kernels/MicroKernels.h"
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace mtp {
namespace {

struct AttentionProblem {
  Tensor q, k, v, mask, y,
      logsumexp; ///< mask broadcast: strides of [B, H, S, T]
  int64_t batch, heads, keyHeads, group, queries, keys, depth, valueDepth;
  bool hasMask = false, hasLogsumexp = false, causal = false,
       roundToBf16 = false;
  bool zeroMaskedRows = false, uniformMaskedRows = false;
  double scale = 1, softcap = 0, maskValue = 0;
  int64_t offset = 0, offsetRankValue = -1, windowLeft = -1, windowRight = -1;
  int maskAt = -1, startAt = -1, yAt = -1;
  DType startType = DType::I64;
};

AttentionProblem readAttention(SiteReader &reader) {
  AttentionProblem p;
  p.q = reader.next("Q");
  p.k = reader.next("K");
  p.v = reader.next("V");
  reader.require(p.q.rank() == 4 && p.k.rank() == 4 && p.v.rank() == 4,
                 "Q, K and V need rank 4: " + toString(p.q) + ", " +
                     toString(p.k) + ", " + toString(p.v));
  p.batch = p.q.dim(0), p.heads = p.q.dim(1), p.queries = p.q.dim(2),
  p.depth = p.q.dim(3);
  p.keyHeads = p.k.dim(1), p.keys = p.k.dim(2), p.valueDepth = p.v.dim(3);
  std::string shapes =
      "Q " + toString(p.q) + ", K " + toString(p.k) + ", V " + toString(p.v);
  reader.require(p.k.dim(0) == p.batch && p.v.dim(0) == p.batch &&
                     p.k.dim(3) == p.depth && p.v.dim(1) == p.keyHeads &&
                     p.v.dim(2) == p.keys,
                 shapes + " don't fit together");
  reader.require(p.keyHeads == 0 ? p.heads == 0 : p.heads % p.keyHeads == 0,
                 shapes + ": " + std::to_string(p.heads) +
                     " heads don't divide over " + std::to_string(p.keyHeads) +
                     " key heads");
  p.group = p.keyHeads ? p.heads / p.keyHeads : 1;
  reader.require(p.q.type == p.k.type && p.q.type == p.v.type &&
                     isFloat(p.q.type),
                 shapes + " need one floating point type");

  p.scale = reader.number("scale", std::nullopt);
  p.softcap = reader.number("softcap", 0);
  reader.require(p.softcap >= 0, "softcap is negative");
  p.hasMask = reader.flag("mask", false);
  p.maskValue = reader.number("maskValue", -INFINITY);
  p.causal = reader.flag("causal", false);
  constexpr int64_t most = int64_t(1) << 40;
  p.offset = reader.integer("causalOffset", 0, -most, most);
  p.offsetRankValue = reader.integer("causalOffsetRankValue", -1, -1,
                                     reader.context.rankValueCount - 1);
  p.windowLeft = reader.integer("windowLeft", -1, -1, most);
  p.windowRight = reader.integer("windowRight", -1, -1, most);
  std::string maskedRow =
      reader.choice("maskedRow", "softmax", {"softmax", "zero", "uniform"});
  p.zeroMaskedRows = maskedRow == "zero";
  p.uniformMaskedRows = maskedRow == "uniform";
  p.hasLogsumexp = reader.flag("logsumexp", false);
  p.roundToBf16 = reader.choice("compute", "", {"bf16"}) == "bf16";
  reader.require(!p.roundToBf16 || p.q.type != DType::F64,
                 "compute bf16 isn't for f64");

  std::vector<int64_t> full = {p.batch, p.heads, p.queries, p.keys};
  if (p.hasMask) {
    p.maskAt = reader.position();
    Tensor mask = reader.next("mask");
    reader.require(mask.type == p.q.type || mask.type == DType::Bool,
                   "mask is " + toString(mask) + ", Q " + toString(p.q));
    reader.require(mask.rank() <= 4, "mask has more than 4 dimensions");
    p.mask = {mask.type, full, std::vector<int64_t>(4, 0)};
    for (int i = 1; i <= mask.rank(); ++i) {
      reader.require(mask.dim(-i) == 1 || mask.dim(-i) == full[4 - i],
                     "mask " + toString(mask) + " doesn't broadcast to " +
                         toString(p.mask));
      p.mask.strides[4 - i] = mask.dim(-i) == 1 ? 0 : mask.stride(-i);
    }
  }
  if (reader.flag("queryStart", false)) {
    p.startAt = reader.position();
    Tensor start = reader.next("queryStart");
    p.startType = start.type;
    reader.require(start.elements() == 1 &&
                       (start.type == DType::I64 || start.type == DType::I32),
                   "queryStart is " + toString(start) + ", not one i64 or i32");
  }
  p.yAt = reader.position();
  p.y = reader.next("Y");
  std::vector<int64_t> expected = {p.batch, p.heads, p.queries, p.valueDepth};
  reader.require(p.y.type == p.q.type && p.y.shape == expected,
                 "Y is " + toString(p.y) + ", " + shapes);
  if (p.hasLogsumexp) {
    p.logsumexp = reader.next("logsumexp");
    expected.pop_back();
    reader.require(p.logsumexp.shape == expected &&
                       p.logsumexp.type ==
                           (p.q.type == DType::F64 ? DType::F64 : DType::F32),
                   "logsumexp is " + toString(p.logsumexp) + ", Y " +
                       toString(p.y));
  }
  reader.finish();
  return p;
}

template <typename T> class Attention final : public LibraryKernel {
public:
  Attention(const AttentionProblem &problem, const PrepareContext &context);
  bool run(const MtpRank *rank, char *const *buffers,
           std::string &error) override;
  std::string implementation() const override {
    return std::string("fused attention ") + micro.name;
  }

private:
  /// One task's memory and place.
  struct Work {
    char *const *buffers;
    int64_t offset; ///< of causal and window
    int64_t batch, keyHead;
    int64_t first; ///< row: head in group * queries + query
    int64_t count; ///< rows
    T *q, *scores, *o, *maximum, *sum, *correction, *k, *v, *row;
    int64_t *left, *right; ///< visible keys of each row, inclusive
    int64_t *maskOffset;   ///< of each row
  };
  struct Block { ///< of keys
    int64_t first, count;
    const T *k, *v;
    int64_t kStride, vStride;
  };

  size_t layOut(Work &work, char *memory) const;
  void task(int64_t index, Work &work) const;
  void loadQueries(Work &work) const;
  void loadKeys(Work &work, Block &block) const;
  void visit(Work &work, const Block &block, int64_t panel) const;
  void applyMask(Work &work, const Block &block, int64_t panel) const;
  void hideKeys(Work &work, const Block &block, int64_t panel) const;
  void meanOfValues(Work &work) const;
  void storeResults(Work &work) const;

  /// Element offset of row `row` in a tensor of [B, H, S, ...].
  int64_t rowOffset(const Tensor &tensor, const Work &work, int64_t row) const {
    int64_t head = work.keyHead * p.group + row / p.queries;
    return work.batch * tensor.strides[0] + head * tensor.strides[1] +
           row % p.queries * tensor.strides[2];
  }
  int64_t lanesOf(const Work &work, int64_t panel) const {
    return std::min<int64_t>(lanes, work.count - panel * lanes);
  }

  const AttentionProblem p;
  const MicroKernels<T> &micro = microKernels<T>();
  const int64_t lanes = micro.columns;
  const int threads;
  const DType compute = std::is_same_v<T, double> ? DType::F64 : DType::F32;
  int64_t panels, keyBlock, tasksPerHead;
  bool convertsK, convertsV;
  std::shared_ptr<Scratch> scratch;
  size_t taskBytes;
};

template <typename T>
Attention<T>::Attention(const AttentionProblem &problem,
                        const PrepareContext &context)
    : p(problem), threads(context.threads), scratch(scratchOf(context)) {
  int64_t rows = p.group * p.queries;
  panels = rows > 4 * lanes ? 2 : 1;
  tasksPerHead = ceilDiv(rows, panels * lanes);
  // About 96 keys, in whole tiles: their scores and V stay in the first cache.
  int64_t blocks = std::max<int64_t>(1, ceilDiv(p.keys, 96));
  keyBlock =
      std::max<int64_t>(1, ceilDiv(ceilDiv(p.keys, blocks), micro.rows)) *
      micro.rows;
  convertsK = p.k.type != compute || p.roundToBf16 || p.k.strides[3] != 1;
  convertsV = p.v.type != compute || p.roundToBf16 || p.v.strides[3] != 1;
  Work work;
  taskBytes = layOut(work, nullptr);
  scratch->reserve(size_t(checkedMultiply(int64_t(taskBytes), threads)));
}

/// Places the arrays of `work` in `memory`; returns the bytes they take.
template <typename T>
size_t Attention<T>::layOut(Work &work, char *memory) const {
  size_t at = 0;
  auto place = [&](auto *&array, int64_t count) {
    array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(
        memory ? memory + at : nullptr);
    at += alignUp(size_t(checkedMultiply(count, sizeof(*array))));
  };
  int64_t rows = panels * lanes;
  place(work.q, rows * p.depth);
  place(work.o, rows * p.valueDepth);
  place(work.scores, keyBlock * lanes);
  place(work.maximum, rows);
  place(work.sum, rows);
  place(work.correction, lanes);
  place(work.k, convertsK ? checkedMultiply(keyBlock, p.depth) : 0);
  place(work.v, convertsV ? checkedMultiply(keyBlock, p.valueDepth) : 0);
  place(work.row, std::max(4 * keyBlock, p.valueDepth));
  place(work.left, rows);
  place(work.right, rows);
  place(work.maskOffset, rows);
  return at;
}

template <typename T> void Attention<T>::loadQueries(Work &work) const {
  std::memset(work.q, 0, sizeof(T) * size_t(panels * lanes * p.depth));
  int64_t size = byteSize(p.q.type);
  for (int64_t i = 0; i < work.count; ++i) {
    T *to = work.q + i / lanes * lanes * p.depth + i % lanes;
    const char *from =
        work.buffers[0] + rowOffset(p.q, work, work.first + i) * size;
    loadRow<T>(p.q.type, from, p.q.strides[3], to, lanes, p.depth,
               p.roundToBf16);
    if (p.hasMask)
      work.maskOffset[i] = rowOffset(p.mask, work, work.first + i);

    int64_t diagonal = (work.first + i) % p.queries + work.offset;
    work.left[i] = p.windowLeft < 0 ? 0 : diagonal - p.windowLeft;
    work.right[i] = p.keys - 1;
    if (p.causal)
      work.right[i] = std::min(work.right[i], diagonal);
    if (p.windowRight >= 0)
      work.right[i] = std::min(work.right[i], diagonal + p.windowRight);
  }
  for (int64_t i = 0; i < panels * lanes * p.depth; ++i)
    work.q[i] *= T(p.scale);
  for (int64_t i = 0; i < panels * lanes; ++i) {
    work.maximum[i] = -std::numeric_limits<T>::infinity();
    work.sum[i] = 0;
  }
  std::memset(work.o, 0, sizeof(T) * size_t(panels * lanes * p.valueDepth));
}

template <typename T>
void Attention<T>::loadKeys(Work &work, Block &block) const {
  auto load = [&](const Tensor &tensor, const char *buffer, bool converts,
                  T *copy, int64_t depth, const T *&rows, int64_t &stride) {
    int64_t size = byteSize(tensor.type);
    const char *from = buffer + (work.batch * tensor.strides[0] +
                                 work.keyHead * tensor.strides[1] +
                                 block.first * tensor.strides[2]) *
                                    size;
    rows = converts ? copy : reinterpret_cast<const T *>(from);
    stride = converts ? depth : tensor.strides[2];
    for (int64_t j = 0; converts && j < block.count; ++j)
      loadRow<T>(tensor.type, from + j * tensor.strides[2] * size,
                 tensor.strides[3], copy + j * depth, 1, depth, p.roundToBf16);
  };
  load(p.k, work.buffers[1], convertsK, work.k, p.depth, block.k,
       block.kStride);
  load(p.v, work.buffers[2], convertsV, work.v, p.valueDepth, block.v,
       block.vStride);
}

/// Adds the mask to the scores, or replaces scores by maskValue. Lanes that
/// read the same row of the mask are served together, others in fours.
template <typename T>
void Attention<T>::applyMask(Work &work, const Block &block,
                             int64_t panel) const {
  bool boolean = p.mask.type == DType::Bool;
  bool direct = p.mask.type == compute && p.mask.strides[3] == 1;
  int64_t size = byteSize(p.mask.type), stride = p.mask.strides[3];
  const char *base = work.buffers[p.maskAt] + block.first * stride * size;
  const int64_t *offsets = work.maskOffset + panel * lanes;
  int64_t count = lanesOf(work, panel);
  T replacement = T(p.maskValue);
  auto row = [&](int64_t lane, T *copy) {
    const char *from = base + offsets[lane] * size;
    if (direct)
      return reinterpret_cast<const T *>(from);
    loadRow<T>(p.mask.type, from, stride, copy, 1, block.count);
    return static_cast<const T *>(copy);
  };
  auto apply = [&](T &score, T mask) {
    score = boolean ? (mask == 0 ? replacement : score) : score + mask;
  };
  if (std::all_of(offsets, offsets + count,
                  [&](int64_t offset) { return offset == offsets[0]; })) {
    const T *mask = row(0, work.row);
    for (int64_t j = 0; j < block.count; ++j)
      for (int64_t i = 0; i < lanes; ++i)
        apply(work.scores[j * lanes + i], mask[j]);
    return;
  }
  int64_t lane = 0;
  for (; lane + 4 <= count; lane += 4) {
    const T *mask[4];
    for (int64_t i = 0; i < 4; ++i)
      mask[i] = row(lane + i, work.row + i * keyBlock);
    T *scores = work.scores + lane;
    for (int64_t j = 0; j < block.count; ++j, scores += lanes) {
      apply(scores[0], mask[0][j]);
      apply(scores[1], mask[1][j]);
      apply(scores[2], mask[2][j]);
      apply(scores[3], mask[3][j]);
    }
  }
  for (; lane < count; ++lane) {
    const T *mask = row(lane, work.row);
    for (int64_t j = 0; j < block.count; ++j)
      apply(work.scores[j * lanes + lane], mask[j]);
  }
}

/// Scores of keys that causal or window hides become -inf.
template <typename T>
void Attention<T>::hideKeys(Work &work, const Block &block,
                            int64_t panel) const {
  const T infinity = std::numeric_limits<T>::infinity();
  for (int64_t lane = 0; lane < lanesOf(work, panel); ++lane) {
    int64_t left = work.left[panel * lanes + lane] - block.first;
    int64_t right = work.right[panel * lanes + lane] - block.first;
    T *scores = work.scores + lane;
    for (int64_t j = 0; j < std::min(left, block.count); ++j)
      scores[j * lanes] = -infinity;
    for (int64_t j = std::max<int64_t>(0, right + 1); j < block.count; ++j)
      scores[j * lanes] = -infinity;
  }
}

/// Takes a block of keys into the softmax and the result of one panel.
template <typename T>
void Attention<T>::visit(Work &work, const Block &block, int64_t panel) const {
  const T *q = work.q + panel * lanes * p.depth;
  T *o = work.o + panel * lanes * p.valueDepth;
  for (int64_t j = 0; j < block.count; j += micro.rows)
    micro.unitColumn(int(std::min<int64_t>(micro.rows, block.count - j)),
                     p.depth, block.k + j * block.kStride, block.kStride, q,
                     work.scores + j * lanes, lanes, false);
  if (p.softcap > 0)
    micro.softcap(work.scores, block.count * lanes, T(p.softcap));
  if (p.hasMask)
    applyMask(work, block, panel);
  if (p.causal || p.windowLeft >= 0 || p.windowRight >= 0)
    hideKeys(work, block, panel);
  if (micro.softmaxStep(work.scores, block.count, work.maximum + panel * lanes,
                        work.sum + panel * lanes, work.correction))
    micro.scaleRows(o, p.valueDepth, work.correction);
  if (p.roundToBf16)
    loadRow<T>(DType::F32, reinterpret_cast<const char *>(work.scores), 1,
               work.scores, 1, block.count * lanes, true);
  for (int64_t d = 0; d < p.valueDepth; d += micro.rows)
    micro.unitRow(int(std::min<int64_t>(micro.rows, p.valueDepth - d)),
                  block.count, block.v + d, block.vStride, work.scores,
                  o + d * lanes, lanes, true);
}

/// The mean of all values of the key head into `work.row`: what a row of equal
/// finite scores gives.
template <typename T> void Attention<T>::meanOfValues(Work &work) const {
  const char *v = work.buffers[2] + (work.batch * p.v.strides[0] +
                                     work.keyHead * p.v.strides[1]) *
                                        byteSize(p.v.type);
  std::vector<double> total(p.valueDepth, 0);
  for (int64_t j = 0; j < p.keys; ++j) {
    loadRow<T>(p.v.type, v + j * p.v.strides[2] * byteSize(p.v.type),
               p.v.strides[3], work.row, 1, p.valueDepth, p.roundToBf16);
    for (int64_t d = 0; d < p.valueDepth; ++d)
      total[d] += work.row[d];
  }
  for (int64_t d = 0; d < p.valueDepth; ++d)
    work.row[d] = T(total[d] / double(p.keys));
}

template <typename T> void Attention<T>::storeResults(Work &work) const {
  int64_t size = byteSize(p.y.type);
  for (int64_t i = 0; i < work.count; ++i) {
    const T *o = work.o + i / lanes * lanes * p.valueDepth + i % lanes;
    T sum = work.sum[i];
    bool masked = sum == 0;
    T factor = masked ? T(0) : T(1) / sum;
    if (masked && p.keys > 0 && !p.zeroMaskedRows)
      factor = std::numeric_limits<T>::quiet_NaN();
    for (int64_t d = 0; d < p.valueDepth; ++d)
      work.row[d] = o[d * lanes] * factor;
    if (masked && (p.keys == 0 || p.zeroMaskedRows))
      std::fill_n(work.row, p.valueDepth, T(0)); // hidden values may be NaN
    else if (masked && p.uniformMaskedRows)
      meanOfValues(work);
    char *y = work.buffers[p.yAt] + rowOffset(p.y, work, work.first + i) * size;
    storeRow<T>(p.y.type, work.row, y, p.y.strides[3], p.valueDepth);
    if (p.hasLogsumexp)
      reinterpret_cast<T *>(work.buffers[p.yAt + 1])[rowOffset(
          p.logsumexp, work, work.first + i)] =
          masked ? -std::numeric_limits<T>::infinity()
                 : work.maximum[i] + std::log(sum);
  }
}

template <typename T> void Attention<T>::task(int64_t index, Work &work) const {
  int64_t head = index / tasksPerHead;
  work.batch = head / p.keyHeads;
  work.keyHead = head % p.keyHeads;
  work.first = index % tasksPerHead * panels * lanes;
  work.count = std::min(panels * lanes, p.group * p.queries - work.first);
  loadQueries(work);

  int64_t used = ceilDiv(work.count, lanes), left[2] = {}, right[2] = {};
  for (int64_t panel = 0; panel < used; ++panel) {
    const int64_t *from = work.left + panel * lanes,
                  *to = work.right + panel * lanes;
    left[panel] = *std::min_element(from, from + lanesOf(work, panel));
    right[panel] = *std::max_element(to, to + lanesOf(work, panel));
  }
  for (int64_t first = 0; first < p.keys; first += keyBlock) {
    Block block{first, std::min(keyBlock, p.keys - first), nullptr, nullptr, 0,
                0};
    for (int64_t panel = 0; panel < used; ++panel) {
      // What no query of the panel sees is left out.
      int64_t from = std::max(first, left[panel]);
      int64_t to = std::min(first + block.count, right[panel] + 1);
      if (from >= to)
        continue;
      if (!block.k)
        loadKeys(work, block);
      Block seen = block;
      seen.first = from;
      seen.count = to - from;
      seen.k += (from - first) * block.kStride;
      seen.v += (from - first) * block.vStride;
      visit(work, seen, panel);
    }
  }
  storeResults(work);
}

template <typename T>
bool Attention<T>::run(const MtpRank *rank, char *const *buffers,
                       std::string &) {
  if (p.batch == 0 || p.heads == 0 || p.queries == 0)
    return true;
  int64_t offset = p.offset;
  if (p.offsetRankValue >= 0)
    offset += rank->rankValues[p.offsetRankValue];
  if (p.startAt >= 0)
    offset += p.startType == DType::I64
                  ? *reinterpret_cast<const int64_t *>(buffers[p.startAt])
                  : *reinterpret_cast<const int32_t *>(buffers[p.startAt]);
  // Far beyond any tensor, so that sums below can't overflow.
  constexpr int64_t most = int64_t(1) << 60;
  offset = std::clamp(offset, -most, most);
  char *memory = scratch->data();
  parallelFor(threads, p.batch * p.keyHeads * tasksPerHead,
              [&](int64_t index, int thread) {
                Work work;
                layOut(work, memory + size_t(thread) * taskBytes);
                work.buffers = buffers;
                work.offset = offset;
                task(index, work);
              });
  return true;
}

} // namespace

std::unique_ptr<LibraryKernel> prepareAttention(SiteReader &reader) {
  AttentionProblem problem = readAttention(reader);
  if (problem.q.type == DType::F64)
    return std::make_unique<Attention<double>>(problem, reader.context);
  return std::make_unique<Attention<float>>(problem, reader.context);
}

} // namespace mtp
