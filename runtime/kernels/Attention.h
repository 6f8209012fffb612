// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Attention.h - what attention and its gradient share ----------------===//
//
// Scores of a *panel*: keys down, queries along the lanes of vectors. The
// queries of all heads that read one key head count as one list of rows (head
// in group major).
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_KERNELS_ATTENTION_H
#define MTP_RUNTIME_KERNELS_ATTENTION_H

#include "runtime/kernels/KernelSupport.h"
#include <algorithm>
#include <limits>

namespace mtp {

struct AttentionProblem {
  Tensor q, k, v, mask, y,
      logsumexp;                  ///< mask broadcast: strides of [B, H, S, T]
  std::vector<int64_t> maskShape; ///< as given
  int64_t batch, heads, keyHeads, group, queries, keys, depth, valueDepth;
  bool hasMask = false, hasLogsumexp = false, causal = false,
       roundToBf16 = false;
  bool zeroMaskedRows = false, uniformMaskedRows = false;
  double scale = 1, softcap = 0, maskValue = 0;
  int64_t offset = 0, offsetRankValue = -1, windowLeft = -1, windowRight = -1;
  int maskAt = -1, startAt = -1, yAt = -1;
  DType startType = DType::I64;

  int64_t rows() const { return group * queries; } ///< of a key head
  /// Element offset of `row` in a tensor of [B, H, S, ...].
  int64_t rowOffset(const Tensor &tensor, int64_t batch, int64_t keyHead,
                    int64_t row) const {
    int64_t head = keyHead * group + row / queries;
    return batch * tensor.strides[0] + head * tensor.strides[1] +
           row % queries * tensor.strides[2];
  }
  /// What query 0 sees beyond key 0, from attributes and operands.
  int64_t offsetOf(const MtpRank *rank, char *const *buffers) const;
  /// The keys that `row` sees, inclusive.
  int64_t firstKey(int64_t row, int64_t offset) const {
    return windowLeft < 0 ? 0 : row % queries + offset - windowLeft;
  }
  int64_t lastKey(int64_t row, int64_t offset) const {
    int64_t last = keys - 1, diagonal = row % queries + offset;
    if (causal)
      last = std::min(last, diagonal);
    return windowRight < 0 ? last : std::min(last, diagonal + windowRight);
  }
};

/// Reads Q, K, V, all attributes that attention and gradient have in common,
/// mask and queryStart.
AttentionProblem readAttentionInputs(SiteReader &reader);

/// Scores of one panel against a block of keys.
template <typename T> struct ScorePanel {
  const AttentionProblem &p;
  int64_t lanes; ///< of a row of scores
  int64_t count; ///< lanes in use
  int64_t firstKey, keys;
  T *scores;                   ///< [keys, lanes]
  const int64_t *maskOffset;   ///< by lane: element offset of its row
  const int64_t *left, *right; ///< by lane: visible keys, inclusive
  T *rows; ///< memory for four rows of the mask, `rowStride` apart
  int64_t rowStride;

  /// Adds the mask, or replaces scores by maskValue.
  void applyMask(const char *mask) const;
  /// Scores of keys that causal or window hides become -inf.
  void hideKeys() const;
};

} // namespace mtp

#endif // MTP_RUNTIME_KERNELS_ATTENTION_H
