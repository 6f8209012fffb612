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
#include "runtime/kernels/Attention.h"
#include "runtime/kernels/Convert.h"
#include "runtime/kernels/MicroKernels.h"
#include "runtime/kernels/Parallel.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace mtp {
namespace {

AttentionProblem readAttention(SiteReader &reader) {
  AttentionProblem p = readAttentionInputs(reader);
  p.hasLogsumexp = reader.flag("logsumexp", false);
  std::string shapes =
      "Q " + toString(p.q) + ", K " + toString(p.k) + ", V " + toString(p.v);
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
  void meanOfValues(Work &work) const;
  void storeResults(Work &work) const;

  int64_t rowOffset(const Tensor &tensor, const Work &work, int64_t row) const {
    return p.rowOffset(tensor, work.batch, work.keyHead, row);
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

    work.left[i] = p.firstKey(work.first + i, work.offset);
    work.right[i] = p.lastKey(work.first + i, work.offset);
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
  ScorePanel<T> scores{p,
                       lanes,
                       lanesOf(work, panel),
                       block.first,
                       block.count,
                       work.scores,
                       work.maskOffset + panel * lanes,
                       work.left + panel * lanes,
                       work.right + panel * lanes,
                       work.row,
                       keyBlock};
  if (p.hasMask)
    scores.applyMask(work.buffers[p.maskAt]);
  if (p.causal || p.windowLeft >= 0 || p.windowRight >= 0)
    scores.hideKeys();
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
  int64_t offset = p.offsetOf(rank, buffers);
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
