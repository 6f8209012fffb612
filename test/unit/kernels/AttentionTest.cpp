// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- AttentionTest.cpp - fused attention against the definition ---------===//
#include "KernelTest.h"

using namespace mtp;
using namespace mtp::test;
using nlohmann::json;

namespace {

struct Sizes {
  int64_t b = 2, h = 4, hkv = 4, s = 5, t = 7, d = 8, dv = 8;
};

struct Operands {
  Buffer q, k, v, mask, y, lse;
  bool hasMask = false;
  Operands(DType type, const Sizes &n, unsigned seed = 1)
      : q(type, {n.b, n.h, n.s, n.d}), k(type, {n.b, n.hkv, n.t, n.d}),
        v(type, {n.b, n.hkv, n.t, n.dv}), y(type, {n.b, n.h, n.s, n.dv}),
        lse(type == DType::F64 ? DType::F64 : DType::F32, {n.b, n.h, n.s}) {
    q.fill(seed), k.fill(seed + 1), v.fill(seed + 2);
  }
};

/// The definition, in double, whole rows of scores.
void reference(const json &a, const Operands &x, std::vector<double> &y,
               std::vector<double> &lse, int64_t rankOffset = 0) {
  const auto &qs = x.q.desc.shape, &ks = x.k.desc.shape;
  int64_t group = qs[1] / std::max<int64_t>(1, ks[1]), keys = ks[2],
          dv = x.v.desc.shape[3];
  bool round = a.value("compute", "") == "bf16";
  // Dense copies: the loops below are many.
  auto dense = [&](const Buffer &buffer) {
    const auto &n = buffer.desc.shape;
    std::vector<double> values;
    for (int64_t b = 0; b < n[0]; ++b)
      for (int64_t h = 0; h < n[1]; ++h)
        for (int64_t i = 0; i < n[2]; ++i)
          for (int64_t d = 0; d < n[3]; ++d) {
            double value = buffer.get(buffer.at({b, h, i, d}));
            values.push_back(
                round ? double(bf16ToFloat(floatToBf16(float(value)))) : value);
          }
    return values;
  };
  std::vector<double> q = dense(x.q), k = dense(x.k), v = dense(x.v);
  auto row = [](const std::vector<double> &values, const Buffer &buffer,
                int64_t b, int64_t h, int64_t i) {
    const auto &n = buffer.desc.shape;
    return values.data() + ((b * n[1] + h) * n[2] + i) * n[3];
  };
  y.assign(size_t(x.y.count()), 0);
  lse.assign(size_t(x.lse.count()), 0);
  int64_t offset = a.value("causalOffset", 0) + rankOffset;
  int64_t wl = a.value("windowLeft", -1), wr = a.value("windowRight", -1);
  double cap = a.value("softcap", 0.0);
  double maskValue = -INFINITY;
  if (a.contains("maskValue") && a["maskValue"].is_number())
    maskValue = a["maskValue"];
  for (int64_t b = 0; b < qs[0]; ++b)
    for (int64_t h = 0; h < qs[1]; ++h)
      for (int64_t i = 0; i < qs[2]; ++i) {
        std::vector<double> score(size_t(keys), 0);
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < qs[3]; ++d)
            dot += row(q, x.q, b, h, i)[d] * row(k, x.k, b, h / group, j)[d];
          dot *= a["scale"].get<double>();
          if (cap > 0)
            dot = cap * std::tanh(dot / cap);
          if (x.hasMask) {
            std::vector<int64_t> all = {b, h, i, j}, index;
            size_t rank = x.mask.desc.shape.size();
            for (size_t r = 0; r < rank; ++r)
              index.push_back(x.mask.desc.shape[r] == 1 ? 0
                                                        : all[4 - rank + r]);
            double m = x.mask.get(x.mask.at(index));
            if (x.mask.desc.type == DType::Bool)
              dot = m ? dot : maskValue;
            else
              dot += m;
          }
          if ((a.value("causal", false) && j > i + offset) ||
              (wl >= 0 && j < i + offset - wl) ||
              (wr >= 0 && j > i + offset + wr))
            dot = -INFINITY;
          score[size_t(j)] = dot;
          top = std::max(top, dot);
        }
        bool masked = top == -INFINITY;
        for (double value : score)
          masked &= !std::isnan(value);
        for (double &value : score)
          sum += value = std::exp(value - top);
        for (int64_t d = 0; d < dv; ++d) {
          double total = 0;
          for (int64_t j = 0; j < keys; ++j)
            if (score[size_t(j)] != 0)
              total += score[size_t(j)] / sum * row(v, x.v, b, h / group, j)[d];
          if (masked)
            total = keys == 0 || a.value("maskedRow", "softmax") == "zero"
                        ? 0
                        : NAN;
          y[size_t(x.y.at({b, h, i, d}))] = total;
        }
        lse[size_t(x.lse.at({b, h, i}))] =
            masked ? -INFINITY : top + std::log(sum);
      }
}

double allowed(DType type) {
  return type == DType::F64   ? 1e-14
         : type == DType::F32 ? 3e-6
         : type == DType::F16 ? 1e-3
                              : 8e-3;
}

void check(json attributes, Operands &x, double within = 0, int threads = 1,
           int64_t rankOffset = 0) {
  attributes["mask"] = x.hasMask;
  attributes["logsumexp"] = true;
  Call call("attention", attributes);
  call.site.results = 2;
  call.context.threads = threads;
  call.context.rankValueCount = 1;
  call.rankValues = {rankOffset};
  std::vector<Buffer *> buffers = {&x.q, &x.k, &x.v};
  if (x.hasMask)
    buffers.push_back(&x.mask);
  buffers.push_back(&x.y);
  buffers.push_back(&x.lse);
  ASSERT_TRUE(call.run(buffers)) << call.error;
  std::vector<double> y, lse;
  reference(attributes, x, y, lse, rankOffset);
  DType type = x.q.desc.type;
  within = within ? within : allowed(type);
  EXPECT_LE(difference(x.y, y), within) << attributes << " " << name(type);
  EXPECT_LE(difference(x.lse, lse), type == DType::F64 ? 1e-14 : 1e-6)
      << attributes;
}

const std::vector<Sizes> manySizes = {
    {1, 1, 1, 1, 1, 1, 1},       {2, 4, 4, 5, 7, 8, 8},
    {1, 2, 2, 130, 130, 64, 64}, {1, 4, 2, 37, 211, 20, 12},
    {2, 6, 1, 1, 97, 16, 16},    {1, 8, 2, 70, 30, 33, 65},
    {1, 2, 2, 3, 0, 4, 4},       {0, 2, 2, 3, 4, 4, 4},
    {2, 0, 0, 3, 4, 4, 4},       {1, 2, 2, 0, 4, 4, 4},
    {1, 1, 1, 33, 300, 128, 5},
};

TEST(Attention, EveryTypeAndSizeMatchesTheDefinition) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const Sizes &n : manySizes) {
      Operands x(type, n);
      check({{"scale", 1 / std::sqrt(double(n.d))}}, x);
    }
}

TEST(Attention, CausalHidesLaterKeysAtEveryOffset) {
  Combinations combinations;
  for (DType type : {DType::F32, DType::F64})
    for (const Sizes &n : manySizes)
      for (int64_t offset : {0, 3, -2, 100, -100})
        for (const char *row : {"softmax", "zero"}) {
          if (combinations.skipsThis())
            continue;
          Operands x(type, n);
          check({{"scale", 0.3},
                 {"causal", true},
                 {"causalOffset", offset},
                 {"maskedRow", row}},
                x);
        }
}

TEST(Attention, CausalOffsetComesFromARankValue) {
  Operands x(DType::F32, {1, 2, 2, 9, 20, 8, 8});
  check({{"scale", 0.3},
         {"causal", true},
         {"causalOffset", 1},
         {"causalOffsetRankValue", 0}},
        x, 0, 1, 7);
}

TEST(Attention, QueryStartIsAddedToTheOffset) {
  for (DType type : {DType::I64, DType::I32}) {
    Operands x(DType::F32, {1, 2, 2, 9, 20, 8, 8});
    Buffer start(type, {}), offset = x.y;
    start.set(0, 7);
    Call call("attention",
              {{"scale", 0.3}, {"causal", true}, {"queryStart", true}});
    ASSERT_TRUE(call.run({&x.q, &x.k, &x.v, &start, &x.y})) << call.error;
    Call same("attention",
              {{"scale", 0.3}, {"causal", true}, {"causalOffset", 7}});
    ASSERT_TRUE(same.run({&x.q, &x.k, &x.v, &offset})) << same.error;
    EXPECT_EQ(x.y.bytes, offset.bytes);
  }
}

TEST(Attention, WindowsHideKeysOnBothSides) {
  for (DType type : {DType::F32, DType::F64})
    for (const Sizes &n : manySizes)
      for (auto [left, right] : {std::pair{2, -1}, {0, 0}, {-1, 3}, {40, 10}}) {
        Operands x(type, n);
        check({{"scale", 0.3},
               {"windowLeft", left},
               {"windowRight", right},
               {"causalOffset", 2}},
              x);
      }
}

TEST(Attention, MasksBroadcastOverEveryDimension) {
  Combinations combinations;
  for (DType type : {DType::F32, DType::F64, DType::BF16})
    for (const Sizes &n : manySizes)
      for (DType maskType : {type, DType::Bool})
        for (auto shape :
             std::vector<std::vector<int64_t>>{{n.b, 1, 1, n.t},
                                               {n.s, n.t},
                                               {n.b, n.h, n.s, n.t},
                                               {n.h, 1, n.t},
                                               {1},
                                               {n.s, 1}}) {
          if (combinations.skipsThis())
            continue;
          Operands x(type, n);
          x.hasMask = true;
          x.mask = Buffer(maskType, shape);
          for (int64_t i = 0; i < x.mask.count(); ++i)
            x.mask.set(i, maskType == DType::Bool ? double(i * 7 % 3 != 0)
                          : i * 7 % 3             ? 0.25 * double(i % 5)
                                                  : -INFINITY);
          check({{"scale", 0.3}}, x);
          check({{"scale", 0.3}, {"causal", true}, {"maskedRow", "zero"}}, x);
          check({{"scale", 0.3}, {"maskValue", -3e38}}, x);
        }
}

TEST(Attention, FullyMaskedRowsFollowSoftmaxOrAreZero) {
  for (DType type : {DType::F32, DType::F64}) {
    Operands x(type, {1, 2, 2, 3, 200, 8, 8});
    x.hasMask = true;
    x.mask = Buffer(type, {1, 1, 1, 200});
    double least =
        type == DType::F64 ? -1.7976931348623157e308 : -3.4028234663852886e38;
    for (double value : {-HUGE_VAL, least})
      for (const char *row : {"softmax", "zero", "uniform"}) {
        for (int64_t i = 0; i < 200; ++i)
          x.mask.set(i, value);
        json attributes = {{"scale", 0.1}, {"maskedRow", row}, {"mask", true}};
        Call call("attention", attributes);
        ASSERT_TRUE(call.run({&x.q, &x.k, &x.v, &x.mask, &x.y})) << call.error;
        double mean = 0;
        for (int64_t j = 0; j < 200; ++j)
          mean += x.v.get(j * 8) / 200;
        double first = x.y.get(0);
        if (std::isfinite(value) || std::string(row) == "uniform")
          EXPECT_NEAR(first, mean, 1e-6);
        else if (std::string(row) == "zero")
          EXPECT_EQ(first, 0);
        else
          EXPECT_TRUE(std::isnan(first));
      }
  }
}

TEST(Attention, NaNAndInfinityReachTheirRowsOnly) {
  for (DType type : {DType::F32, DType::F64})
    for (double bad : {double(NAN), double(INFINITY)}) {
      Operands x(type, {1, 1, 1, 6, 150, 8, 8});
      x.hasMask = true;
      x.mask = Buffer(type, {6, 150});
      x.mask.set(2 * 150 + 140, bad);
      Call call("attention", {{"scale", 0.3}, {"mask", true}});
      ASSERT_TRUE(call.run({&x.q, &x.k, &x.v, &x.mask, &x.y}));
      for (int64_t i = 0; i < 6; ++i)
        EXPECT_EQ(std::isnan(x.y.get(i * 8)), i == 2);
    }
}

TEST(Attention, SoftcapBoundsScores) {
  for (DType type : {DType::F32, DType::F64})
    for (double cap : {1.0, 50.0}) {
      Operands x(type, {1, 4, 2, 37, 211, 20, 12});
      check({{"scale", 1.0},
             {"softcap", cap},
             {"causal", true},
             {"causalOffset", 100}},
            x, type == DType::F32 ? 4e-6 : 0);
    }
}

TEST(Attention, LargeScoresDontOverflow) {
  for (DType type : {DType::F32, DType::F64}) {
    Operands x(type, {1, 1, 1, 40, 300, 8, 8});
    for (int64_t i = 0; i < x.k.count(); ++i)
      x.k.set(i, x.k.get(i) * 100);
    check({{"scale", 1.0}}, x, type == DType::F32 ? 2e-4 : 1e-12);
  }
}

TEST(Attention, Bf16ComputingRoundsOperands) {
  Operands x(DType::F32, {1, 4, 2, 37, 211, 20, 12});
  check({{"scale", 0.25}, {"compute", "bf16"}}, x, 4e-3);
}

TEST(Attention, OperandsAreReadAndWrittenInAnyOrder) {
  // [B, S, H, D] memory, and K stored transposed.
  for (DType type : {DType::F32, DType::F64, DType::BF16}) {
    Operands x(type, {});
    x.q = Buffer(type, {2, 4, 5, 8}, {5 * 4 * 8, 8, 4 * 8, 1});
    x.k = Buffer(type, {2, 4, 7, 8}, {4 * 8 * 7, 8 * 7, 1, 7});
    x.v = Buffer(type, {2, 4, 7, 8}, {7 * 4 * 8, 8, 4 * 8, 1});
    x.y = Buffer(type, {2, 4, 5, 8}, {5 * 4 * 8, 8, 4 * 8, 1});
    x.q.fill(1), x.k.fill(2), x.v.fill(3);
    check({{"scale", 0.3}}, x);
  }
}

TEST(Attention, ThreadsDontChangeTheResult) {
  for (DType type : {DType::F32, DType::F64}) {
    Operands one(type, {2, 6, 2, 150, 200, 64, 64}), four = one;
    check({{"scale", 0.125}, {"causal", true}}, one);
    check({{"scale", 0.125}, {"causal", true}}, four, 0, 4);
    EXPECT_EQ(one.y.bytes, four.y.bytes);
  }
}

TEST(Attention, BadSitesAreRefusedWithTheNumbers) {
  Operands x(DType::F32, {1, 4, 3, 5, 7, 8, 8});
  Call call("attention", {{"scale", 1.0}});
  EXPECT_FALSE(call.prepare({&x.q, &x.k, &x.v, &x.y}));
  EXPECT_NE(call.error.find("4 heads don't divide over 3 key heads"),
            std::string::npos);
  Call noScale("attention", json::object());
  Operands good(DType::F32, {});
  EXPECT_FALSE(noScale.prepare({&good.q, &good.k, &good.v, &good.y}));
  EXPECT_EQ(noScale.error, "attention: attribute scale is missing");
  Call rank("attention", {{"scale", 1.0}, {"causalOffsetRankValue", 3}});
  EXPECT_FALSE(rank.prepare({&good.q, &good.k, &good.v, &good.y}));
  Call mask("attention", {{"scale", 1.0}, {"mask", true}});
  Buffer wrong(DType::F32, {2, 1, 3, 7});
  EXPECT_FALSE(mask.prepare({&good.q, &good.k, &good.v, &wrong, &good.y}));
  EXPECT_NE(mask.error.find("doesn't broadcast"), std::string::npos);
}

} // namespace
