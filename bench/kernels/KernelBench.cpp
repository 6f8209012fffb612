// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- KernelBench.cpp - rates of the library kernels ---------------------===//
//
// Prints GFLOP/s of matrix products (oneDNN and mtp's own tiles) and of fused
// attention on the shapes of transformers. Usage: kernel-bench [threads]
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/LibraryKernel.h"
#include "runtime/kernels/Matmul.h"
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace mtp;

namespace {

int threads = 1;

/// Seconds: processor time on one thread (other work on the machine counts
/// less), else wall time.
double now() {
  timespec time;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
                &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// The best time of repeated runs over 0.3 s, in seconds.
double measure(LibraryKernel &kernel, char *const *buffers) {
  std::string error;
  MtpRank rank = {};
  kernel.run(&rank, buffers, error);
  double best = 1e9;
  for (double start = now(); now() - start < 0.3;) {
    double begin = now();
    kernel.run(&rank, buffers, error);
    best = std::min(best, now() - begin);
  }
  return best;
}

AlignedBytes numbers(DType type, int64_t count) {
  AlignedBytes bytes{size_t(count * byteSize(type))};
  for (int64_t i = 0; i < count; ++i) {
    double value = double(i * 7919 % 2003) / 1001 - 1;
    if (type == DType::F64)
      reinterpret_cast<double *>(bytes.data())[i] = value;
    else if (type == DType::F32)
      reinterpret_cast<float *>(bytes.data())[i] = float(value);
    else
      reinterpret_cast<int64_t *>(bytes.data())[i] = i % 100;
  }
  return bytes;
}

void matmul(DType type, int64_t m, int64_t k, int64_t n) {
  AlignedBytes a = numbers(type, m * k), b = numbers(type, k * n),
               y = numbers(type, m * n);
  MatmulProblem problem;
  problem.m = m, problem.k = k, problem.n = n;
  problem.a = {type, {}, k, 1};
  problem.b = {type, {}, n, 1};
  problem.y = {type, {}, n, 1};
  problem.yAt = 2;
  PrepareContext context;
  context.threads = threads;
  context.constant = {nullptr, b.data()};
  char *buffers[] = {a.data(), b.data(), y.data()};
  double flops = 2.0 * double(m) * double(k) * double(n) * 1e-9;
  std::string reason;
  double library = 0;
  if (auto kernel = prepareOneDnnMatmul(problem, context, reason))
    library = flops / measure(*kernel, buffers);
  double own = flops / measure(*prepareTiledMatmul(problem, context), buffers);
  std::printf(
      "matmul    %s %4ld x %4ld x %5ld   oneDNN %7.1f   tiled %7.1f GFLOP/s\n",
      name(type), long(m), long(k), long(n), library, own);
}

/// The products of a dense layer in training, y = x w: forward, dx = g w', dw =
/// x' g. Weights change from step to step and are not packed.
void training(DType type, int64_t m, int64_t k, int64_t n) {
  struct Form {
    const char *name;
    int64_t m, k, n;
    bool transposeA, transposeB;
  };
  for (const Form &form : {Form{"x w", m, k, n, false, false},
                           {"g w'", m, n, k, false, true},
                           {"x'g", k, m, n, true, false}}) {
    LibrarySite site;
    site.kind = "matmul";
    site.attributes = {{"transposeA", form.transposeA},
                       {"transposeB", form.transposeB}};
    auto desc = [&](int64_t rows, int64_t columns, bool transposed) {
      std::vector<int64_t> shape = {rows, columns};
      if (transposed)
        std::swap(shape[0], shape[1]);
      return TensorDesc{type, shape, {}};
    };
    site.operands = {desc(form.m, form.k, form.transposeA),
                     desc(form.k, form.n, form.transposeB),
                     desc(form.m, form.n, false)};
    AlignedBytes a = numbers(type, form.m * form.k),
                 b = numbers(type, form.k * form.n),
                 y = numbers(type, form.m * form.n);
    char *buffers[] = {a.data(), b.data(), y.data()};
    PrepareContext context;
    context.threads = threads;
    std::string error;
    auto kernel = prepareLibraryKernel(site, context, error);
    double seconds = measure(*kernel, buffers);
    std::printf("training  %s %4ld x %4ld x %5ld %-5s %7.1f GFLOP/s %8.1f us, "
                "%s\n",
                name(type), long(form.m), long(form.k), long(form.n), form.name,
                2e-9 * double(m) * double(k) * double(n) / seconds,
                seconds * 1e6, kernel->implementation().c_str());
  }
}

/// A product with its epilogue, as a site.
void layer(DType type, int64_t m, int64_t k, int64_t n, const char *activation,
           bool residual, const char *compute) {
  LibrarySite site;
  site.kind = "matmul";
  site.attributes = {
      {"bias", true}, {"activation", activation}, {"residual", residual}};
  if (*compute)
    site.attributes["compute"] = compute;
  AlignedBytes a = numbers(type, m * k), b = numbers(type, k * n),
               bias = numbers(type, n), r = numbers(type, m * n),
               y = numbers(type, m * n);
  site.operands = {{type, {m, k}, {}}, {type, {k, n}, {}}, {type, {n}, {}}};
  std::vector<char *> buffers = {a.data(), b.data(), bias.data()};
  if (residual) {
    site.operands.push_back({type, {m, n}, {}});
    buffers.push_back(r.data());
  }
  site.operands.push_back({type, {m, n}, {}});
  buffers.push_back(y.data());
  PrepareContext context;
  context.threads = threads;
  context.constant = {nullptr, b.data()};
  std::string error;
  double prepared = now();
  auto kernel = prepareLibraryKernel(site, context, error);
  prepared = now() - prepared;
  double seconds = measure(*kernel, buffers.data());
  std::printf("layer     %s %4ld x %4ld x %5ld %-9s%-10s%-5s %7.1f GFLOP/s "
              "%8.1f us, prepared in %6.0f us, %s\n",
              name(type), long(m), long(k), long(n), activation,
              residual ? " residual" : "", compute,
              2e-9 * double(m) * double(k) * double(n) / seconds, seconds * 1e6,
              prepared * 1e6, kernel->implementation().c_str());
}

void attentionGradient(DType type, int64_t batch, int64_t heads, int64_t s,
                       int64_t d, bool causal) {
  LibrarySite site;
  site.kind = "attention_gradient";
  site.attributes = {{"scale", 1 / std::sqrt(double(d))}, {"causal", causal}};
  TensorDesc tensor{
      type, {batch, heads, s, d}, {heads * s * d, d, heads * d, 1}};
  TensorDesc rows{type, {batch, heads, s}, {}};
  site.operands = {tensor, tensor, tensor, tensor, rows, tensor};
  for (int i = 0; i < 3; ++i)
    site.operands.push_back(tensor);
  site.results = 3;
  std::vector<AlignedBytes> memory;
  std::vector<char *> buffers;
  for (const TensorDesc &desc : site.operands) {
    memory.push_back(
        numbers(type, batch * heads * s * (desc.shape.size() == 4 ? d : 1)));
    buffers.push_back(memory.back().data());
  }
  PrepareContext context;
  context.threads = threads;
  std::string error;
  auto kernel = prepareLibraryKernel(site, context, error);
  double pairs = causal ? double(s) * double(s + 1) / 2 : double(s) * double(s);
  double flops = 10.0 * double(batch * heads) * pairs * double(d) * 1e-9;
  double seconds = measure(*kernel, buffers.data());
  std::printf("gradient  %s batch %ld, heads %2ld, %4ld, depth %3ld%s   %7.1f "
              "GFLOP/s  %8.1f us\n",
              name(type), long(batch), long(heads), long(s), long(d),
              causal ? ", causal" : "", flops / seconds, seconds * 1e6);
}

void attention(DType type, int64_t heads, int64_t s, int64_t t, int64_t d,
               bool causal, const char *mask = "") {
  LibrarySite site;
  site.kind = "attention";
  site.attributes = {{"scale", 1 / std::sqrt(double(d))}, {"causal", causal}};
  auto tensor = [&](int64_t rows) {
    return TensorDesc{
        type, {1, heads, rows, d}, {heads * rows * d, d, heads * d, 1}};
  };
  site.operands = {tensor(s), tensor(t), tensor(t), tensor(s)};
  AlignedBytes q = numbers(type, heads * s * d),
               k = numbers(type, heads * t * d),
               v = numbers(type, heads * t * d),
               y = numbers(type, heads * s * d);
  std::vector<char *> buffers = {q.data(), k.data(), v.data(), y.data()};
  AlignedBytes scores = numbers(type, s * t);
  if (*mask) {
    site.attributes["mask"] = true;
    site.operands.insert(site.operands.begin() + 3,
                         TensorDesc{type, {*mask == 'f' ? s : 1, t}, {}});
    buffers.insert(buffers.begin() + 3, scores.data());
  }
  PrepareContext context;
  context.threads = threads;
  std::string error;
  auto kernel = prepareLibraryKernel(site, context, error);
  double pairs = causal ? double(s) * double(s + 1) / 2 : double(s) * double(t);
  double flops = 4.0 * double(heads) * pairs * double(d) * 1e-9;
  double seconds = measure(*kernel, buffers.data());
  std::printf("attention %s heads %2ld, %4ld x %4ld, depth %3ld%s%s   %7.1f "
              "GFLOP/s  %8.1f us\n",
              name(type), long(heads), long(s), long(t), long(d),
              causal ? ", causal" : "", mask, flops / seconds, seconds * 1e6);
}

} // namespace

int main(int argc, char **argv) {
  threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  for (DType type : {DType::F32, DType::F64, DType::I64})
    for (auto [m, k, n] : {std::array<int64_t, 3>{1, 768, 768},
                           {24, 768, 3072},
                           {128, 768, 768},
                           {128, 768, 3072},
                           {128, 3072, 768},
                           {512, 1024, 1024}})
      matmul(type, m, k, n);
  for (DType type : {DType::F32, DType::F64})
    for (const char *activation :
         {"none", "relu", "gelu_erf", "gelu_tanh", "silu"})
      for (bool residual : {false, true})
        layer(type, 128, 768, 3072, activation, residual, "");
  layer(DType::F32, 128, 768, 3072, "gelu_erf", false, "bf16");
  for (DType type : {DType::F32, DType::F64})
    for (bool causal : {false, true}) {
      for (int64_t s : {24, 128, 512, 2048})
        attention(type, 12, s, s, 64, causal);
      attention(type, 8, 512, 512, 32, causal);
      attention(type, 8, 512, 512, 128, causal);
    }
  attention(DType::F32, 12, 128, 128, 64, false, " key mask");
  attention(DType::F32, 12, 128, 128, 64, false, "full mask");
  attention(DType::F32, 12, 1, 1024, 64, false);
  for (DType type : {DType::F32, DType::F64}) {
    for (auto [m, k, n] : {std::array<int64_t, 3>{512, 768, 768},
                           {512, 768, 3072},
                           {512, 3072, 768},
                           {2048, 1024, 1024}})
      training(type, m, k, n);
    for (bool causal : {false, true})
      for (int64_t s : {128, 512, 2048})
        attentionGradient(type, s < 1024 ? 4 : 1, 12, s, 64, causal);
  }
  training(DType::F32, 512, 768, 50257);
  return 0;
}
