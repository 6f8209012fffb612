// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ConvolutionTest.cpp - convolution against the definition -----------===//
#include "KernelTest.h"

using namespace mtp;
using namespace mtp::test;
using nlohmann::json;

namespace {

/// Calls product(i, j, k) for each Y[i] += X[j] W[k] of the definition, for up
/// to three spatial dimensions (missing ones count 1).
template <typename Product>
void forEachProduct(const Buffer &x, const Buffer &w, const Buffer &y,
                    std::vector<int64_t> strides,
                    std::vector<int64_t> dilations, std::vector<int64_t> pads,
                    int64_t group, Product &&product) {
  auto three = [](std::vector<int64_t> values, int64_t fill) {
    while (values.size() < 3)
      values.insert(values.begin(), fill);
    return values;
  };
  auto spatial = [&](const Buffer &b) {
    return three({b.desc.shape.begin() + 2, b.desc.shape.end()}, 1);
  };
  auto xs = spatial(x), ws = spatial(w), ys = spatial(y);
  strides = three(strides, 1), dilations = three(dilations, 1),
  pads = three(pads, 0);
  int64_t channels = x.desc.shape[1], outputs = w.desc.shape[0],
          per = w.desc.shape[1], positions = ys[0] * ys[1] * ys[2];
  for (int64_t b = 0; b < x.desc.shape[0]; ++b)
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t i = 0; i < positions; ++i) {
        int64_t at[3] = {i / ys[2] / ys[1], i / ys[2] % ys[1], i % ys[2]};
        for (int64_t c = 0; c < per; ++c)
          for (int64_t j = 0; j < ws[0] * ws[1] * ws[2]; ++j) {
            int64_t tap[3] = {j / ws[2] / ws[1], j / ws[2] % ws[1], j % ws[2]};
            int64_t from = b * channels + o / (outputs / group) * per + c;
            bool inside = true;
            for (int d = 0; d < 3; ++d) {
              int64_t at1 =
                  at[d] * strides[d] - pads[d] + tap[d] * dilations[d];
              inside &= at1 >= 0 && at1 < xs[d];
              from = from * xs[d] + at1;
            }
            if (inside)
              product((b * outputs + o) * positions + i, from,
                      (o * per + c) * ws[0] * ws[1] * ws[2] + j);
          }
      }
}

std::vector<double> reference(const Buffer &x, const Buffer &w,
                              const Buffer *bias, const Buffer &y,
                              const std::vector<int64_t> &strides,
                              const std::vector<int64_t> &dilations,
                              const std::vector<int64_t> &pads, int64_t group) {
  std::vector<double> result(size_t(y.count()), 0);
  forEachProduct(x, w, y, strides, dilations, pads, group,
                 [&](int64_t i, int64_t j, int64_t k) {
                   result[size_t(i)] += x.get(j) * w.get(k);
                 });
  int64_t outputs = w.desc.shape[0],
          positions = y.count() / y.desc.shape[0] / outputs;
  for (int64_t i = 0; bias && i < y.count(); ++i)
    result[size_t(i)] += bias->get(i / positions % outputs);
  return result;
}

struct Case {
  std::vector<int64_t> x, w, strides, dilations, pads;
  int64_t group = 1;
};

const std::vector<Case> cases = {
    {{2, 3, 32, 32}, {24, 3, 8, 8}, {8, 8}, {1, 1}, {0, 0, 0, 0}}, // patches
    {{1, 4, 9, 7}, {6, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {{2, 4, 9, 7}, {6, 4, 3, 2}, {2, 1}, {2, 3}, {0, 2, 3, 1}},
    {{1, 6, 10}, {4, 3, 3}, {2}, {1}, {1, 1}, 2},
    {{1, 6, 10}, {6, 1, 3}, {1}, {1}, {1, 1}, 6},
    {{1, 2, 4, 5, 6},
     {3, 2, 2, 3, 2},
     {1, 2, 1},
     {1, 1, 2},
     {1, 0, 1, 0, 1, 1}},
    {{1, 3, 2, 2}, {3, 3, 5, 5}, {1, 1}, {1, 1}, {0, 0, 0, 0}}, // no position
    {{1, 64, 40, 40},
     {8, 64, 3, 3},
     {1, 1},
     {1, 1},
     {1, 1, 1, 1}}, // several chunks
};

std::vector<int64_t> resultShape(const Case &c) {
  std::vector<int64_t> shape = {c.x[0], c.w[0]};
  size_t spatial = c.strides.size();
  for (size_t i = 0; i < spatial; ++i) {
    int64_t room = c.x[2 + i] + c.pads[i] + c.pads[spatial + i] -
                   c.dilations[i] * (c.w[2 + i] - 1) - 1;
    shape.push_back(room < 0 ? 0 : room / c.strides[i] + 1);
  }
  return shape;
}

json attributesOf(const Case &c) {
  return {{"strides", c.strides},
          {"dilations", c.dilations},
          {"pads", c.pads},
          {"group", c.group}};
}

std::vector<int64_t> beginsOf(const Case &c) {
  return {c.pads.begin(), c.pads.begin() + int64_t(c.strides.size())};
}

TEST(Convolution, GradientsMatchTheDefinition) {
  for (DType type : {DType::F32, DType::F64})
    for (const Case &c : cases) {
      Buffer x(type, c.x), w(type, c.w), g(type, resultShape(c));
      x.fill(1), w.fill(2), g.fill(3);
      std::vector<double> dx(size_t(x.count()), 0), dw(size_t(w.count()), 0);
      forEachProduct(x, w, g, c.strides, c.dilations, beginsOf(c), c.group,
                     [&](int64_t i, int64_t j, int64_t k) {
                       dx[size_t(j)] += g.get(i) * w.get(k);
                       dw[size_t(k)] += g.get(i) * x.get(j);
                     });
      double tolerance = type == DType::F64 ? 1e-14 : 3e-6;
      Buffer first[2];
      for (int threads : {1, 3}) {
        Buffer results[] = {x, w};
        for (Buffer &result : results)
          result.fill(7);
        Call ofInput("convolution_input_gradient", attributesOf(c)),
            ofFilter("convolution_filter_gradient", attributesOf(c));
        ofInput.context.threads = ofFilter.context.threads = threads;
        ASSERT_TRUE(ofInput.run({&w, &g, &results[0]})) << ofInput.error;
        ASSERT_TRUE(ofFilter.run({&x, &g, &results[1]})) << ofFilter.error;
        EXPECT_LE(difference(results[0], dx), tolerance) << attributesOf(c);
        EXPECT_LE(difference(results[1], dw), tolerance) << attributesOf(c);
        for (int i : {0, 1}) {
          if (threads == 1)
            first[i] = results[i];
          EXPECT_EQ(results[i].bytes, first[i].bytes);
        }
      }
    }
}

TEST(Convolution, MatchesTheDefinition) {
  for (DType type : {DType::F32, DType::F64})
    for (const Case &c : cases)
      for (bool hasBias : {false, true})
        for (int threads : {1, 3}) {
          Buffer x(type, c.x), w(type, c.w), bias(type, {c.w[0]}),
              y(type, resultShape(c));
          x.fill(1), w.fill(2), bias.fill(3);
          json attributes = attributesOf(c);
          attributes["bias"] = hasBias;
          Call call("convolution", attributes);
          call.context.threads = threads;
          call.context.constant = {nullptr, w.bytes.data()};
          std::vector<Buffer *> buffers = {&x, &w};
          if (hasBias)
            buffers.push_back(&bias);
          buffers.push_back(&y);
          ASSERT_TRUE(call.run(buffers)) << call.error;
          auto expected =
              reference(x, w, hasBias ? &bias : nullptr, y, c.strides,
                        c.dilations, beginsOf(c), c.group);
          EXPECT_LE(difference(y, expected), type == DType::F64 ? 1e-14 : 2e-6)
              << call.site.attributes;
        }
}

TEST(Convolution, BadSitesAreRefused) {
  Buffer x(DType::F32, {1, 3, 8, 8}), w(DType::F32, {4, 3, 3, 3}),
      y(DType::F32, {1, 4, 6, 6});
  json good = {
      {"strides", {1, 1}}, {"dilations", {1, 1}}, {"pads", {0, 0, 0, 0}}};
  for (auto [key, value] : std::vector<std::pair<const char *, json>>{
           {"strides", {0, 1}},
           {"dilations", {1}},
           {"pads", {0, 0, 0, -1}},
           {"group", 2},
           {"pads", {1, 0, 0, 0}},
           {"strides", {int64_t(1) << 40, 1}}}) {
    json bad = good;
    bad[key] = value;
    EXPECT_FALSE(Call("convolution", bad).prepare({&x, &w, &y}))
        << key << value;
  }
  EXPECT_TRUE(Call("convolution", good).prepare({&x, &w, &y}));
}

} // namespace
