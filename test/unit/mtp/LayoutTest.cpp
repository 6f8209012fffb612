// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LayoutTest.cpp - blocks, layout text, reshape factors --------------===//

#include "dialects/mtp/Layout.h"
#include "dialects/mtp/ShardingRule.h"
#include "runtime/artifact/Artifact.h"

#include <gtest/gtest.h>

using namespace mtp;

static MeshShape
mesh(std::initializer_list<std::pair<const char *, int64_t>> axes) {
  MeshShape mesh;
  for (auto [name, size] : axes)
    mesh.axes.push_back({name, -1, size});
  return mesh;
}

/// Compiler and runtime cut alike: every extent, unit and order of axes.
TEST(Layout, BlocksAreThoseOfTheRuntime) {
  MeshShape shape = mesh({{"dp", 2}, {"tp", 3}, {"ep", 2}});
  Mesh runtime;
  for (const MeshShape::Axis &axis : shape.axes)
    runtime.axes.push_back({axis.parent, axis.size});
  const std::vector<std::vector<int>> orders = {{0},    {1},       {0, 1},
                                                {1, 0}, {2, 0, 1}, {1, 2}};
  for (int64_t extent = 0; extent <= 40; ++extent)
    for (int64_t unit : {1, 2, 4, 7})
      for (const std::vector<int> &order : orders) {
        Layout layout(3, 1);
        for (int axis : order)
          layout.shard(axis, 0);
        layout.dims[0].unit = unit;
        for (int64_t rank = 0; rank < runtime.ranks(); ++rank) {
          std::vector<int64_t> at = runtime.coordinates(rank);
          BlockExtent have = layout.block(0, extent, shape, at);
          Block want = blockOf(extent, {order, unit}, runtime, at);
          EXPECT_EQ(have.capacity, want.capacity);
          EXPECT_EQ(have.valid, want.valid);
          if (want.valid) {
            EXPECT_EQ(have.offset, want.offset);
          }
        }
      }
}

TEST(Layout, BlocksCoverTheDimensionOnce) {
  MeshShape shape = mesh({{"dp", 3}, {"tp", 2}});
  for (int64_t extent = 1; extent <= 30; ++extent) {
    Layout layout(2, 1);
    layout.shard(1, 0);
    layout.shard(0, 0);
    std::vector<int> covered(extent, 0);
    for (int64_t dp = 0; dp < 3; ++dp)
      for (int64_t tp = 0; tp < 2; ++tp) {
        BlockExtent block = layout.block(0, extent, shape, {dp, tp});
        for (int64_t i = 0; i < block.valid; ++i)
          covered[block.offset + i]++;
      }
    EXPECT_EQ(covered, std::vector<int>(extent, 1)) << extent;
  }
}

TEST(Layout, TextParsesBack) {
  MeshShape shape;
  shape.axes = {{"dp", -1, 2}, {"tp", 0, 2}, {"tp", 1, 2}};
  for (const char *text :
       {"", "tp = S(1)", "dp = S(0), tp = R", "tp.0 = S(1), dp = R, tp.1 = R",
        "tp = S(2, unit 4), dp = P(sum)", "tp.1 = S(0), tp.0 = S(0)",
        "dp = P(max)"}) {
    std::string error;
    auto layout = parseLayout(text, {5, 6, 28}, shape, error);
    ASSERT_TRUE(layout) << text << ": " << error;
    EXPECT_EQ(layout->text(shape), text);
  }
}

TEST(Layout, BadTextIsRefusedWithTheReason) {
  MeshShape shape = mesh({{"tp", 2}});
  const std::pair<const char *, const char *> bad[] = {
      {"ep = R", "no axis 'ep'"},    {"tp = Q", "not a state"},
      {"tp = S(3)", "rank 2"},       {"tp = R, tp = R", "given twice"},
      {"tp = S(-1)", "not a state"}, {"tp", "not a state"}};
  for (auto [text, reason] : bad) {
    std::string error;
    EXPECT_FALSE(parseLayout(text, {4, 4}, shape, error)) << text;
    EXPECT_NE(error.find(reason), std::string::npos) << text << ": " << error;
  }
}

/// A unit that changes no block is written as none.
TEST(Layout, UnitsAreCanonical) {
  MeshShape shape = mesh({{"tp", 2}});
  std::string error;
  auto even = parseLayout("tp = S(0, unit 64)", {256}, shape, error);
  EXPECT_EQ(even->text(shape), "tp = S(0)");
  auto uneven = parseLayout("tp = S(0, unit 64)", {192}, shape, error);
  EXPECT_EQ(uneven->text(shape), "tp = S(0, unit 64)");
}

static std::string reshapeText(llvm::ArrayRef<int64_t> from,
                               llvm::ArrayRef<int64_t> to) {
  llvm::SmallVector<Factor> factors;
  TensorFactors sides[2];
  reshapeFactors(from, to, factors, sides[0], sides[1]);
  std::string text;
  for (auto &side : sides) {
    for (auto &dim : side) {
      text += "(";
      for (int factor : dim)
        text += (factors[factor].kind == FactorKind::Whole ? "!" : "") +
                std::to_string(factors[factor].size) + " ";
      text += ")";
    }
    text += &side == sides ? " -> " : "";
  }
  return text;
}

TEST(ReshapeFactors, SplitMergeAndWhatDoesNotFactor) {
  EXPECT_EQ(reshapeText({8, 12}, {8, 3, 4}), "(8 )(3 4 ) -> (8 )(3 )(4 )");
  EXPECT_EQ(reshapeText({2, 3, 8}, {6, 2, 4}),
            "(2 )(3 )(2 4 ) -> (2 3 )(2 )(4 )");
  EXPECT_EQ(reshapeText({2, 3}, {3, 2}), "(!2 )(!3 ) -> (!3 )(!2 )");
  EXPECT_EQ(reshapeText({5, 1, 6}, {5, 6}), "(5 )()(6 ) -> (5 )(6 )");
  EXPECT_EQ(reshapeText({4, 0}, {0}), "(!4 )(!0 ) -> (!0 )");
  EXPECT_EQ(reshapeText({}, {1, 1}), " -> ()()");
}
