// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- IndexingTest.cpp - topk, argmax, cumsum, scatter, gather -----------===//
#include "KernelTest.h"

using namespace mtp;
using namespace mtp::test;
using nlohmann::json;

namespace {

const std::vector<DType> allTypes = {
    DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32,
    DType::I16, DType::I8,  DType::U64, DType::U32,  DType::U16, DType::U8};

Buffer make(DType type, std::vector<int64_t> shape,
            const std::vector<double> &values) {
  Buffer buffer(type, shape);
  for (size_t i = 0; i < values.size(); ++i)
    buffer.set(int64_t(i), values[i]);
  return buffer;
}

std::vector<double> list(const Buffer &buffer) {
  std::vector<double> values;
  for (int64_t i = 0; i < buffer.count(); ++i)
    values.push_back(buffer.get(i));
  return values;
}
using List = std::vector<double>;

TEST(TopK, TiesGoToTheLowerIndexInEveryType) {
  for (DType type : allTypes) {
    Buffer x = make(type, {2, 5}, {3, 7, 7, 1, 3, 0, 0, 0, 0, 9});
    Buffer values(type, {2, 3}), indices(DType::I64, {2, 3});
    Call call("topk", {{"axis", -1}, {"k", 3}});
    call.site.results = 2;
    ASSERT_TRUE(call.run({&x, &values, &indices})) << call.error;
    EXPECT_EQ(list(values), (List{7, 7, 3, 9, 0, 0}));
    EXPECT_EQ(list(indices), (List{1, 2, 0, 4, 0, 1}));
    Call least("topk", {{"axis", 1}, {"k", 3}, {"largest", false}});
    ASSERT_TRUE(least.run({&x, &values, &indices})) << least.error;
    EXPECT_EQ(list(values), (List{1, 3, 3, 0, 0, 0}));
    EXPECT_EQ(list(indices), (List{3, 0, 4, 0, 1, 2}));
  }
}

TEST(TopK, InnerAxesAndNaN) {
  Buffer x = make(DType::F32, {3, 2}, {1, 5, NAN, 4, 2, 6});
  Buffer values(DType::F32, {2, 2}), indices(DType::I64, {2, 2});
  Call call("topk", {{"axis", 0}, {"k", 2}});
  ASSERT_TRUE(call.run({&x, &values, &indices})) << call.error;
  EXPECT_EQ(list(indices), (List{1, 2, 2, 0}));
  Buffer none(DType::F32, {0, 2}), noIndices(DType::I64, {0, 2});
  Call empty("topk", {{"axis", 0}, {"k", 0}});
  EXPECT_TRUE(empty.run({&x, &none, &noIndices})) << empty.error;
  Call many("topk", {{"axis", 0}, {"k", 4}});
  EXPECT_FALSE(many.prepare({&x, &values, &indices}));
  EXPECT_EQ(many.error, "topk: k = 4 of 3 elements");
}

TEST(ArgMax, FirstAndLastIndexOfTies) {
  for (DType type : allTypes) {
    Buffer x = make(type, {2, 4}, {3, 7, 7, 1, 0, 0, 9, 0});
    Buffer indices(DType::I64, {2}), kept(DType::I64, {2, 1});
    Call first("argmax", {{"axis", 1}}),
        last("argmax", {{"axis", 1}, {"selectLastIndex", true}});
    ASSERT_TRUE(first.run({&x, &indices}) && last.run({&x, &kept}))
        << first.error << last.error;
    EXPECT_EQ(list(indices), (List{1, 2}));
    EXPECT_EQ(list(kept), (List{2, 2}));
    Call least("argmin", {{"axis", 1}}),
        lastLeast("argmin", {{"axis", 1}, {"selectLastIndex", true}});
    ASSERT_TRUE(least.run({&x, &indices}) && lastLeast.run({&x, &kept}));
    EXPECT_EQ(list(indices), (List{3, 0}));
    EXPECT_EQ(list(kept), (List{3, 3}));
  }
  Buffer x = make(DType::F64, {4}, {3, NAN, 7, NAN}), index(DType::I64, {1});
  for (const char *kind : {"argmax", "argmin"}) {
    Call call(kind, {{"axis", 0}});
    ASSERT_TRUE(call.run({&x, &index}));
    EXPECT_EQ(index.get(0), 1);
  }
}

TEST(CumSum, AllFourDirectionsInEveryType) {
  for (DType type : allTypes) {
    Buffer x = make(type, {3, 2}, {1, 2, 3, 4, 5, 6}), y(type, {3, 2});
    struct Case {
      bool exclusive, reverse;
      List expected;
    };
    for (const Case &c : {Case{false, false, {1, 2, 4, 6, 9, 12}},
                          Case{true, false, {0, 0, 1, 2, 4, 6}},
                          Case{false, true, {9, 12, 8, 10, 5, 6}},
                          Case{true, true, {8, 10, 5, 6, 0, 0}}}) {
      Call call(
          "cumsum",
          {{"axis", 0}, {"exclusive", c.exclusive}, {"reverse", c.reverse}});
      ASSERT_TRUE(call.run({&x, &y})) << call.error;
      EXPECT_EQ(list(y), c.expected);
    }
  }
}

TEST(ScatterElements, ReductionsInEveryType) {
  struct Case {
    const char *reduction;
    List expected;
  };
  for (DType type : allTypes)
    for (const Case &c :
         {Case{"none", {1, 9, 3, 4, 5, 2}}, Case{"add", {1, 11, 3, 4, 5, 15}},
          Case{"mul", {1, 18, 3, 4, 5, 84}}, Case{"max", {1, 9, 3, 4, 5, 7}},
          Case{"min", {1, 2, 3, 4, 5, 2}}}) {
      Buffer x = make(type, {2, 3}, {1, 2, 3, 4, 5, 6}), y(type, {2, 3});
      Buffer indices = make(DType::I64, {2, 2}, {1, 1, -1, 2}),
             i32 = make(DType::I32, {2, 2}, {1, 1, -1, 2});
      Buffer updates = make(type, {2, 2}, {9, 1, 7, 2});
      // Row 0 gets 9 alone: the second update of column 1 is moved to row 1.
      indices.set(1, 0), i32.set(1, 0);
      updates.set(1, c.reduction == std::string("mul")   ? 1
                     : c.reduction == std::string("add") ? 0
                                                         : 1);
      for (Buffer *index : {&indices, &i32}) {
        Call call("scatter_elements",
                  {{"axis", 1}, {"reduction", c.reduction}});
        ASSERT_TRUE(call.run({&x, index, &updates, &y})) << call.error;
        EXPECT_EQ(list(y), c.expected) << c.reduction << " " << name(type);
      }
    }
}

TEST(ScatterElements, IndicesOutOfRangeAreNamed) {
  Buffer x(DType::F32, {2, 3}), y(DType::F32, {2, 3}),
      updates(DType::F32, {2, 2});
  Buffer indices = make(DType::I64, {2, 2}, {0, 1, 2, -4});
  Call call("scatter_elements", {{"axis", 1}});
  EXPECT_FALSE(call.run({&x, &indices, &updates, &y}));
  EXPECT_EQ(call.error,
            "scatter_elements: index -4 at position [1, 1] is out of range: "
            "dimension 1 has 3 elements");
}

TEST(ScatterNd, SlicesAndElements) {
  Buffer x = make(DType::F32, {3, 2}, {1, 2, 3, 4, 5, 6}),
         y(DType::F32, {3, 2});
  Buffer rows = make(DType::I64, {2, 1}, {2, -3}),
         updates = make(DType::F32, {2, 2}, {10, 20, 30, 40});
  Call call("scatter_nd", json::object());
  ASSERT_TRUE(call.run({&x, &rows, &updates, &y})) << call.error;
  EXPECT_EQ(list(y), (List{30, 40, 3, 4, 10, 20}));
  Buffer cells = make(DType::I64, {3, 2}, {0, 0, 2, 1, 0, 0}),
         three = make(DType::F32, {3}, {1, 2, 3});
  Call add("scatter_nd", {{"reduction", "add"}});
  ASSERT_TRUE(add.run({&x, &cells, &three, &y})) << add.error;
  EXPECT_EQ(list(y), (List{5, 2, 3, 4, 5, 8}));
  cells.set(3, 2);
  EXPECT_FALSE(add.run({&x, &cells, &three, &y}));
  EXPECT_EQ(add.error,
            "scatter_nd: index 2 at position [1, 1] is out of range: "
            "dimension 1 has 2 elements");
}

TEST(ScatterNd, WorksInPlace) {
  Buffer x = make(DType::I64, {3}, {1, 2, 3}),
         rows = make(DType::I64, {1, 1}, {1});
  Buffer updates = make(DType::I64, {1}, {7});
  Call call("scatter_nd", {{"reduction", "mul"}});
  ASSERT_TRUE(call.run({&x, &rows, &updates, &x})) << call.error;
  EXPECT_EQ(list(x), (List{1, 14, 3}));
}

TEST(GatherNd, BatchDimensionsAndSlices) {
  Buffer x = make(DType::F64, {2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  Buffer whole = make(DType::I64, {2, 1}, {1, 0}), y(DType::F64, {2, 2, 2});
  Call slices("gather_nd", json::object());
  ASSERT_TRUE(slices.run({&x, &whole, &y})) << slices.error;
  EXPECT_EQ(list(y), (List{4, 5, 6, 7, 0, 1, 2, 3}));
  Buffer row(DType::F64, {2, 2});
  Call batched("gather_nd", {{"batchDims", 1}});
  ASSERT_TRUE(batched.run({&x, &whole, &row})) << batched.error;
  EXPECT_EQ(list(row), (List{2, 3, 4, 5}));
  whole.set(1, 5);
  EXPECT_FALSE(batched.run({&x, &whole, &row}));
  EXPECT_EQ(batched.error,
            "gather_nd: index 5 at position [1, 0] is out of range: "
            "dimension 1 has 2 elements");
}

/// The definition, in the order of the indices.
std::vector<double> gatherGradient(const Buffer &indices, const Buffer &g,
                                   int64_t outer, int64_t rows, int64_t inner) {
  std::vector<double> y(size_t(outer * rows * inner), 0);
  int64_t count = indices.count();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i) {
      int64_t row = int64_t(indices.get(i));
      row += row < 0 ? rows : 0;
      for (int64_t j = 0; row >= 0 && row < rows && j < inner; ++j)
        y[size_t((o * rows + row) * inner + j)] +=
            g.get((o * count + i) * inner + j);
    }
  return y;
}

TEST(GatherGradient, SumsSlicesIntoRows) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (DType indexType : {DType::I64, DType::I32})
      for (auto [outer, rows, inner] : {std::tuple{1, 700, 33},
                                        {3, 5, 17},
                                        {2, 2, 300},
                                        {1, 1, 1},
                                        {4, 9, 0},
                                        {2, 0, 3}}) {
        Buffer indices(indexType, {3, 11});
        for (int64_t i = 0; i < indices.count(); ++i)
          indices.set(i, double(i * 37 % (rows + 3)) -
                             (i % 5 == 0 ? double(rows) : 0));
        Buffer g(type, {outer, 3, 11, inner}), y(type, {outer, rows, inner});
        g.fill(3);
        y.fill(9);
        Buffer more = y;
        for (int threads : {1, 4}) {
          Call call("gather_gradient", {{"axis", 1}});
          call.context.threads = threads;
          ASSERT_TRUE(call.run({&indices, &g, threads == 1 ? &y : &more}))
              << call.error;
        }
        EXPECT_EQ(y.bytes, more.bytes);
        EXPECT_LE(difference(y, gatherGradient(indices, g, outer, rows, inner)),
                  type == DType::F64   ? 1e-15
                  : type == DType::F32 ? 1e-6
                                       : 2e-2);
      }
}

TEST(GatherGradient, RefusesShapesThatDoNotFit) {
  Buffer indices(DType::I64, {3}), g(DType::F32, {3, 4}), y(DType::F32, {9, 5});
  Call call("gather_gradient", {{"axis", 0}});
  EXPECT_FALSE(call.prepare({&indices, &g, &y}));
  EXPECT_NE(call.error.find("don't fit together"), std::string::npos);
  Buffer integers(DType::I64, {9, 4}), gi(DType::I64, {3, 4});
  EXPECT_FALSE(call.prepare({&indices, &gi, &integers}));
}

} // namespace
