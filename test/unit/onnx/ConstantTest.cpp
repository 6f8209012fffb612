// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx/Constant.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace mtp;
using namespace mtp::onnx;

namespace {
Constant floats(DType type, std::vector<double> values) {
  Constant result;
  result.type = type;
  result.shape = {static_cast<int64_t>(values.size())};
  result.floats = std::move(values);
  return result;
}

TEST(Constant, CastToBooleanIsNotZero) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(convert(floats(DType::F32, {nan, 2, 0.5, -0.0}), DType::Bool).ints,
            (std::vector<int64_t>{1, 1, 1, 0}));
}

TEST(Constant, CastToIntegerTruncates) {
  EXPECT_EQ(convert(floats(DType::F32, {-1.9, 1.9, 0}), DType::I64).ints,
            (std::vector<int64_t>{-1, 1, 0}));
  EXPECT_EQ(convert(vectorOf({300, -1}), DType::U8).ints,
            (std::vector<int64_t>{44, 255}));
}

TEST(Constant, RoundsToNarrowFloats) {
  EXPECT_EQ(roundTo(65519, DType::F16), 65504);
  EXPECT_TRUE(std::isinf(roundTo(65520, DType::F16)));
  EXPECT_EQ(roundTo(1 + std::ldexp(1, -11), DType::F16), 1); // tie to even
  EXPECT_EQ(roundTo(1 + std::ldexp(3, -11), DType::F16), 1 + std::ldexp(1, -9));
  EXPECT_EQ(roundTo(std::ldexp(1, -25), DType::F16), 0);
  EXPECT_EQ(roundTo(std::ldexp(1.5, -25), DType::F16), std::ldexp(1, -24));
  EXPECT_EQ(roundTo(1.00390625, DType::BF16), 1);
  EXPECT_TRUE(std::isinf(roundTo(3.4e38, DType::BF16)));
}

TEST(Constant, BytesOfHalvesReadBack) {
  for (DType type : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    Constant value = floats(type, {1, -2.5, 0, -0.0, std::ldexp(1, -20), 1000,
                                   INFINITY, std::ldexp(1.75, -14)});
    value.normalize();
    Tensor tensor;
    tensor.type = type;
    tensor.shape = value.shape;
    tensor.owned = std::make_shared<std::string>(bytesOf(value));
    EXPECT_EQ(load(tensor, type).floats, value.floats) << name(type);
  }
}

TEST(Constant, ASplatIsWrittenOut) {
  Constant value = scalarOf(DType::I32, 7);
  value.shape = {3};
  value.splat = true;
  EXPECT_EQ(bytesOf(value), std::string("\7\0\0\0\7\0\0\0\7\0\0\0", 12));
}
} // namespace
