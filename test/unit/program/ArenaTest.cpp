// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/Arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

using namespace mtp;

TEST(Arena, ReusesWhatIsGone) {
  std::vector<ArenaSpan> spans{{128, 0, 1}, {64, 1, 2}, {128, 2, 3}};
  EXPECT_EQ(planArena(spans), 192);
  EXPECT_EQ(spans[0].offset, 0);
  EXPECT_EQ(spans[1].offset, 128);
  EXPECT_EQ(spans[2].offset, 0);
}

TEST(Arena, AlignsOddSizes) {
  std::vector<ArenaSpan> spans{{1, 0, 0}, {65, 0, 0}, {0, 0, 0}};
  EXPECT_EQ(planArena(spans), 192);
  for (const ArenaSpan &span : spans)
    EXPECT_EQ(span.offset % 64, 0);
}

TEST(Arena, TakesTheSmallestGapThatFits) {
  // At step 1 there are gaps of 256 and of 64 bytes below the last span.
  std::vector<ArenaSpan> spans{
      {1024, 1, 1}, {256, 0, 0}, {512, 0, 2}, {64, 2, 2}};
  planArena(spans);
  for (size_t i = 0; i < spans.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (spans[i].first <= spans[j].last && spans[j].first <= spans[i].last)
        EXPECT_TRUE(spans[i].offset + spans[i].bytes <= spans[j].offset ||
                    spans[j].offset + spans[j].bytes <= spans[i].offset);
}

TEST(Arena, NeverOverlapsAndStaysBelowTheSum) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaSpan> spans(random() % 40);
    int64_t sum = 0;
    for (ArenaSpan &span : spans) {
      span.bytes = random() % 1000;
      span.first = random() % 30;
      span.last = span.first + random() % 10;
      sum += (span.bytes + 63) / 64 * 64;
    }
    int64_t total = planArena(spans);
    EXPECT_LE(total, sum);
    EXPECT_GE(total, arenaLoad(spans));
    for (size_t i = 0; i < spans.size(); ++i) {
      EXPECT_LE(spans[i].offset + spans[i].bytes, total);
      for (size_t j = 0; j < i; ++j)
        if (spans[i].first <= spans[j].last &&
            spans[j].first <= spans[i].last && spans[i].bytes && spans[j].bytes)
          EXPECT_TRUE(spans[i].offset + spans[i].bytes <= spans[j].offset ||
                      spans[j].offset + spans[j].bytes <= spans[i].offset);
    }
  }
}

TEST(Arena, LoadIsThatOfTheStepThatNeedsMost) {
  EXPECT_EQ(arenaLoad({}), 0);
  EXPECT_EQ(arenaLoad({{64, 0, 1}, {64, 2, 3}}), 64);
  EXPECT_EQ(arenaLoad({{64, 0, 2}, {1, 2, 3}, {128, 3, 3}}), 192);
}

/// The least arena: spans at the lowest place that is free, in some order.
static int64_t leastArena(std::vector<ArenaSpan> spans) {
  auto size = [](const ArenaSpan &span) { return (span.bytes + 63) / 64 * 64; };
  std::vector<size_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t least = INT64_MAX;
  do {
    int64_t total = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      ArenaSpan &span = spans[order[i]];
      span.offset = 0;
      for (size_t j = 0; j < i;) {
        const ArenaSpan &other = spans[order[j++]];
        if (span.first <= other.last && other.first <= span.last &&
            span.offset < other.offset + size(other) &&
            other.offset < span.offset + size(span)) {
          span.offset = other.offset + size(other);
          j = 0;
        }
      }
      total = std::max(total, span.offset + size(span));
    }
    least = std::min(least, total);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(Arena, IsNearTheLeastOfAllOrders) {
  std::mt19937 random(2);
  int64_t planned = 0, least = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<ArenaSpan> spans(7);
    for (ArenaSpan &span : spans) {
      span.bytes = 64 * (1 + random() % 8);
      span.first = random() % 6;
      span.last = span.first + random() % 4;
    }
    int64_t mine = planArena(spans), best = leastArena(spans);
    EXPECT_GE(mine, best);
    planned += mine;
    least += best;
  }
  EXPECT_LE(planned * 1000, least * 1002) << planned << " for " << least;
}

/// Kept values that go in turn while gradients come: largest first leaves gaps.
TEST(Arena, NearlyReachesTheLoadOfABackward) {
  std::mt19937 random(3);
  int64_t planned = 0, load = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<ArenaSpan> spans;
    for (int64_t layer = 0; layer < 12; ++layer) {
      spans.push_back({int64_t(64 * (1 + random() % 16)), layer, 30 - layer});
      spans.push_back({int64_t(64 * (1 + random() % 8)), 18 + layer, 40});
      spans.push_back(
          {int64_t(64 * (1 + random() % 4)), 18 + layer, 19 + layer});
    }
    load += arenaLoad(spans);
    planned += planArena(spans);
  }
  EXPECT_LE(planned * 1000, load * 1002) << planned << " for " << load;
}
