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

/// Parameters of two elements after steps whose rates sum up to 0.1: the first
/// gradient is zero up to rounding, the second isn't.
static Difference compareUpdated(std::vector<double> have,
                                 std::vector<double> want,
                                 double gradientError = 1e-9,
                                 std::vector<double> gradient = {0, 1}) {
  Difference d = compareTensors("w", tensor(have), tensor(want));
  allowForRounding(d, tensor(have), tensor(want), tensor(gradient),
                   {0.1, 1e-8, gradientError});
  return d;
}

TEST(AllowForRounding, AnElementWithoutGradientMayMoveByTwiceTheRates) {
  // 8 d / eps is 0.8 of the rates here.
  EXPECT_TRUE(compareUpdated({1.08, 2}, {1, 2}).within(1e-9, 0));
  EXPECT_FALSE(compareUpdated({1.081, 2}, {1, 2}).within(1e-9, 0));
  // However far off the gradient is: twice.
  EXPECT_TRUE(compareUpdated({1.2, 2}, {1, 2}, 1).within(1e-9, 0));
  EXPECT_FALSE(compareUpdated({1.201, 2}, {1, 2}, 1).within(1e-9, 0));
}

TEST(AllowForRounding, EachElementHasItsOwnAllowance) {
  // What the first may be off, the second may not.
  EXPECT_FALSE(compareUpdated({1, 2.08}, {1, 2}).within(1e-9, 0));
  EXPECT_FALSE(compareUpdated({1.08, 2.001}, {1, 2}).within(1e-9, 0));
  EXPECT_TRUE(compareUpdated({1.08, 2 + 1e-11}, {1, 2}).within(1e-9, 0));
  Difference d = compareUpdated({1.08, 2.001}, {1, 2});
  EXPECT_NEAR(d.maxAbs, 0.08, 1e-12);
  EXPECT_NEAR(d.slack, 0.08 - 0.001, 1e-9); // 0.001 is left
}

TEST(AllowForRounding, WithoutAnErrorOfTheGradientThereIsNone) {
  EXPECT_EQ(compareUpdated({1.01, 2}, {1, 2}, 0).slack, 0);
  EXPECT_EQ(compareUpdated({1, 2}, {1, 2}).slack, 0);
}

TEST(AllowForRounding, WhatIsNoNumberStaysAFault) {
  EXPECT_FALSE(compareUpdated({nan_, 2}, {1, 2}, 1).within(1, 1));
  EXPECT_FALSE(compareUpdated({inf, 2}, {1, 2}, 1).within(1, 1));
  // Another shape of the gradient: nothing is known of it.
  EXPECT_EQ(compareUpdated({1.01, 2}, {1, 2}, 1, {0, 0, 0}).slack, 0);
  Difference d = compareTensors("w", tensor({1}), tensor({1, 2}));
  allowForRounding(d, tensor({1}), tensor({1, 2}), tensor({0, 0}), {1, 1, 1});
  EXPECT_FALSE(d.within(1, 1));
}
