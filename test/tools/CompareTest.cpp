// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/common/Compare.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace mtp;

static const double nan_ = std::numeric_limits<double>::quiet_NaN();
static const double inf = std::numeric_limits<double>::infinity();

static HostTensor tensor(std::vector<double> values) {
  HostTensor result(DType::F64, {int64_t(values.size())});
  std::copy(values.begin(), values.end(), result.as<double>());
  return result;
}

TEST(Compare, DividesByTheLargestOfTheReference) {
  Difference d = compareTensors("x", tensor({1, 2, 3}), tensor({1, 2.5, 4}));
  EXPECT_DOUBLE_EQ(d.maxAbs, 1);
  EXPECT_DOUBLE_EQ(d.maxRel, 0.25);
  EXPECT_TRUE(d.within(0.25, 0));
  EXPECT_FALSE(d.within(0.2, 0.1));
  EXPECT_TRUE(d.within(0, 1));
}

TEST(Compare, NanEqualsNanAndInfinityItself) {
  Difference same = compareTensors("x", tensor({nan_, inf, -inf, 1}),
                                   tensor({nan_, inf, -inf, 1}));
  EXPECT_EQ(same.maxAbs, 0);
  EXPECT_TRUE(same.within(0, 0));
  for (double wrong : {nan_, inf, -inf}) {
    EXPECT_EQ(compareTensors("x", tensor({wrong}), tensor({1})).maxAbs, inf);
    EXPECT_FALSE(
        compareTensors("x", tensor({wrong}), tensor({1})).within(1, 1));
    EXPECT_FALSE(
        compareTensors("x", tensor({1}), tensor({wrong})).within(1, 1));
  }
  EXPECT_FALSE(compareTensors("x", tensor({inf}), tensor({-inf})).within(1, 1));
}

TEST(Compare, AZeroReferenceNeedsZero) {
  EXPECT_TRUE(compareTensors("x", tensor({0}), tensor({0})).within(1e-5, 0));
  EXPECT_FALSE(
      compareTensors("x", tensor({1e-9}), tensor({0})).within(1e-5, 0));
}

TEST(Compare, ReportsShapesAndNames) {
  TensorMap a, b;
  a["both"] = tensor({1, 2});
  b["both"] = tensor({1, 2, 3});
  a["extra"] = tensor({1});
  b["missing"] = tensor({1});
  std::vector<Difference> all = compareAll(a, b);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].problem, "shape [2] instead of [3]");
  EXPECT_EQ(all[1].problem, "missing");
  EXPECT_EQ(all[2].problem, "not in the reference");
  for (const Difference &difference : all)
    EXPECT_FALSE(difference.within(1, 1)) << difference.name;
}
