// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/Arena.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

using namespace mtp;

static constexpr int64_t kAlignment = 64;
/// Orders that are tried from one on, and the pairs of spans that they may
/// compare, all together.
static constexpr int kMostTurns = 32;
static constexpr int64_t kMostWork = int64_t(1) << 24;

static int64_t alignedSize(const ArenaSpan &span) {
  return llvm::alignTo(span.bytes, kAlignment);
}

/// Bytes needed at the steps at which a span begins, by step.
static std::map<int64_t, int64_t> loads(llvm::ArrayRef<ArenaSpan> spans) {
  std::map<int64_t, int64_t> result;
  for (const ArenaSpan &span : spans) {
    result[span.first] += alignedSize(span);
    result[span.last + 1] -= alignedSize(span);
  }
  int64_t load = 0;
  for (auto &[step, bytes] : result)
    bytes = load += bytes;
  return result;
}

int64_t mtp::arenaLoad(llvm::ArrayRef<ArenaSpan> spans) {
  int64_t most = 0;
  for (auto [step, load] : loads(spans))
    most = std::max(most, load);
  return most;
}

/// The start of the smallest gap between `busy` spans that holds `size`; past
/// their end if there is none.
static int64_t bestFit(llvm::MutableArrayRef<std::pair<int64_t, int64_t>> busy,
                       int64_t size) {
  llvm::sort(busy);
  int64_t end = 0, best = -1, bestGap = 0;
  for (auto [from, to] : busy) {
    int64_t gap = from - end;
    if (gap >= size && (best < 0 || gap < bestGap)) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, to);
  }
  return best < 0 ? end : best;
}

namespace {
/// Offsets by span, and the bytes up to the last end.
struct Placement {
  std::vector<int64_t> offsets;
  int64_t total = 0;
};
} // namespace

/// Places the spans in `order`, each in the smallest gap that holds it.
static Placement placeInOrder(llvm::ArrayRef<ArenaSpan> spans,
                              llvm::ArrayRef<size_t> order) {
  Placement placement;
  placement.offsets.resize(spans.size());
  llvm::SmallVector<std::pair<int64_t, int64_t>> busy;
  for (auto [rank, index] : llvm::enumerate(order)) {
    const ArenaSpan &span = spans[index];
    busy.clear();
    for (size_t other : order.take_front(rank))
      if (spans[other].first <= span.last && span.first <= spans[other].last)
        busy.push_back({placement.offsets[other],
                        placement.offsets[other] + alignedSize(spans[other])});
    int64_t size = alignedSize(span);
    placement.offsets[index] = bestFit(busy, size);
    placement.total =
        std::max(placement.total, placement.offsets[index] + size);
  }
  return placement;
}

/// The order in which those spans come first that end highest.
static void raiseHighest(llvm::ArrayRef<ArenaSpan> spans,
                         const Placement &placement,
                         std::vector<size_t> &order) {
  std::stable_partition(order.begin(), order.end(), [&](size_t index) {
    return placement.offsets[index] + alignedSize(spans[index]) ==
           placement.total;
  });
}

/// Numbers of the spans, those whose number has the largest key first.
template <typename Key>
static std::vector<size_t> sortedBy(llvm::ArrayRef<ArenaSpan> spans, Key key) {
  std::vector<size_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](size_t a, size_t b) { return key(a) > key(b); });
  return order;
}

/// For each span the most bytes that are needed beside it, and its own.
static std::vector<std::pair<int64_t, int64_t>>
mostBeside(llvm::ArrayRef<ArenaSpan> spans) {
  const std::map<int64_t, int64_t> loadAt = loads(spans);
  std::vector<std::pair<int64_t, int64_t>> result;
  for (const ArenaSpan &span : spans) {
    int64_t most = 0;
    for (auto it = loadAt.find(span.first);
         it != loadAt.end() && it->first <= span.last; ++it)
      most = std::max(most, it->second);
    result.push_back({most, span.bytes});
  }
  return result;
}

int64_t mtp::planArena(llvm::MutableArrayRef<ArenaSpan> spans) {
  int64_t load = arenaLoad(spans), work = 0;
  auto bytesOf = [&](size_t index) { return spans[index].bytes; };
  Placement best = placeInOrder(spans, sortedBy(spans, bytesOf));
  auto improve = [&](std::vector<size_t> order) {
    for (int turn = 0; turn < kMostTurns && best.total > load &&
                       (turn == 0 || work < kMostWork);
         ++turn) {
      Placement mine = placeInOrder(spans, order);
      raiseHighest(spans, mine, order);
      if (mine.total < best.total)
        best = std::move(mine);
      work += int64_t(spans.size()) * int64_t(spans.size());
    }
  };
  if (best.total > load) {
    auto beside = mostBeside(spans);
    improve(sortedBy(spans, [&](size_t index) { return beside[index]; }));
    improve(sortedBy(spans, [&](size_t index) {
      return std::pair(-spans[index].first, spans[index].bytes);
    }));
  }
  for (auto [span, offset] : llvm::zip_equal(spans, best.offsets))
    span.offset = offset;
  return best.total;
}
