// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/Arena.h"

#include <gtest/gtest.h>
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
