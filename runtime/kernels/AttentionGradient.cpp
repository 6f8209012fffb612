// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- AttentionGradient.cpp - gradients from the logsumexp ---------------===//
//
// A task takes one key head, or a range of its keys, and walks over all panels
// of queries that read it. Scores are computed again, a panel against a block
// of keys at a time (P = exp(S - logsumexp)), and so are never stored:
//
//   S' = K Q'     dP' = V G'     dS' = P' (dP' - delta), delta = rowsum(G Y)
//   dQ' += K' dS'     dK += dS' Q     dV += P' G
//
// with ' for panels whose queries lie along the lanes. dQ' of a panel is whole
// after its last block; dK and dV of the head grow in memory of the thread.
//
// Where a head is cut into ranges of keys, each range has its own dQ, and they
// are added in order at the end. Cuts depend on the shapes only, and sums go in
// ascending order: results don't depend on the number of threads. Key heads
// whose scores read the same mask are one task, one after the other, if the
// mask has a gradient.
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/Attention.h"
#include "runtime/kernels/Convert.h"
#include "runtime/kernels/MicroKernels.h"
#include "runtime/kernels/Parallel.h"
#include <cmath>
#include <cstring>

namespace mtp {
namespace {

struct GradientProblem : AttentionProblem {
  Tensor g, dq, dk, dv;
  Tensor dmask; ///< broadcast, as the mask
  int64_t dmaskElements = 0;
  int outputAt = -1, logsumexpAt = -1, gAt = -1;
  int dqAt = -1, dkAt = -1, dvAt = -1, dmaskAt = -1; ///< -1: not wanted
};

/// A row-major gradient of `shape` under the strides of [B, H, S, T].
Tensor broadcastView(DType type, const std::vector<int64_t> &shape,
                     const std::vector<int64_t> &full) {
  std::vector<int64_t> strides = rowMajorStrides(shape);
  Tensor view{type, full, std::vector<int64_t>(4, 0)};
  for (size_t i = 1; i <= shape.size(); ++i)
    if (shape[shape.size() - i] != 1)
      view.strides[4 - i] = strides[shape.size() - i];
  return view;
}

GradientProblem readGradient(SiteReader &reader) {
  GradientProblem p;
  static_cast<AttentionProblem &>(p) = readAttentionInputs(reader);
  std::vector<int64_t> output = {p.batch, p.heads, p.queries, p.valueDepth};
  std::vector<int64_t> rows = {p.batch, p.heads, p.queries};
  auto next = [&](const char *what, int &at, const std::vector<int64_t> &shape,
                  DType type) {
    at = reader.position();
    Tensor tensor = reader.next(what);
    reader.require(tensor.shape == shape && tensor.type == type,
                   std::string(what) + " is " + toString(tensor) + ", not " +
                       toString(Tensor{type, shape, {}}));
    return tensor;
  };
  DType type = p.q.type;
  p.y = next("Y", p.outputAt, output, type);
  p.logsumexp = next("logsumexp", p.logsumexpAt, rows,
                     type == DType::F64 ? DType::F64 : DType::F32);
  p.g = next("G", p.gAt, output, type);
  if (reader.flag("queryGradient", true))
    p.dq = next("dQ", p.dqAt, p.q.shape, type);
  if (reader.flag("keyGradient", true))
    p.dk = next("dK", p.dkAt, p.k.shape, type);
  if (reader.flag("valueGradient", true))
    p.dv = next("dV", p.dvAt, p.v.shape, type);
  if (reader.flag("maskGradient", false)) {
    reader.require(p.hasMask && p.mask.type == type,
                   "only a mask that is added has a gradient");
    Tensor gradient = next("dMask", p.dmaskAt, p.maskShape, type);
    reader.require(gradient.isRowMajor() &&
                       (type == DType::F32 || type == DType::F64),
                   "dMask " + toString(gradient) +
                       " is not a row-major tensor of f32 or f64");
    p.dmaskElements = gradient.elements();
    p.dmask = broadcastView(type, p.maskShape, p.mask.shape);
  }
  reader.finish();
  return p;
}

template <typename T> class AttentionGradient final : public LibraryKernel {
public:
  AttentionGradient(const GradientProblem &problem,
                    const PrepareContext &context);
  bool run(const MtpRank *rank, char *const *buffers,
           std::string &error) override;
  std::string implementation() const override {
    return std::string("recomputed scores ") + micro.name;
  }

private:
  struct Head {
    int64_t batch, keyHead;
  };
  /// One task's memory and place.
  struct Work {
    char *const *buffers;
    int64_t offset; ///< of causal
    Head head;
    int64_t firstKey, endKey; ///< of the task
    int64_t first, count;     ///< rows of the panel
    T *partial;               ///< dQ of this range of keys, null: the only one
    T *q, *g, *qColumns, *gColumns, *dq;
    T *scores, *capped, *dscores;
    T *shift, *factor, *delta, *maximum, *sum;
    T *k, *v, *row, *dk, *dv;
    int64_t *left, *right, *maskOffset, *dmaskOffset;
    bool *alike; ///< by lane: no key is visible, all count alike
  };
  struct Block { ///< of keys
    int64_t first, count;
    const T *k, *v;
    int64_t kStride, vStride;
  };

  size_t layOut(Work &work, char *memory) const;
  void runHead(Work &work) const;
  void loadPanel(Work &work) const;
  void loadLane(Work &work, int64_t lane) const;
  void recomputeStatistics(Work &work) const;
  void loadKeys(Work &work, Block &block) const;
  void computeScores(Work &work, const Block &block) const;
  void visit(Work &work, const Block &block) const;
  void addMaskGradient(Work &work, const Block &block) const;
  void storeQueries(Work &work) const;
  void storeKeys(Work &work, const Tensor &tensor, int at, const T *rows,
                 int64_t depth, int64_t stride) const;
  void addPartials(char *const *buffers, const T *partials, int64_t row) const;
  /// Calls visit(block) for the blocks of keys [from, to).
  template <typename Visit>
  void forBlocks(Work &work, int64_t from, int64_t to, Visit &&visit) const;

  char *rowOf(const Work &work, const Tensor &tensor, int at,
              int64_t row) const {
    return work.buffers[at] +
           p.rowOffset(tensor, work.head.batch, work.head.keyHead, row) *
               byteSize(tensor.type);
  }

  const GradientProblem p;
  const MicroKernels<T> &micro = microKernels<T>();
  const int64_t lanes = micro.columns;
  const int threads;
  const DType compute = std::is_same_v<T, double> ? DType::F64 : DType::F32;
  /// Depths rounded up to whole panels.
  int64_t wideDepth, wideValueDepth, keyBlock;
  int64_t ranges = 1; ///< of keys, of one head
  bool convertsK, convertsV;
  std::vector<std::vector<Head>> chains; ///< one after the other
  std::shared_ptr<Scratch> scratch;
  size_t taskBytes, partialElements = 0;
};

template <typename T>
AttentionGradient<T>::AttentionGradient(const GradientProblem &problem,
                                        const PrepareContext &context)
    : p(problem), threads(context.threads), scratch(scratchOf(context)) {
  auto whole = [&](int64_t depth) { return ceilDiv(depth, lanes) * lanes; };
  wideDepth = whole(p.depth);
  wideValueDepth = whole(p.valueDepth);
  int64_t blocks = std::max<int64_t>(1, ceilDiv(p.keys, 96));
  keyBlock =
      std::max<int64_t>(1, ceilDiv(ceilDiv(p.keys, blocks), micro.rows)) *
      micro.rows;
  convertsK = p.k.type != compute || p.roundToBf16 || p.k.strides[3] != 1;
  convertsV = p.v.type != compute || p.roundToBf16 || p.v.strides[3] != 1;

  std::map<std::pair<int64_t, int64_t>, size_t> chainOf;
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t h = 0; h < p.keyHeads; ++h) {
      std::pair<int64_t, int64_t> key{b, h};
      if (p.dmaskAt >= 0)
        key = {p.mask.strides[0] ? b : 0, p.mask.strides[1] ? h : 0};
      auto [it, fresh] = chainOf.try_emplace(key, chains.size());
      if (fresh)
        chains.emplace_back();
      chains[it->second].push_back({b, h});
    }
  if (p.dmaskAt < 0 && !chains.empty())
    ranges = std::clamp<int64_t>(ceilDiv(16, int64_t(chains.size())), 1,
                                 std::max<int64_t>(1, p.keys / 192));
  Work work;
  taskBytes = layOut(work, nullptr);
  size_t bytes = size_t(checkedMultiply(int64_t(taskBytes), threads));
  if (ranges > 1 && p.dqAt >= 0)
    partialElements =
        size_t(checkedMultiply(checkedMultiply(p.batch * p.keyHeads, ranges),
                               checkedMultiply(p.rows(), p.depth)));
  scratch->reserve(bytes + partialElements * sizeof(T));
}

/// Places the arrays of `work` in `memory`; returns the bytes they take.
template <typename T>
size_t AttentionGradient<T>::layOut(Work &work, char *memory) const {
  size_t at = 0;
  auto place = [&](auto *&array, int64_t count) {
    array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(
        memory ? memory + at : nullptr);
    at += alignUp(size_t(checkedMultiply(count, sizeof(*array))));
  };
  place(work.q, lanes * p.depth);
  place(work.g, lanes * p.valueDepth);
  place(work.qColumns, lanes * wideDepth);
  place(work.gColumns, lanes * wideValueDepth);
  place(work.dq, lanes * p.depth);
  place(work.scores, keyBlock * lanes);
  place(work.capped, p.softcap > 0 ? keyBlock * lanes : 0);
  place(work.dscores, keyBlock * lanes);
  for (T **perLane :
       {&work.shift, &work.factor, &work.delta, &work.maximum, &work.sum})
    place(*perLane, lanes);
  place(work.k, convertsK ? checkedMultiply(keyBlock, p.depth) : 0);
  place(work.v, convertsV ? checkedMultiply(keyBlock, p.valueDepth) : 0);
  place(work.row, std::max({4 * keyBlock, 2 * p.valueDepth, p.depth, lanes}));
  int64_t rangeKeys = ceilDiv(p.keys, ranges);
  place(work.dk, p.dkAt < 0 ? 0 : checkedMultiply(rangeKeys, wideDepth));
  place(work.dv, p.dvAt < 0 ? 0 : checkedMultiply(rangeKeys, wideValueDepth));
  place(work.left, lanes);
  place(work.right, lanes);
  place(work.maskOffset, lanes);
  place(work.dmaskOffset, lanes);
  place(work.alike, lanes);
  return at;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// Row `first + lane` of Q and G along a lane and in columns, and its delta.
template <typename T>
void AttentionGradient<T>::loadLane(Work &work, int64_t lane) const {
  int64_t row = work.first + lane;
  auto load = [&](const Tensor &tensor, int at, T scale, int64_t depth,
                  T *panel, T *columns) {
    T *from = work.row;
    loadRow<T>(tensor.type, rowOf(work, tensor, at, row), tensor.strides[3],
               from, 1, depth, p.roundToBf16);
    for (int64_t d = 0; d < depth; ++d) {
      T value = from[d] * scale;
      panel[d * lanes + lane] = value;
      columns[(d / lanes * lanes + lane) * lanes + d % lanes] = value;
    }
  };
  load(p.q, 0, T(p.scale), p.depth, work.q, work.qColumns);
  load(p.g, p.gAt, T(1), p.valueDepth, work.g, work.gColumns);
  // work.row still has G.
  T *y = work.row + p.valueDepth;
  loadRow<T>(p.y.type, rowOf(work, p.y, p.outputAt, row), p.y.strides[3], y, 1,
             p.valueDepth);
  T delta = 0;
  for (int64_t d = 0; d < p.valueDepth; ++d)
    delta += work.row[d] * y[d];
  work.delta[lane] = delta;
}

template <typename T> void AttentionGradient<T>::loadPanel(Work &work) const {
  std::memset(work.q, 0, sizeof(T) * size_t(lanes * p.depth));
  std::memset(work.g, 0, sizeof(T) * size_t(lanes * p.valueDepth));
  std::memset(work.dq, 0, sizeof(T) * size_t(lanes * p.depth));
  bool careful = false;
  // From here on the rounding of a logsumexp would show.
  const T most = std::is_same_v<T, double> ? T(1e8) : T(256);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    work.shift[lane] = work.factor[lane] = work.delta[lane] = 0;
    work.alike[lane] = false;
    if (lane >= work.count)
      continue;
    loadLane(work, lane);
    int64_t row = work.first + lane;
    T logsumexp = *reinterpret_cast<const T *>(
        rowOf(work, p.logsumexp, p.logsumexpAt, row));
    work.shift[lane] = logsumexp;
    work.factor[lane] = 1;
    work.left[lane] = p.firstKey(row, work.offset);
    work.right[lane] = p.lastKey(row, work.offset);
    if (p.hasMask)
      work.maskOffset[lane] =
          p.rowOffset(p.mask, work.head.batch, work.head.keyHead, row);
    if (p.dmaskAt >= 0)
      work.dmaskOffset[lane] =
          p.rowOffset(p.dmask, work.head.batch, work.head.keyHead, row);
    if (logsumexp == -std::numeric_limits<T>::infinity()) {
      work.shift[lane] = work.factor[lane] = 0;
      work.alike[lane] = !p.zeroMaskedRows;
    } else if (std::fabs(logsumexp) > most) {
      careful = true;
    }
  }
  if (careful)
    recomputeStatistics(work);
}

/// Maximum and sum as the forward has them, where their logarithm has lost too
/// many digits (scores of the order of 1e3, masks of -1e38).
template <typename T>
void AttentionGradient<T>::recomputeStatistics(Work &work) const {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    work.maximum[lane] = -std::numeric_limits<T>::infinity();
    work.sum[lane] = 0;
  }
  int64_t last = *std::max_element(work.right, work.right + work.count);
  forBlocks(work, 0, last + 1, [&](const Block &block) {
    computeScores(work, block);
    micro.softmaxStep(work.scores, block.count, work.maximum, work.sum,
                      work.dscores);
  });
  for (int64_t lane = 0; lane < work.count; ++lane)
    if (work.sum[lane] > 0) {
      work.shift[lane] = work.maximum[lane];
      work.factor[lane] = 1 / work.sum[lane];
    }
}

template <typename T>
void AttentionGradient<T>::storeQueries(Work &work) const {
  for (int64_t lane = 0; lane < work.count; ++lane) {
    T *row =
        work.partial ? work.partial + (work.first + lane) * p.depth : work.row;
    for (int64_t d = 0; d < p.depth; ++d)
      row[d] = work.dq[d * lanes + lane] * T(p.scale);
    if (!work.partial)
      storeRow<T>(p.dq.type, row, rowOf(work, p.dq, p.dqAt, work.first + lane),
                  p.dq.strides[3], p.depth);
  }
}

/// Adds up the ranges of one row of dQ, counted over all key heads.
template <typename T>
void AttentionGradient<T>::addPartials(char *const *buffers, const T *partials,
                                       int64_t row) const {
  int64_t head = row / p.rows(), within = row % p.rows();
  std::vector<T> sum(size_t(p.depth), T(0));
  for (int64_t range = 0; range < ranges; ++range) {
    const T *part =
        partials + ((head * ranges + range) * p.rows() + within) * p.depth;
    for (int64_t d = 0; d < p.depth; ++d)
      sum[size_t(d)] += part[d];
  }
  char *to = buffers[p.dqAt] +
             p.rowOffset(p.dq, head / p.keyHeads, head % p.keyHeads, within) *
                 byteSize(p.dq.type);
  storeRow<T>(p.dq.type, sum.data(), to, p.dq.strides[3], p.depth);
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

template <typename T>
void AttentionGradient<T>::loadKeys(Work &work, Block &block) const {
  auto load = [&](const Tensor &tensor, const char *buffer, bool converts,
                  T *copy, int64_t depth, const T *&rows, int64_t &stride) {
    int64_t size = byteSize(tensor.type);
    const char *from = buffer + (work.head.batch * tensor.strides[0] +
                                 work.head.keyHead * tensor.strides[1] +
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

template <typename T>
template <typename Visit>
void AttentionGradient<T>::forBlocks(Work &work, int64_t from, int64_t to,
                                     Visit &&visit) const {
  for (int64_t first = from; first < to; first += keyBlock) {
    Block block{first, std::min(keyBlock, to - first), nullptr, nullptr, 0, 0};
    loadKeys(work, block);
    visit(block);
  }
}

/// S' of the panel, capped and masked.
template <typename T>
void AttentionGradient<T>::computeScores(Work &work, const Block &block) const {
  for (int64_t j = 0; j < block.count; j += micro.rows)
    micro.unitColumn(int(std::min<int64_t>(micro.rows, block.count - j)),
                     p.depth, block.k + j * block.kStride, block.kStride,
                     work.q, work.scores + j * lanes, lanes, false);
  if (p.softcap > 0) {
    micro.softcap(work.scores, block.count * lanes, T(p.softcap));
    std::memcpy(work.capped, work.scores,
                sizeof(T) * size_t(block.count * lanes));
  }
  ScorePanel<T> scores{p,           lanes,       work.count,      block.first,
                       block.count, work.scores, work.maskOffset, work.left,
                       work.right,  work.row,    keyBlock};
  if (p.hasMask)
    scores.applyMask(work.buffers[p.maskAt]);
  if (p.causal || p.windowLeft >= 0 || p.windowRight >= 0)
    scores.hideKeys();
}

/// One panel against one block of keys.
template <typename T>
void AttentionGradient<T>::visit(Work &work, const Block &block) const {
  int64_t count = block.count;
  computeScores(work, block);
  micro.softmaxOf(work.scores, count, work.shift, work.factor);
  // Rows without a visible key: equal weights, or those of no softmax.
  const T nan = std::numeric_limits<T>::quiet_NaN();
  auto fillAlike = [&](T *panel, T value) {
    for (int64_t lane = 0; lane < work.count; ++lane)
      for (int64_t j = 0; work.alike[lane] && j < count; ++j)
        panel[j * lanes + lane] = value;
  };
  fillAlike(work.scores, p.uniformMaskedRows ? T(1) / T(p.keys) : nan);

  for (int64_t j = 0; j < count; j += micro.rows)
    micro.unitColumn(int(std::min<int64_t>(micro.rows, count - j)),
                     p.valueDepth, block.v + j * block.vStride, block.vStride,
                     work.g, work.dscores + j * lanes, lanes, false);
  micro.softmaxGradient(work.scores, work.dscores, count, work.delta);
  fillAlike(work.dscores, p.uniformMaskedRows ? T(0) : nan);
  if (p.dmaskAt >= 0)
    addMaskGradient(work, block);
  if (p.softcap > 0)
    for (int64_t i = 0; i < count * lanes; ++i) {
      T tangent = work.capped[i] / T(p.softcap);
      work.dscores[i] *= 1 - tangent * tangent;
    }

  if (p.dqAt >= 0)
    for (int64_t d = 0; d < p.depth; d += micro.rows)
      micro.unitRow(int(std::min<int64_t>(micro.rows, p.depth - d)), count,
                    block.k + d, block.kStride, work.dscores,
                    work.dq + d * lanes, lanes, true);
  auto addTo = [&](T *sum, int64_t wide, const T *weights, const T *columns) {
    sum += (block.first - work.firstKey) * wide;
    for (int64_t d = 0; d < wide; d += lanes)
      for (int64_t j = 0; j < count; j += micro.rows)
        micro.unitColumn(int(std::min<int64_t>(micro.rows, count - j)),
                         work.count, weights + j * lanes, lanes,
                         columns + d * lanes, sum + j * wide + d, wide, true);
  };
  if (p.dkAt >= 0)
    addTo(work.dk, wideDepth, work.dscores, work.qColumns);
  if (p.dvAt >= 0)
    addTo(work.dv, wideValueDepth, work.scores, work.gColumns);
}

template <typename T>
void AttentionGradient<T>::addMaskGradient(Work &work,
                                           const Block &block) const {
  T *mask = reinterpret_cast<T *>(work.buffers[p.dmaskAt]);
  int64_t step = p.dmask.strides[3];
  for (int64_t lane = 0; lane < work.count; ++lane) {
    T *to = mask + work.dmaskOffset[lane] + block.first * step;
    for (int64_t j = 0; j < block.count; ++j)
      to[j * step] += work.dscores[j * lanes + lane];
  }
}

template <typename T>
void AttentionGradient<T>::storeKeys(Work &work, const Tensor &tensor, int at,
                                     const T *rows, int64_t depth,
                                     int64_t stride) const {
  if (work.firstKey == work.endKey)
    return;
  char *to = work.buffers[at] + (work.head.batch * tensor.strides[0] +
                                 work.head.keyHead * tensor.strides[1]) *
                                    byteSize(tensor.type);
  for (int64_t j = work.firstKey; j < work.endKey; ++j)
    storeRow<T>(tensor.type, rows + (j - work.firstKey) * stride,
                to + j * tensor.strides[2] * byteSize(tensor.type),
                tensor.strides[3], depth);
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

template <typename T> void AttentionGradient<T>::runHead(Work &work) const {
  int64_t keys = work.endKey - work.firstKey;
  if (p.dkAt >= 0)
    std::memset(work.dk, 0, sizeof(T) * size_t(keys * wideDepth));
  if (p.dvAt >= 0)
    std::memset(work.dv, 0, sizeof(T) * size_t(keys * wideValueDepth));
  // Columns past the depths are never loaded.
  std::memset(work.qColumns, 0, sizeof(T) * size_t(lanes * wideDepth));
  std::memset(work.gColumns, 0, sizeof(T) * size_t(lanes * wideValueDepth));
  for (work.first = 0; work.first < p.rows(); work.first += lanes) {
    work.count = std::min(lanes, p.rows() - work.first);
    loadPanel(work);
    // What no query of the panel sees is left out.
    int64_t from = *std::min_element(work.left, work.left + work.count),
            to = *std::max_element(work.right, work.right + work.count) + 1;
    if (std::any_of(work.alike, work.alike + work.count,
                    [](bool alike) { return alike; }))
      from = 0, to = p.keys;
    forBlocks(work, std::max(from, work.firstKey), std::min(to, work.endKey),
              [&](const Block &block) { visit(work, block); });
    if (p.dqAt >= 0)
      storeQueries(work);
  }
  if (p.dkAt >= 0)
    storeKeys(work, p.dk, p.dkAt, work.dk, p.depth, wideDepth);
  if (p.dvAt >= 0)
    storeKeys(work, p.dv, p.dvAt, work.dv, p.valueDepth, wideValueDepth);
}

template <typename T>
bool AttentionGradient<T>::run(const MtpRank *rank, char *const *buffers,
                               std::string &) {
  if (p.dmaskAt >= 0 && p.dmaskElements > 0)
    std::memset(buffers[p.dmaskAt], 0, size_t(p.dmaskElements) * sizeof(T));
  int64_t offset = p.offsetOf(rank, buffers);
  char *memory = scratch->data();
  T *partials =
      partialElements
          ? reinterpret_cast<T *>(memory + size_t(threads) * taskBytes)
          : nullptr;
  int64_t rangeKeys = ceilDiv(p.keys, ranges);
  parallelFor(
      threads, int64_t(chains.size()) * ranges, [&](int64_t task, int thread) {
        Work work;
        layOut(work, memory + size_t(thread) * taskBytes);
        work.buffers = buffers;
        work.offset = offset;
        int64_t range = task % ranges;
        work.firstKey = std::min(range * rangeKeys, p.keys);
        work.endKey = std::min(work.firstKey + rangeKeys, p.keys);
        for (const Head &head : chains[size_t(task / ranges)]) {
          work.head = head;
          int64_t number = head.batch * p.keyHeads + head.keyHead;
          work.partial = partials ? partials + (number * ranges + range) *
                                                   p.rows() * p.depth
                                  : nullptr;
          runHead(work);
        }
      });
  if (partials)
    parallelFor(threads, p.batch * p.keyHeads * p.rows(),
                [&](int64_t row, int) { addPartials(buffers, partials, row); });
  return true;
}

} // namespace

std::unique_ptr<LibraryKernel> prepareAttentionGradient(SiteReader &reader) {
  GradientProblem problem = readGradient(reader);
  if (problem.q.type == DType::F64)
    return std::make_unique<AttentionGradient<double>>(problem, reader.context);
  return std::make_unique<AttentionGradient<float>>(problem, reader.context);
}

} // namespace mtp
