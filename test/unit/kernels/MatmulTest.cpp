// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MatmulTest.cpp - matrix products against a double loop -------------===//
#include "runtime/kernels/Matmul.h"
#include "KernelTest.h"

using namespace mtp;
using namespace mtp::test;

namespace {

double activate(double x, const std::string &kind) {
  if (kind == "relu")
    return std::max(x, 0.0);
  if (kind == "gelu_erf")
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  if (kind == "gelu_tanh")
    return 0.5 * x *
           (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  if (kind == "silu")
    return x / (1 + std::exp(-x));
  return x;
}

/// The definition, in double; a, b: [batch..., rows, columns] as stored.
std::vector<double> reference(const LibrarySite &site, const Buffer &a,
                              const Buffer &b, const Buffer *bias,
                              const Buffer *residual, const Buffer &y) {
  bool ta = site.attributes.value("transposeA", false);
  bool tb = site.attributes.value("transposeB", false);
  bool round = site.attributes.value("compute", "") == "bf16";
  const auto &shape = y.desc.shape;
  size_t rank = shape.size();
  int64_t k = a.desc.shape[a.desc.shape.size() - (ta ? 2 : 1)];
  auto value = [&](const Buffer &x, const std::vector<int64_t> &index) {
    int64_t offset = 0, stride = 1;
    for (size_t i = x.desc.shape.size(), j = index.size(); i-- > 0;) {
      int64_t step = x.desc.strides.empty() ? stride : x.desc.strides[i];
      --j;
      offset += x.desc.shape[i] == 1 ? 0 : index[j] * step;
      stride *= x.desc.shape[i];
    }
    double v = x.get(offset);
    return round ? double(bf16ToFloat(floatToBf16(float(v)))) : v;
  };
  std::vector<double> result(size_t(y.count()), 0);
  std::vector<int64_t> index(rank, 0);
  for (int64_t i = 0; i < product(shape); ++i) {
    int64_t rest = i;
    for (size_t d = rank; d-- > 0; rest /= shape[d])
      index[d] = rest % shape[d];
    double sum = 0;
    std::vector<int64_t> ia = index, ib = index;
    if (ta)
      ia[rank - 1] = index[rank - 2];
    if (tb)
      ib[rank - 2] = index[rank - 1];
    for (int64_t p = 0; p < k; ++p) {
      ia[rank - (ta ? 2 : 1)] = p;
      ib[rank - (tb ? 1 : 2)] = p;
      sum += value(a, ia) * value(b, ib);
    }
    sum *= site.attributes.value("alpha", 1.0);
    if (bias)
      sum += bias->get(index[rank - 1]);
    sum = activate(sum, site.attributes.value("activation", "none"));
    if (residual)
      sum += residual->get(residual->at(index));
    result[size_t(y.at(index))] = sum;
  }
  return result;
}

struct Shape {
  std::vector<int64_t> a, b, y;
};

double tolerance(DType type) {
  switch (type) {
  case DType::F64:
    return 1e-14;
  case DType::F32:
    return 1e-6;
  case DType::BF16:
    return 8e-3;
  case DType::F16:
    return 1e-3;
  default:
    return 0;
  }
}

void check(nlohmann::json attributes, const Shape &shape, DType in, DType out,
           bool constant = false, int threads = 1) {
  if (attributes.is_null())
    attributes = nlohmann::json::object();
  Buffer a(in, shape.a), b(in, shape.b), y(out, shape.y);
  a.fill(1), b.fill(2);
  Buffer bias(out, {shape.y.back()}), residual(out, shape.y);
  bias.fill(3), residual.fill(4);
  Call call("matmul", attributes);
  call.context.threads = threads;
  std::vector<Buffer *> buffers = {&a, &b};
  bool hasBias = attributes.value("bias", false);
  bool hasResidual = attributes.value("residual", false);
  if (hasBias)
    buffers.push_back(&bias);
  if (hasResidual)
    buffers.push_back(&residual);
  buffers.push_back(&y);
  if (constant)
    call.context.constant = {nullptr, b.bytes.data()};
  ASSERT_TRUE(call.run(buffers)) << call.error;
  auto expected = reference(call.site, a, b, hasBias ? &bias : nullptr,
                            hasResidual ? &residual : nullptr, y);
  EXPECT_LE(difference(y, expected), tolerance(out))
      << attributes << " " << call.kernel->implementation() << " " << name(in);
}

const std::vector<Shape> shapes = {
    {{1, 1}, {1, 1}, {1, 1}},
    {{3, 5}, {5, 7}, {3, 7}},
    {{2, 24, 48}, {48, 96}, {2, 24, 96}},
    {{2, 3, 13, 33}, {2, 3, 33, 17}, {2, 3, 13, 17}},
    {{2, 1, 5, 9}, {3, 9, 4}, {2, 3, 5, 4}},
    {{70, 400}, {400, 101}, {70, 101}},
    {{1, 768}, {768, 200}, {1, 200}},
    {{4, 0}, {0, 5}, {4, 5}},
    {{0, 4}, {4, 5}, {0, 5}},
    {{2, 3, 4}, {4, 0}, {2, 3, 0}},
    {{0, 3, 4}, {4, 2}, {0, 3, 2}},
};

TEST(Matmul, EveryTypeAndShapeMatchesTheDefinition) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16,
                     DType::I32, DType::I64, DType::U32, DType::U64})
    for (const Shape &shape : shapes)
      for (bool constant : {false, true})
        check({}, shape, type, type, constant);
}

TEST(Matmul, NarrowTypesAccumulateInWideOnes) {
  for (const Shape &shape : shapes) {
    check({}, shape, DType::I8, DType::I32);
    check({}, shape, DType::U8, DType::I32, true);
    check({}, shape, DType::BF16, DType::F32);
    check({}, shape, DType::F16, DType::F32, true);
  }
}

TEST(Matmul, TransposedOperandsAreReadWhereTheyLie) {
  for (DType type : {DType::F32, DType::F64, DType::I64, DType::BF16})
    for (bool constant : {false, true}) {
      check({{"transposeA", true}}, {{2, 30, 20}, {30, 40}, {2, 20, 40}}, type,
            type, constant);
      check({{"transposeB", true}}, {{2, 20, 30}, {40, 30}, {2, 20, 40}}, type,
            type, constant);
      check({{"transposeA", true}, {"transposeB", true}},
            {{3, 30, 20}, {3, 140, 30}, {3, 20, 140}}, type, type, constant);
    }
}

TEST(Matmul, EpiloguesAreExact) {
  for (DType type : {DType::F32, DType::F64})
    for (const char *activation :
         {"none", "relu", "gelu_erf", "gelu_tanh", "silu"})
      for (bool residual : {false, true})
        for (double alpha : {1.0, 0.25}) {
          nlohmann::json attributes = {{"bias", true},
                                       {"residual", residual},
                                       {"activation", activation},
                                       {"alpha", alpha}};
          check(attributes, {{2, 24, 64}, {64, 96}, {2, 24, 96}}, type, type,
                true);
          check(attributes, {{2, 3, 24, 64}, {2, 3, 64, 96}, {2, 3, 24, 96}},
                type, type);
          check(attributes, {{3, 0}, {0, 96}, {3, 96}}, type, type);
        }
}

TEST(Matmul, NaNPassesEveryActivation) {
  for (DType type : {DType::F32, DType::F64, DType::BF16})
    for (const char *activation :
         {"none", "relu", "gelu_erf", "gelu_tanh", "silu"})
      for (bool residual : {false, true}) {
        Buffer a(type, {3, 16}), b(type, {16, 32}), r(type, {3, 32}),
            y(type, {3, 32});
        a.fill(1), b.fill(2);
        a.set(16, NAN);
        Call call("matmul",
                  {{"activation", activation}, {"residual", residual}});
        std::vector<Buffer *> buffers = {&a, &b, &y};
        if (residual)
          buffers.insert(buffers.begin() + 2, &r);
        ASSERT_TRUE(call.run(buffers)) << call.error;
        for (int64_t i = 0; i < 96; ++i)
          EXPECT_EQ(std::isnan(y.get(i)), i / 32 == 1) << activation;
      }
}

TEST(Matmul, Bf16ComputingRoundsOperandsAndAccumulatesInF32) {
  for (bool constant : {false, true}) {
    check({{"compute", "bf16"}}, {{2, 24, 64}, {64, 96}, {2, 24, 96}},
          DType::F32, DType::F32, constant);
    check({{"compute", "bf16"}, {"transposeB", true}},
          {{2, 3, 24, 64}, {2, 3, 96, 64}, {2, 3, 24, 96}}, DType::F32,
          DType::F32, constant);
    check({{"compute", "bf16"}}, {{2, 1, 5, 9}, {3, 9, 4}, {2, 3, 5, 4}},
          DType::F32, DType::F32, constant);
  }
}

TEST(Matmul, ThreadsDontChangeTheResult) {
  for (DType type : {DType::F64, DType::I64}) {
    Buffer a(type, {150, 500}), b(type, {500, 300}), one(type, {150, 300}),
        four = one;
    a.fill(1), b.fill(2);
    Call first("matmul", {}), second("matmul", {});
    second.context.threads = 4;
    ASSERT_TRUE(first.run({&a, &b, &one}) && second.run({&a, &b, &four}));
    EXPECT_EQ(one.bytes, four.bytes);
  }
}

TEST(Matmul, StridedOperandsAreReadAndWrittenInPlace) {
  // [batch, head, row, column] in memory of [batch, row, head, column].
  for (DType type : {DType::F32, DType::F64}) {
    std::vector<int64_t> aStrides = {7 * 3 * 8, 8, 3 * 8, 1};
    Buffer a(type, {2, 3, 7, 8}, aStrides), b(type, {2, 3, 7, 8}, aStrides),
        y(type, {2, 3, 7, 7});
    a.fill(1), b.fill(2);
    Call call("matmul", {{"transposeB", true}});
    ASSERT_TRUE(call.run({&a, &b, &y})) << call.error;
    EXPECT_LE(difference(y, reference(call.site, a, b, nullptr, nullptr, y)),
              tolerance(type));
    Buffer z(type, {2, 3, 7, 8}, aStrides);
    Call back("matmul", {});
    ASSERT_TRUE(back.run({&y, &b, &z})) << back.error;
    EXPECT_LE(difference(z, reference(back.site, y, b, nullptr, nullptr, z)),
              tolerance(type));
  }
}

TEST(Matmul, SitesShareOnePackedConstant) {
  for (DType type : {DType::F32, DType::F64}) {
    PackCache packs;
    Buffer a(type, {24, 64}), b(type, {64, 96}), y(type, {24, 96});
    a.fill(1), b.fill(2);
    int64_t once = 0;
    for (int i = 0; i < 3; ++i) {
      Call call("matmul", {});
      call.context.packs = &packs;
      call.context.constant = {nullptr, b.bytes.data()};
      call.context.constantKeys = {0, 7};
      ASSERT_TRUE(call.prepare({&a, &b, &y})) << call.error;
      // Without AVX-512 oneDNN reads f32 weights as they are.
      bool isPacked = !call.kernel->keepsConstant(1);
      EXPECT_TRUE(isPacked ||
                  call.kernel->implementation() == "oneDNN gemm:jit");
      EXPECT_TRUE(call.kernel->keepsConstant(0));
      once = once ? once : packs.bytes();
      EXPECT_EQ(packs.bytes(), once);
      EXPECT_GE(call.kernel->packedBytes(),
                isPacked ? b.count() * byteSize(type) : 0);
    }
  }
}

TEST(Matmul, BadSitesAreRefusedWithTheNumbers) {
  Buffer a(DType::F32, {3, 4}), b(DType::F32, {5, 6}), y(DType::F32, {3, 6}),
      i(DType::I32, {4, 6});
  Call call("matmul", {});
  EXPECT_FALSE(call.prepare({&a, &b, &y}));
  EXPECT_EQ(
      call.error,
      "matmul: A 3x4xf32 and B 5x6xf32 differ in the contracted dimension");
  EXPECT_FALSE(call.prepare({&a, &i, &y}));
  EXPECT_EQ(call.error, "matmul: types f32, i32 -> f32 aren't supported");
  EXPECT_FALSE(call.prepare({&a, &b}));
  Call unknown("matmul", {{"transposeC", true}});
  Buffer good(DType::F32, {4, 6});
  EXPECT_FALSE(unknown.prepare({&a, &good, &y}));
  EXPECT_EQ(unknown.error, "matmul: attribute transposeC is unknown");
  Call kind("matmuls", {});
  EXPECT_FALSE(kind.prepare({&a, &good, &y}));
}

/// Every matrix product of the models: mtp's tiles in f32 against oneDNN.
TEST(Matmul, OwnTilesAgreeWithOneDnnOnTheShapesOfModels) {
  const std::vector<int64_t> sizes = {16,  24,  32,  64,   96,  101,
                                      192, 256, 768, 1024, 3072};
  std::map<std::string, int> implementations;
  for (int64_t m : {1, 2, 3, 21, 24, 128, 197})
    for (int64_t k : sizes)
      for (int64_t n : sizes) {
        if (m * k * n > 30'000'000 && (k + n) % 5 != 2)
          continue; // the largest are sampled
        MatmulProblem problem;
        problem.m = m, problem.k = k, problem.n = n;
        problem.a = {DType::F32, {}, k, 1};
        problem.b = {DType::F32, {}, n, 1};
        problem.y = {DType::F32, {}, n, 1};
        problem.yAt = 2;
        Buffer a(DType::F32, {m, k}), b(DType::F32, {k, n}),
            y(DType::F32, {m, n}), z = y;
        for (int64_t i = 0; i < a.count(); ++i)
          a.as<float>()[i] = float((i * 7919) % 1013) / 507 - 1;
        for (int64_t i = 0; i < b.count(); ++i)
          b.as<float>()[i] = float((i * 104729) % 1009) / 505 - 1;
        PrepareContext context;
        context.constant = {nullptr, b.bytes.data()};
        std::string error;
        auto library = prepareOneDnnMatmul(problem, context, error);
        ASSERT_NE(library, nullptr)
            << error << " " << m << " " << k << " " << n;
        ++implementations[library->implementation()];
        auto own = prepareTiledMatmul(problem, context);
        char *first[] = {a.bytes.data(), b.bytes.data(), y.bytes.data()};
        char *second[] = {a.bytes.data(), b.bytes.data(), z.bytes.data()};
        ASSERT_TRUE(library->run(nullptr, first, error) &&
                    own->run(nullptr, second, error));
        double most = 0, scale = 0;
        for (int64_t i = 0; i < m * n; ++i) {
          most = std::max(
              most, double(std::fabs(y.as<float>()[i] - z.as<float>()[i])));
          scale = std::max(scale, double(std::fabs(z.as<float>()[i])));
        }
        EXPECT_LE(most, 6e-6 * scale) << m << " " << k << " " << n;
      }
  for (auto &[name, count] : implementations)
    RecordProperty(name, count);
}

} // namespace
