// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/artifact/Artifact.h"

#include <gtest/gtest.h>

using namespace mtp;

namespace {

struct Row {
  int64_t extent, unit, size, capacity;
  std::vector<int64_t> offsets, valid;
};

TEST(BlockOf, OneAxis) {
  const Row rows[] = {
      {5, 1, 3, 2, {0, 2, 4}, {2, 2, 1}},
      {4, 1, 3, 2, {0, 2, 4}, {2, 2, 0}},
      {6, 1, 3, 2, {0, 2, 4}, {2, 2, 2}},
      {1, 1, 3, 1, {0, 1, 2}, {1, 0, 0}},
      {0, 1, 2, 0, {0, 0}, {0, 0}},
      {30 * 64, 64, 4, 512, {0, 512, 1024, 1536}, {512, 512, 512, 384}},
      {101, 1, 2, 51, {0, 51}, {51, 50}},
      {5, 2, 2, 4, {0, 4}, {4, 1}},
      {3, 4, 2, 4, {0, 4}, {3, 0}}};
  for (const Row &row : rows) {
    Mesh mesh{{{"tp", row.size}}};
    for (int64_t rank = 0; rank < row.size; ++rank) {
      Block block =
          blockOf(row.extent, {{0}, row.unit}, mesh, mesh.coordinates(rank));
      EXPECT_EQ(block.capacity, row.capacity) << row.extent;
      EXPECT_EQ(block.offset, row.offsets[rank]) << row.extent;
      EXPECT_EQ(block.valid, row.valid[rank]) << row.extent;
    }
  }
}

TEST(BlockOf, NestedBlocksNeverReachIntoTheNextParent) {
  Mesh mesh{{{"dp", 2}, {"tp", 2}}};
  const int64_t offset[] = {0, 2, 3, 5}, valid[] = {2, 1, 2, 1};
  for (int64_t rank = 0; rank < 4; ++rank) {
    Block block = blockOf(6, {{0, 1}, 1}, mesh, mesh.coordinates(rank));
    EXPECT_EQ(block.capacity, 2);
    EXPECT_EQ(block.offset, offset[rank]);
    EXPECT_EQ(block.valid, valid[rank]);
  }
}

TEST(BlockOf, ValidPartsTileTheDimension) {
  Mesh mesh{{{"a", 3}, {"b", 2}, {"c", 2}}};
  for (const std::vector<int> &axes :
       {std::vector<int>{0, 1}, {2, 0}, {1, 0, 2}, {0}, {}})
    for (int64_t unit : {1, 2, 3})
      for (int64_t extent = 0; extent < 40; ++extent) {
        std::vector<int> owners(extent, 0);
        int64_t copies = mesh.ranks();
        for (int axis : axes)
          copies /= mesh.axes[axis].size;
        for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
          Block b = blockOf(extent, {axes, unit}, mesh, mesh.coordinates(rank));
          EXPECT_LE(b.valid, b.capacity);
          for (int64_t i = 0; i < b.valid; ++i)
            ++owners[b.offset + i];
        }
        for (int count : owners)
          EXPECT_EQ(count, copies);
      }
}

TEST(Mesh, CoordinatesCountTheLastAxisFastest) {
  Mesh mesh{{{"dp", 2}, {"tp", 3}}};
  EXPECT_EQ(mesh.ranks(), 6);
  EXPECT_EQ(mesh.coordinates(4), (std::vector<int64_t>{1, 1}));
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::Bool); ++i) {
    DType type;
    ASSERT_TRUE(parseDType(name(static_cast<DType>(i)), type));
    EXPECT_EQ(type, static_cast<DType>(i));
  }
  DType type;
  EXPECT_FALSE(parseDType("f128", type));
}

} // namespace
