// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- AttentionGradientTest.cpp - against definition and differences -----===//
#include "KernelTest.h"

using namespace mtp;
using namespace mtp::test;
using nlohmann::json;

namespace {

struct GradientShape {
  int64_t b = 2, h = 4, hkv = 4, s = 5, t = 7, d = 8, dv = 8;
};

/// One call of attention and of its gradient.
struct Problem {
  DType type;
  GradientShape n;
  json attributes; ///< of attention, without flags of operands
  int threads = 1;
  bool hasMask = false, hasStart = false;
  Buffer q, k, v, mask, start, y, lse, g, dq, dk, dv, dmask;
  std::string error;

  Problem(DType type, const GradientShape &n, json attributes,
          unsigned seed = 1)
      : type(type), n(n), attributes(std::move(attributes)),
        q(type, {n.b, n.h, n.s, n.d}), k(type, {n.b, n.hkv, n.t, n.d}),
        v(type, {n.b, n.hkv, n.t, n.dv}), start(DType::I64, {}),
        y(type, {n.b, n.h, n.s, n.dv}),
        lse(type == DType::F64 ? DType::F64 : DType::F32, {n.b, n.h, n.s}),
        g(y), dq(q), dk(k), dv(v) {
    q.fill(seed), k.fill(seed + 1), v.fill(seed + 2), g.fill(seed + 3);
    for (Buffer *result : {&dq, &dk, &dv})
      result->fill(99);
  }
  void setMask(Buffer given) {
    mask = std::move(given);
    hasMask = true;
    dmask = Buffer(mask.desc.type, mask.desc.shape);
  }
  bool wantsMask() const { return hasMask && mask.desc.type != DType::Bool; }

  bool forward() {
    json all = attributes;
    all["mask"] = hasMask;
    all["queryStart"] = hasStart;
    all["logsumexp"] = true;
    Call call("attention", all);
    call.site.results = 2;
    std::vector<Buffer *> buffers = {&q, &k, &v};
    if (hasMask)
      buffers.push_back(&mask);
    if (hasStart)
      buffers.push_back(&start);
    buffers.insert(buffers.end(), {&y, &lse});
    bool ok = call.run(buffers);
    error = call.error;
    return ok;
  }
  bool backward() {
    json all = attributes;
    all["mask"] = hasMask;
    all["queryStart"] = hasStart;
    all["maskGradient"] = wantsMask();
    Call call("attention_gradient", all);
    call.context.threads = threads;
    std::vector<Buffer *> buffers = {&q, &k, &v};
    if (hasMask)
      buffers.push_back(&mask);
    if (hasStart)
      buffers.push_back(&start);
    buffers.insert(buffers.end(), {&y, &lse, &g, &dq, &dk, &dv});
    call.site.results = 3;
    if (wantsMask()) {
      buffers.push_back(&dmask);
      call.site.results = 4;
    }
    bool ok = call.run(buffers);
    error = call.error;
    return ok;
  }
  bool run() { return forward() && backward(); }

  int64_t maskAt(int64_t b, int64_t h, int64_t i, int64_t j) const {
    std::vector<int64_t> all = {b, h, i, j}, index;
    size_t rank = mask.desc.shape.size();
    for (size_t r = 0; r < rank; ++r)
      index.push_back(mask.desc.shape[r] == 1 ? 0 : all[4 - rank + r]);
    return mask.at(index);
  }
};

/// Elements in row-major order of the shape.
std::vector<double> dense(const Buffer &buffer) {
  const auto &n = buffer.desc.shape;
  if (n.size() != 4)
    return {};
  std::vector<double> values;
  for (int64_t b = 0; b < n[0]; ++b)
    for (int64_t h = 0; h < n[1]; ++h)
      for (int64_t i = 0; i < n[2]; ++i)
        for (int64_t d = 0; d < n[3]; ++d)
          values.push_back(buffer.get(buffer.at({b, h, i, d})));
  return values;
}

struct Gradients {
  std::vector<double> q, k, v, mask;
};

/// The definition, in double, whole rows.
Gradients reference(const Problem &x) {
  const GradientShape &n = x.n;
  const json &a = x.attributes;
  Gradients r;
  r.q.assign(size_t(n.b * n.h * n.s * n.d), 0);
  r.k.assign(size_t(n.b * n.hkv * n.t * n.d), 0);
  r.v.assign(size_t(n.b * n.hkv * n.t * n.dv), 0);
  r.mask.assign(x.hasMask ? size_t(x.mask.count()) : 0, 0);
  double scale = a["scale"], cap = a.value("softcap", 0.0);
  int64_t offset = a.value("causalOffset", 0);
  if (x.hasStart)
    offset += int64_t(x.start.get(0));
  std::string masked = a.value("maskedRow", "softmax");
  std::vector<double> q = dense(x.q), k = dense(x.k), v = dense(x.v),
                      g = dense(x.g);
  auto row = [](std::vector<double> &values, const Buffer &of, int64_t b,
                int64_t h, int64_t i) {
    const auto &shape = of.desc.shape;
    return values.data() + ((b * shape[1] + h) * shape[2] + i) * shape[3];
  };
  for (int64_t b = 0; b < n.b; ++b)
    for (int64_t h = 0; h < n.h; ++h)
      for (int64_t i = 0; i < n.s; ++i) {
        int64_t hk = h / (n.h / n.hkv);
        std::vector<double> score(size_t(n.t)), capped(score), p(score);
        double top = -INFINITY, sum = 0, delta = 0;
        for (int64_t j = 0; j < n.t; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < n.d; ++d)
            dot +=
                x.q.get(x.q.at({b, h, i, d})) * x.k.get(x.k.at({b, hk, j, d}));
          dot *= scale;
          if (cap > 0)
            dot = cap * std::tanh(dot / cap);
          capped[size_t(j)] = dot;
          if (x.hasMask) {
            double m = x.mask.get(x.maskAt(b, h, i, j));
            if (x.mask.desc.type == DType::Bool)
              dot = m ? dot : -INFINITY;
            else
              dot += m;
          }
          if (a.value("causal", false) && j > i + offset)
            dot = -INFINITY;
          score[size_t(j)] = dot;
          top = std::max(top, dot);
        }
        bool none = top == -INFINITY;
        for (double value : score)
          sum += std::exp(value - top);
        for (int64_t j = 0; j < n.t; ++j) {
          p[size_t(j)] = std::exp(score[size_t(j)] - top) / sum;
          if (none)
            p[size_t(j)] = masked == "zero"      ? 0
                           : masked == "uniform" ? 1.0 / double(n.t)
                                                 : NAN;
        }
        std::vector<double> dp(size_t(n.t), 0); // g v'
        for (int64_t j = 0; j < n.t; ++j) {
          for (int64_t d = 0; d < n.dv; ++d)
            dp[size_t(j)] += row(g, x.g, b, h, i)[d] * row(v, x.v, b, hk, j)[d];
          delta += p[size_t(j)] * dp[size_t(j)];
        }
        for (int64_t j = 0; j < n.t; ++j) {
          for (int64_t d = 0; d < n.dv; ++d)
            row(r.v, x.v, b, hk, j)[d] +=
                p[size_t(j)] * row(g, x.g, b, h, i)[d];
          double ds = p[size_t(j)] * (dp[size_t(j)] - delta);
          if (none && masked != "softmax")
            ds = 0;
          if (x.wantsMask())
            r.mask[size_t(x.maskAt(b, h, i, j))] += ds;
          if (cap > 0)
            ds *= 1 - std::pow(capped[size_t(j)] / cap, 2);
          for (int64_t d = 0; d < n.d; ++d) {
            row(r.q, x.q, b, h, i)[d] += scale * ds * row(k, x.k, b, hk, j)[d];
            row(r.k, x.k, b, hk, j)[d] += scale * ds * row(q, x.q, b, h, i)[d];
          }
        }
      }
  return r;
}

/// max|a - b| / max(max|b|, floor).
double distance(const std::vector<double> &a, const std::vector<double> &b,
                double floor) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0, scale = floor;
  for (size_t i = 0; i < b.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i]))
      continue;
    if (std::isnan(a[i]) || std::isnan(b[i]))
      return INFINITY;
    most = std::max(most, std::fabs(a[i] - b[i]));
    scale = std::max(scale, std::fabs(b[i]));
  }
  return most == 0 ? 0 : most / scale;
}

void check(Problem &x, double within = 0) {
  ASSERT_TRUE(x.run()) << x.error;
  Gradients expected = reference(x);
  double tolerance = within                 ? within
                     : x.type == DType::F64 ? 1e-13
                     : x.type == DType::F32 ? 5e-6
                                            : 3e-2;
  // Softmax of few keys has hardly any gradient.
  double floor = 0.1;
  EXPECT_LE(distance(dense(x.dq), expected.q, floor), tolerance)
      << "dQ " << x.attributes;
  EXPECT_LE(distance(dense(x.dk), expected.k, floor), tolerance)
      << "dK " << x.attributes;
  EXPECT_LE(distance(dense(x.dv), expected.v, floor), tolerance)
      << "dV " << x.attributes;
  if (!x.wantsMask())
    return;
  std::vector<double> mask;
  for (int64_t i = 0; i < x.dmask.count(); ++i)
    mask.push_back(x.dmask.get(i));
  // Over all keys the gradients of a row's scores cancel.
  if (x.mask.desc.shape.back() == 1)
    floor *= double(x.n.s * x.n.t);
  EXPECT_LE(distance(mask, expected.mask, floor), tolerance)
      << "dMask " << x.attributes;
}

const std::vector<GradientShape> gradientShapes = {
    {1, 1, 1, 1, 1, 1, 1},      {2, 4, 4, 5, 7, 8, 8},
    {1, 2, 2, 70, 130, 64, 64}, {1, 4, 2, 37, 211, 20, 12},
    {2, 6, 1, 1, 97, 16, 16},   {1, 8, 2, 70, 30, 33, 65},
    {1, 1, 1, 40, 800, 16, 5},  {2, 2, 2, 0, 4, 4, 4},
    {0, 2, 2, 3, 4, 4, 4},      {1, 3, 3, 33, 400, 8, 8},
};

TEST(AttentionGradient, EveryTypeAndSizeMatchesTheDefinition) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const GradientShape &n : gradientShapes) {
      Problem x(type, n, {{"scale", 1 / std::sqrt(double(n.d))}});
      check(x);
    }
}

TEST(AttentionGradient, WithoutKeysOrHeads) {
  Problem none(DType::F32, {1, 2, 2, 3, 0, 4, 4}, {{"scale", 0.5}});
  ASSERT_TRUE(none.run()) << none.error;
  for (double value : dense(none.dq))
    EXPECT_EQ(value, 0);
  Problem heads(DType::F32, {2, 0, 0, 3, 4, 4, 4}, {{"scale", 0.5}});
  ASSERT_TRUE(heads.run()) << heads.error;
}

TEST(AttentionGradient, CausalAtEveryOffset) {
  Combinations combinations;
  for (DType type : {DType::F32, DType::F64})
    for (const GradientShape &n : gradientShapes)
      for (int64_t offset : {0, 3, -2, 100, -100})
        for (const char *row : {"softmax", "zero", "uniform"}) {
          if (combinations.skipsThis())
            continue;
          Problem x(type, n,
                    {{"scale", 0.3},
                     {"causal", true},
                     {"causalOffset", offset},
                     {"maskedRow", row}});
          check(x);
        }
}

TEST(AttentionGradient, QueryStartAndSoftcap) {
  for (DType type : {DType::F32, DType::F64})
    for (double cap : {0.0, 2.0, 30.0}) {
      Problem x(type, {1, 4, 2, 37, 211, 20, 12},
                {{"scale", 1.0},
                 {"causal", true},
                 {"causalOffset", 20},
                 {"softcap", cap}});
      x.hasStart = true;
      x.start.set(0, 80);
      check(x, type == DType::F32 ? 2e-5 : 0);
    }
}

TEST(AttentionGradient, MasksOfEveryShapeAndTheirGradients) {
  Combinations combinations;
  for (DType type : {DType::F32, DType::F64})
    for (const GradientShape &n : gradientShapes)
      for (DType maskType : {type, DType::Bool})
        for (auto shape :
             std::vector<std::vector<int64_t>>{{n.b, 1, 1, n.t},
                                               {n.s, n.t},
                                               {n.b, n.h, n.s, n.t},
                                               {n.h, 1, n.t},
                                               {1},
                                               {n.s, 1}})
          for (const char *row : {"zero", "uniform"}) {
            if (combinations.skipsThis() || n.t > 300)
              continue;
            Problem x(type, n, {{"scale", 0.3}, {"maskedRow", row}});
            Buffer mask(maskType, shape);
            for (int64_t i = 0; i < mask.count(); ++i)
              mask.set(i, maskType == DType::Bool ? double(i * 7 % 3 != 0)
                          : i * 7 % 3             ? 0.25 * double(i % 5)
                                                  : -INFINITY);
            x.setMask(mask);
            x.threads = 3;
            check(x);
          }
}

/// The logarithm of a sum says nothing beside 1e38: a row whose scores are all
/// the lowest number still has equal weights.
TEST(AttentionGradient, LargeFiniteMasksKeepTheirWeights) {
  for (DType type : {DType::F32, DType::F64})
    for (double least : {-3.4028234663852886e38, -1e9, -1e4}) {
      Problem x(type, {2, 2, 2, 9, 150, 8, 8}, {{"scale", 0.3}});
      Buffer mask(type, {2, 1, 9, 150});
      for (int64_t i = 0; i < mask.count(); ++i)
        mask.set(i, i / 150 % 4 == 1 || i % 3 == 0 ? least : 0);
      x.setMask(mask);
      ASSERT_TRUE(x.run()) << x.error;
      double total = 0;
      for (double value : dense(x.dv))
        total += value;
      double all = 0;
      for (double value : dense(x.g))
        all += value;
      EXPECT_NEAR(total, all, type == DType::F32 ? 2e-3 : 1e-9) << least;
      for (double value : dense(x.dq))
        EXPECT_TRUE(std::isfinite(value));
    }
}

TEST(AttentionGradient, LargeScoresDontOverflow) {
  for (DType type : {DType::F32, DType::F64}) {
    Problem x(type, {1, 1, 1, 40, 300, 8, 8}, {{"scale", 1.0}});
    for (int64_t i = 0; i < x.k.count(); ++i)
      x.k.set(i, x.k.get(i) * 100);
    check(x, type == DType::F32 ? 1e-3 : 1e-11);
  }
}

TEST(AttentionGradient, OperandsLieInAnyOrder) {
  // [B, S, H, D] memory, and K stored transposed.
  for (DType type : {DType::F32, DType::F64, DType::BF16}) {
    Problem x(type, {}, {{"scale", 0.3}});
    for (Buffer *buffer : {&x.q, &x.y, &x.g, &x.dq})
      *buffer = Buffer(type, {2, 4, 5, 8}, {5 * 4 * 8, 8, 4 * 8, 1});
    for (Buffer *buffer : {&x.k, &x.dk})
      *buffer = Buffer(type, {2, 4, 7, 8}, {4 * 8 * 7, 8 * 7, 1, 7});
    for (Buffer *buffer : {&x.v, &x.dv})
      *buffer = Buffer(type, {2, 4, 7, 8}, {7 * 4 * 8, 8, 4 * 8, 1});
    x.q.fill(1), x.k.fill(2), x.v.fill(3), x.g.fill(4);
    check(x);
  }
}

TEST(AttentionGradient, ThreadsDontChangeTheResult) {
  for (DType type : {DType::F32, DType::F64})
    for (bool withMask : {false, true}) {
      Problem one(type, {2, 6, 2, 90, 500, 64, 64},
                  {{"scale", 0.125}, {"causal", true}, {"causalOffset", 400}});
      if (withMask)
        one.setMask(Buffer(type, {1, 6, 90, 500}).fill(7));
      Problem four = one;
      four.threads = 4;
      ASSERT_TRUE(one.run()) << one.error;
      ASSERT_TRUE(four.run()) << four.error;
      EXPECT_EQ(one.dq.bytes, four.dq.bytes);
      EXPECT_EQ(one.dk.bytes, four.dk.bytes);
      EXPECT_EQ(one.dv.bytes, four.dv.bytes);
      EXPECT_EQ(one.dmask.bytes, four.dmask.bytes);
    }
}

TEST(AttentionGradient, ResultsThatNobodyWantsAreLeftOut) {
  Problem all(DType::F64, {1, 4, 2, 9, 20, 8, 6}, {{"scale", 0.3}});
  ASSERT_TRUE(all.run());
  Buffer *results[] = {&all.dq, &all.dk, &all.dv};
  const char *names[] = {"queryGradient", "keyGradient", "valueGradient"};
  for (int only = 0; only < 3; ++only) {
    json attributes = all.attributes;
    for (int i = 0; i < 3; ++i)
      attributes[names[i]] = i == only;
    Call call("attention_gradient", attributes);
    Buffer result(DType::F64, results[only]->desc.shape);
    ASSERT_TRUE(
        call.run({&all.q, &all.k, &all.v, &all.y, &all.lse, &all.g, &result}))
        << call.error;
    EXPECT_EQ(result.bytes, results[only]->bytes);
  }
}

/// d sum(G Y) along random directions, by the attention kernel itself.
TEST(AttentionGradient, MatchesFiniteDifferences) {
  for (const char *kind : {"plain", "causal", "softcap", "mask"}) {
    json attributes = {{"scale", 0.4}};
    if (std::string(kind) == "causal")
      attributes.update({{"causal", true}, {"causalOffset", 3}});
    if (std::string(kind) == "softcap")
      attributes["softcap"] = 1.5;
    Problem x(DType::F64, {2, 4, 2, 7, 11, 5, 6}, attributes);
    if (std::string(kind) == "mask")
      x.setMask(Buffer(DType::F64, {4, 1, 11}).fill(12));
    ASSERT_TRUE(x.run()) << x.error;
    auto value = [&](Problem &at) {
      EXPECT_TRUE(at.forward());
      double sum = 0;
      for (int64_t i = 0; i < at.y.count(); ++i)
        sum += at.y.get(i) * at.g.get(i);
      return sum;
    };
    auto along = [&](Buffer Problem::*input, Buffer Problem::*gradient) {
      Buffer direction = x.*input;
      direction.fill(55);
      double expected = 0, step = 1e-5, change[2];
      for (int64_t i = 0; i < direction.count(); ++i)
        expected += direction.get(i) * (x.*gradient).get(i);
      for (int side : {0, 1}) {
        Problem moved = x;
        for (int64_t i = 0; i < direction.count(); ++i)
          (moved.*input)
              .set(i, (x.*input).get(i) +
                          (side ? step : -step) * direction.get(i));
        change[side] = value(moved);
      }
      EXPECT_NEAR((change[1] - change[0]) / (2 * step), expected,
                  1e-7 * std::max(1.0, std::fabs(expected)))
          << kind;
    };
    along(&Problem::q, &Problem::dq);
    along(&Problem::k, &Problem::dk);
    along(&Problem::v, &Problem::dv);
    if (x.hasMask)
      along(&Problem::mask, &Problem::dmask);
  }
}

TEST(AttentionGradient, BadSitesAreRefusedWithTheNumbers) {
  Problem x(DType::F32, {}, {{"scale", 1.0}, {"maskGradient", true}});
  Call call("attention_gradient", x.attributes);
  EXPECT_FALSE(call.prepare(
      {&x.q, &x.k, &x.v, &x.y, &x.lse, &x.g, &x.dq, &x.dk, &x.dv, &x.q}));
  EXPECT_NE(call.error.find("only a mask that is added"), std::string::npos)
      << call.error;
  Call shape("attention_gradient", {{"scale", 1.0}});
  EXPECT_FALSE(shape.prepare(
      {&x.q, &x.k, &x.v, &x.y, &x.lse, &x.g, &x.dk, &x.dk, &x.dv}));
  EXPECT_NE(shape.error.find("dQ is 2x4x7x8xf32, not 2x4x5x8xf32"),
            std::string::npos)
      << shape.error;
}

} // namespace
