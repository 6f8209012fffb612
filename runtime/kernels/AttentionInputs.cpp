// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/kernels/Attention.h"
#include "runtime/kernels/Convert.h"
#include <cmath>
#include <type_traits>

using namespace mtp;

AttentionProblem mtp::readAttentionInputs(SiteReader &reader) {
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
    p.maskShape = mask.shape;
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
  return p;
}

int64_t AttentionProblem::offsetOf(const MtpRank *rank,
                                   char *const *buffers) const {
  int64_t sum = offset;
  if (offsetRankValue >= 0)
    sum += rank->rankValues[offsetRankValue];
  if (startAt >= 0)
    sum += startType == DType::I64
               ? *reinterpret_cast<const int64_t *>(buffers[startAt])
               : *reinterpret_cast<const int32_t *>(buffers[startAt]);
  // Far beyond any tensor, so that sums can't overflow.
  constexpr int64_t most = int64_t(1) << 60;
  return std::clamp(sum, -most, most);
}

/// Lanes that read the same row of the mask are served together, others in
/// fours.
template <typename T> void ScorePanel<T>::applyMask(const char *mask) const {
  constexpr DType compute = std::is_same_v<T, double> ? DType::F64 : DType::F32;
  bool boolean = p.mask.type == DType::Bool;
  bool direct = p.mask.type == compute && p.mask.strides[3] == 1;
  int64_t size = byteSize(p.mask.type), stride = p.mask.strides[3];
  const char *base = mask + firstKey * stride * size;
  const int64_t *offsets = maskOffset;
  T replacement = T(p.maskValue);
  auto row = [&](int64_t lane, T *copy) {
    const char *from = base + offsets[lane] * size;
    if (direct)
      return reinterpret_cast<const T *>(from);
    loadRow<T>(p.mask.type, from, stride, copy, 1, keys);
    return static_cast<const T *>(copy);
  };
  auto apply = [&](T &score, T added) {
    score = boolean ? (added == 0 ? replacement : score) : score + added;
  };
  if (std::all_of(offsets, offsets + count,
                  [&](int64_t offset) { return offset == offsets[0]; })) {
    const T *added = row(0, rows);
    for (int64_t j = 0; j < keys; ++j)
      for (int64_t i = 0; i < lanes; ++i)
        apply(scores[j * lanes + i], added[j]);
    return;
  }
  int64_t lane = 0;
  for (; lane + 4 <= count; lane += 4) {
    const T *added[4];
    for (int64_t i = 0; i < 4; ++i)
      added[i] = row(lane + i, rows + i * rowStride);
    T *four = scores + lane;
    for (int64_t j = 0; j < keys; ++j, four += lanes) {
      apply(four[0], added[0][j]);
      apply(four[1], added[1][j]);
      apply(four[2], added[2][j]);
      apply(four[3], added[3][j]);
    }
  }
  for (; lane < count; ++lane) {
    const T *added = row(lane, rows);
    for (int64_t j = 0; j < keys; ++j)
      apply(scores[j * lanes + lane], added[j]);
  }
}

template <typename T> void ScorePanel<T>::hideKeys() const {
  const T infinity = std::numeric_limits<T>::infinity();
  for (int64_t lane = 0; lane < count; ++lane) {
    int64_t from = left[lane] - firstKey, to = right[lane] - firstKey;
    T *column = scores + lane;
    for (int64_t j = 0; j < std::min(from, keys); ++j)
      column[j * lanes] = -infinity;
    for (int64_t j = std::max<int64_t>(0, to + 1); j < keys; ++j)
      column[j * lanes] = -infinity;
  }
}

template struct mtp::ScorePanel<float>;
template struct mtp::ScorePanel<double>;
