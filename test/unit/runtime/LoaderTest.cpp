// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/loader/Convert.h"
#include "runtime/loader/ParameterLoader.h"
#include "runtime/loader/StridedView.h"
#include "runtime/support/Checked.h"
#include "runtime/support/Half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace mtp;
using Step = RecipeStep;

namespace {

/// The tensor after `recipe`, one element at a time.
struct Plain {
  std::vector<int64_t> shape;
  std::vector<int32_t> values;

  void apply(const Step &step) {
    Plain result;
    std::vector<int64_t> strides = denseStrides(shape), from = strides;
    int64_t start = 0;
    result.shape = shape;
    if (step.kind == Step::Kind::Reshape) {
      shape = step.values;
      return;
    }
    if (step.kind == Step::Kind::Transpose)
      for (size_t i = 0; i < shape.size(); ++i) {
        result.shape[i] = shape[step.values[i]];
        from[i] = strides[step.values[i]];
      }
    if (step.kind == Step::Kind::Slice) {
      result.shape[step.dim] = step.size;
      start = step.start * strides[step.dim];
    }
    for (int64_t n = 0, count = elementCount(result.shape); n < count; ++n) {
      int64_t rest = n, at = start;
      for (size_t i = result.shape.size(); i-- > 0;) {
        at += rest % result.shape[i] * from[i];
        rest /= result.shape[i];
      }
      result.values.push_back(values[at]);
    }
    *this = result;
  }
};

Step transpose(std::vector<int64_t> permutation) {
  return {Step::Kind::Transpose, std::move(permutation)};
}
Step slice(int64_t dim, int64_t start, int64_t size) {
  return {Step::Kind::Slice, {}, dim, start, size};
}
Step reshape(std::vector<int64_t> shape) {
  return {Step::Kind::Reshape, std::move(shape)};
}

void checkRecipe(std::vector<int64_t> shape, std::vector<Step> recipe,
                 int cutDim, int64_t unit) {
  Plain plain{shape, std::vector<int32_t>(elementCount(shape))};
  for (size_t i = 0; i < plain.values.size(); ++i)
    plain.values[i] = static_cast<int32_t>(i + 1);
  std::vector<int32_t> stored = plain.values;
  for (const Step &step : recipe)
    plain.apply(step);

  Mesh mesh{{{"tp", 3}}};
  Parameter parameter;
  parameter.source.type = DType::I32;
  parameter.source.shape = shape;
  parameter.recipe = recipe;
  parameter.layout.shape = plain.shape;
  parameter.layout.dims.resize(plain.shape.size());
  if (cutDim >= 0)
    parameter.layout.dims[cutDim] = {{0}, unit};
  for (DType type : {DType::I32, DType::F64, DType::BF16}) {
    parameter.layout.type = type;
    for (int64_t rank = 0; rank < 3; ++rank) {
      LoadedBlock block =
          loadBlock(parameter, reinterpret_cast<const char *>(stored.data()),
                    mesh, mesh.coordinates(rank));
      std::vector<int64_t> capacity = parameter.layout.localShape(mesh);
      int64_t count = elementCount(capacity);
      std::vector<double> values(count);
      convertElements(type, block.data, DType::F64,
                      reinterpret_cast<char *>(values.data()), count);
      for (int64_t n = 0; n < count; ++n) {
        int64_t rest = n, at = 0, step = 1;
        bool valid = true;
        for (size_t i = capacity.size(); i-- > 0;) {
          Block b = blockOf(plain.shape[i], parameter.layout.dims[i], mesh,
                            mesh.coordinates(rank));
          int64_t local = rest % capacity[i];
          rest /= capacity[i];
          valid &= local < b.valid;
          at += (b.offset + local) * step;
          step *= plain.shape[i];
        }
        double expected = valid ? plain.values[at] : 0;
        if (type == DType::BF16)
          expected = bf16ToFloat(floatToBf16(static_cast<float>(expected)));
        ASSERT_EQ(values[n], expected) << name(type) << " rank " << rank;
      }
    }
  }
}

TEST(ParameterLoader, RecipesCutsAndConversions) {
  for (int64_t unit : {1, 2})
    for (int dim : {-1, 0, 1}) {
      checkRecipe({7, 5}, {}, dim, unit);
      checkRecipe({7, 5}, {transpose({1, 0})}, dim, unit);
      checkRecipe({4, 9, 5}, {transpose({2, 0, 1})}, dim, unit);
      checkRecipe({6, 12}, {slice(1, 4, 5)}, dim, unit);
      checkRecipe({6, 12}, {reshape({6, 3, 4}), transpose({1, 0, 2})}, dim,
                  unit);
      checkRecipe({6, 12}, {transpose({1, 0}), reshape({3, 24})}, dim, unit);
      checkRecipe({6, 12},
                  {slice(1, 2, 6), reshape({6, 2, 3}), transpose({2, 1, 0}),
                   slice(0, 1, 2)},
                  dim, unit);
      checkRecipe({70, 90}, {transpose({1, 0})}, dim, unit);
      checkRecipe({2, 1}, {}, dim, unit);
    }
  checkRecipe({}, {}, -1, 1);
  checkRecipe({0, 3}, {transpose({1, 0})}, 0, 1);
}

TEST(ParameterLoader, AnUnchangedBlockStaysInTheSource) {
  Mesh mesh{{{"tp", 2}}};
  Parameter parameter;
  parameter.source.shape = parameter.layout.shape = {4, 3};
  parameter.layout.dims = {{{0}, 1}, {}};
  AlignedBuffer source(48);
  LoadedBlock block = loadBlock(parameter, source.data(), mesh, {1});
  EXPECT_TRUE(block.owned.empty());
  EXPECT_EQ(block.data, source.data() + 24);
  // A file may hold it anywhere: what isn't aligned is copied.
  AlignedBuffer odd(50);
  EXPECT_FALSE(loadBlock(parameter, odd.data() + 1, mesh, {1}).owned.empty());
  parameter.layout.dims = {{}, {{0}, 1}};
  EXPECT_FALSE(loadBlock(parameter, source.data(), mesh, {0}).owned.empty());
}

TEST(Half, EveryBf16AndF16RoundTrips) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float b = bf16ToFloat(half), f = f16ToFloat(half);
    if (std::isnan(b))
      EXPECT_TRUE(std::isnan(bf16ToFloat(floatToBf16(b))));
    else
      EXPECT_EQ(floatToBf16(b), half);
    if (std::isnan(f))
      EXPECT_TRUE(std::isnan(f16ToFloat(floatToF16(f))));
    else
      EXPECT_EQ(floatToF16(f), half);
  }
}

TEST(Half, RoundsToNearestEven) {
  std::mt19937 random(5);
  for (int i = 0; i < 200000; ++i) {
    float value =
        std::ldexp(static_cast<float>(random()) / 4294967296.0f + 0.5f,
                   static_cast<int>(random() % 50) - 30);
    for (bool brain : {true, false}) {
      auto down = [&](uint16_t h) {
        return brain ? bf16ToFloat(h) : f16ToFloat(h);
      };
      uint16_t half = brain ? floatToBf16(value) : floatToF16(value);
      double error = std::abs(double(down(half)) - value);
      for (int step : {-1, 1}) {
        if (half == 0 && step < 0)
          continue;
        auto other = static_cast<uint16_t>(half + step);
        double theirs = std::abs(double(down(other)) - value);
        // Infinity stands for 2^16 when f16 overflows.
        if (!brain && std::isinf(down(other)))
          theirs = std::abs(65536.0 - value);
        if (!brain && std::isinf(down(half)))
          continue;
        EXPECT_TRUE(error < theirs || (error == theirs && half % 2 == 0))
            << value << " " << half;
      }
    }
  }
}

template <typename To, typename From>
To convert(DType from, From value, DType to) {
  To result;
  convertElements(from, reinterpret_cast<const char *>(&value), to,
                  reinterpret_cast<char *>(&result), 1);
  return result;
}

TEST(Convert, EdgesOfTypes) {
  EXPECT_EQ((convert<int32_t>(DType::F32, 3e9f, DType::I32)),
            std::numeric_limits<int32_t>::max());
  EXPECT_EQ((convert<uint8_t>(DType::F64, -4.0, DType::U8)), 0);
  EXPECT_EQ((convert<int64_t>(DType::F32, NAN, DType::I64)), 0);
  EXPECT_EQ((convert<int64_t>(DType::I32, int32_t(-7), DType::I64)), -7);
  EXPECT_EQ((convert<uint64_t>(DType::U64, UINT64_MAX, DType::U64)),
            UINT64_MAX);
  EXPECT_EQ((convert<uint8_t>(DType::F32, 0.5f, DType::Bool)), 1);
  EXPECT_EQ((convert<uint8_t>(DType::Bool, uint8_t(9), DType::Bool)), 1);
  EXPECT_EQ((convert<double>(DType::F32, 0.1f, DType::F64)), double(0.1f));
  EXPECT_EQ((convert<uint16_t>(DType::F64, 1.0, DType::BF16)), 0x3f80);
}

} // namespace
