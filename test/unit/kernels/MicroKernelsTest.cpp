// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MicroKernelsTest.cpp - every instruction set this CPU has ----------===//
#include "runtime/kernels/MicroKernels.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

using namespace mtp;

namespace {

template <typename T> class MicroKernelsTest : public testing::Test {};
using Types = testing::Types<float, double, uint32_t, uint64_t>;
TYPED_TEST_SUITE(MicroKernelsTest, Types);

template <typename T> std::vector<T> numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> result(count);
  for (T &x : result)
    x = T(random() % 2001) / T(std::is_integral_v<T> ? 1 : 1000);
  return result;
}

TYPED_TEST(MicroKernelsTest, TilesOfEveryHeightMatchTheDefinition) {
  using T = TypeParam;
  const MicroKernels<T> *tables[3];
  int count = microKernelTables<T>(tables);
  ASSERT_GE(count, 1);
  for (int t = 0; t < count; ++t) {
    const MicroKernels<T> &micro = *tables[t];
    int64_t columns = micro.columns, ldc = columns + 3;
    for (int m = 1; m <= micro.rows; ++m)
      for (int64_t k : {0, 1, 37})
        for (bool accumulate : {false, true})
          for (bool unitRow : {false, true}) {
            int64_t stride = unitRow ? m + 1 : k + 5;
            auto a = numbers<T>(size_t((m + 1) * (k + 5) + 64), 1);
            auto b = numbers<T>(size_t(k * columns), 2);
            auto c = numbers<T>(size_t(m * ldc), 3), before = c;
            (unitRow ? micro.unitRow : micro.unitColumn)(
                m, k, a.data(), stride, b.data(), c.data(), ldc, accumulate);
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < columns; ++j) {
                T sum = accumulate ? before[i * ldc + j] : T(0);
                for (int64_t p = 0; p < k; ++p)
                  sum += a[unitRow ? i + p * stride : i * stride + p] *
                         b[p * columns + j];
                if constexpr (std::is_integral_v<T>)
                  ASSERT_EQ(c[i * ldc + j], sum);
                else
                  ASSERT_NEAR(c[i * ldc + j], sum,
                              sum * 20 * std::numeric_limits<T>::epsilon());
              }
          }
  }
}

template <typename T> void checkExponential(double within) {
  const MicroKernels<T> *tables[3];
  int count = microKernelTables<T>(tables);
  for (int t = 0; t < count; ++t) {
    const MicroKernels<T> &micro = *tables[t];
    size_t n = size_t(micro.columns);
    // One row whose maximum is 0: the scores become exp(score).
    for (double x = 0; x > -90; x -= 0.0137) {
      std::vector<T> scores(2 * n, T(0)), top(n, -T(INFINITY)), sum(n, T(0)),
          correction(n);
      for (size_t j = 0; j < n; ++j)
        scores[n + j] = T(x - double(j) * 1e-4);
      auto given = scores;
      micro.softmaxStep(scores.data(), 2, top.data(), sum.data(),
                        correction.data());
      for (size_t j = 0; j < n; ++j) {
        double expected = std::exp(double(given[n + j]));
        if (expected < double(std::numeric_limits<T>::min()) * 1.1)
          continue; // flushed to 0
        ASSERT_NEAR(double(scores[n + j]), expected, expected * within) << x;
        ASSERT_EQ(top[j], T(0));
        ASSERT_EQ(correction[j], T(0));
      }
    }
  }
}

TEST(MicroKernels, ExponentialsAreAccurate) {
  checkExponential<float>(2e-7);
  checkExponential<double>(5e-16);
}

template <typename T> void checkSpecialValues() {
  const MicroKernels<T> *tables[3];
  int count = microKernelTables<T>(tables);
  const T infinity = T(INFINITY), nan = T(NAN);
  for (int t = 0; t < count; ++t) {
    const MicroKernels<T> &micro = *tables[t];
    size_t n = size_t(micro.columns);
    std::vector<T> scores(n, -infinity), top(n, -infinity), sum(n, T(0)),
        correction(n);
    micro.softmaxStep(scores.data(), 1, top.data(), sum.data(),
                      correction.data());
    EXPECT_EQ(sum[0], T(0)); // nothing visible yet, and no NaN
    EXPECT_EQ(scores[0], T(0));
    std::fill(scores.begin(), scores.end(), nan);
    micro.softmaxStep(scores.data(), 1, top.data(), sum.data(),
                      correction.data());
    EXPECT_TRUE(std::isnan(sum[n - 1]));
  }
}

TEST(MicroKernels, MaskedAndNaNScores) {
  checkSpecialValues<float>();
  checkSpecialValues<double>();
}

TEST(MicroKernels, SoftcapKeepsRelativeAccuracy) {
  const MicroKernels<float> *tables[3];
  int count = microKernelTables<float>(tables);
  for (int t = 0; t < count; ++t)
    for (double x = -200; x < 200; x += 0.1) {
      std::vector<float> values(size_t(tables[t]->columns), float(x));
      tables[t]->softcap(values.data(), tables[t]->columns, 30);
      double expected = 30 * std::tanh(double(float(x)) / 30);
      ASSERT_NEAR(values[0], expected, 4e-7 * std::fabs(expected) + 1e-12);
    }
}

} // namespace
