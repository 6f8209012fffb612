// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/Arena.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <utility>

using namespace mtp;

static constexpr int64_t kAlignment = 64;

static int64_t alignedSize(const ArenaSpan &span) {
  return llvm::alignTo(span.bytes, kAlignment);
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

int64_t mtp::planArena(llvm::MutableArrayRef<ArenaSpan> spans) {
  llvm::SmallVector<ArenaSpan *> order, placed;
  for (ArenaSpan &span : spans)
    order.push_back(&span);
  llvm::sort(order, [](ArenaSpan *a, ArenaSpan *b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a < b;
  });
  int64_t total = 0;
  for (ArenaSpan *span : order) {
    llvm::SmallVector<std::pair<int64_t, int64_t>> busy;
    for (ArenaSpan *other : placed)
      if (other->first <= span->last && span->first <= other->last)
        busy.push_back({other->offset, other->offset + alignedSize(*other)});
    span->offset = bestFit(busy, alignedSize(*span));
    total = std::max(total, span->offset + alignedSize(*span));
    placed.push_back(span);
  }
  return total;
}
