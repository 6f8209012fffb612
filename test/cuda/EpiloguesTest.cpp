// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- EpiloguesTest.cpp - products that take kernels along ---------------===//
//
// An artifact has both forms of a product with its epilogue. Whichever runs
// gives the numbers that are computed here, on all ranks the same form.
//
//===----------------------------------------------------------------------===//
#include "test/cuda/GpuFixture.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mtp;
using namespace mtp::test;
using Kind = Instruction::Kind;
using Space = BufferRef::Space;

namespace {

constexpr int64_t kRows = 6, kDepth = 5;
int64_t columns = 8; ///< of the running test

double gelu(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double geluGradient(double x) {
  double h = 1e-6;
  return (gelu(x + h) - gelu(x - h)) / (2 * h);
}

float *floatsAt(uint64_t address) { return reinterpret_cast<float *>(address); }

// Kernels of the other form, for matrices of kRows x columns: rank, operands,
// results.
void geluKernel(const uint64_t *p, const unsigned *) {
  for (int64_t i = 0; i < kRows * columns; ++i)
    floatsAt(p[2])[i] = static_cast<float>(gelu(floatsAt(p[1])[i]));
}
void gradientKernel(const uint64_t *p, const unsigned *) {
  for (int64_t i = 0; i < kRows * columns; ++i)
    floatsAt(p[3])[i] =
        static_cast<float>(geluGradient(floatsAt(p[1])[i]) * floatsAt(p[2])[i]);
}
/// Sums of the rows of a matrix of `depth` rows.
void sumRows(const uint64_t *p, int64_t depth) {
  for (int64_t column = 0; column < columns; ++column) {
    double sum = 0;
    for (int64_t row = 0; row < depth; ++row)
      sum += floatsAt(p[1])[row * columns + column];
    floatsAt(p[2])[column] = static_cast<float>(sum);
  }
}
void sumKernel(const uint64_t *p, const unsigned *) { sumRows(p, kRows); }
void sumDepthKernel(const uint64_t *p, const unsigned *) { sumRows(p, kDepth); }
void sumLeftKernel(const uint64_t *p, const unsigned *) {
  for (int64_t row = 0; row < kRows; ++row) {
    floatsAt(p[2])[row] = 0;
    for (int64_t k = 0; k < kDepth; ++k)
      floatsAt(p[2])[row] += floatsAt(p[1])[k * kRows + row];
  }
}

struct Kernel {
  const char *name;
  software::KernelBody body;
  std::vector<const char *> buffers; ///< the last one is its result
};

/// A product of "a" and "b" with an epilogue and what else computes it.
struct Epilogue {
  nlohmann::json attributes;
  std::vector<const char *> inputs, results; ///< beside a and b
  std::vector<Kernel> kernels;
  bool productHasBias = false;
  const char *product = "t"; ///< what the product alone gives
  bool transposesA = false;
};

std::vector<int64_t> shapeOf(const Epilogue &epilogue,
                             const std::string &name) {
  if (name == "a")
    return epilogue.transposesA ? std::vector{kDepth, kRows}
                                : std::vector{kRows, kDepth};
  if (name == "b")
    return {kDepth, columns};
  if (name == "bias" || name == "sum")
    return {columns};
  if (name == "left")
    return {kRows};
  return {kRows, columns};
}

BufferRef place(const Epilogue &epilogue, Entry &entry,
                const std::string &name) {
  std::vector<int64_t> shape = shapeOf(epilogue, name);
  int64_t bytes = 4;
  for (int64_t size : shape)
    bytes *= size;
  for (size_t i = 0; i < entry.inputs.size(); ++i)
    if (entry.inputs[i].name == name)
      return at(Space::Input, static_cast<int64_t>(i), 0, bytes);
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    if (entry.outputs[i].name == name)
      return at(Space::Output, static_cast<int64_t>(i), 0, bytes);
  entry.arenaBytes = std::max<int64_t>(entry.arenaBytes, 1024);
  return at(Space::Arena, 0, 0, bytes);
}

Artifact artifactOf(const Epilogue &epilogue) {
  Artifact a;
  a.device = "cuda";
  a.gpu.arch = "sm_90";
  a.mesh = "tp=2";
  a.axes.axes = {{"tp", 2}};
  a.plan = nlohmann::json::object();
  Entry e;
  std::vector<std::string> inputs = {"a", "b"};
  inputs.insert(inputs.end(), epilogue.inputs.begin(), epilogue.inputs.end());
  for (const std::string &name : inputs) {
    Input input;
    input.name = name;
    input.layout = whole(DType::F32, shapeOf(epilogue, name));
    e.inputs.push_back(input);
  }
  for (const char *name : epilogue.results)
    e.outputs.push_back({name, whole(DType::F32, shapeOf(epilogue, name))});
  auto call = [&](nlohmann::json attributes, std::vector<std::string> operands,
                  size_t results) {
    LibrarySite site;
    site.kind = "matmul";
    site.attributes = std::move(attributes);
    if (epilogue.transposesA)
      site.attributes["transposeA"] = true;
    site.results = static_cast<int64_t>(results);
    Instruction step{
        Kind::Library, static_cast<int64_t>(a.librarySites.size()), {}, 1, 1,
        "product"};
    for (const std::string &name : operands) {
      site.operands.push_back({DType::F32, shapeOf(epilogue, name), {}});
      step.buffers.push_back(place(epilogue, e, name));
    }
    a.librarySites.push_back(site);
    e.program.push_back(step);
  };
  std::vector<std::string> all = inputs;
  all.insert(all.end(), epilogue.results.begin(), epilogue.results.end());
  call(epilogue.attributes, all, epilogue.results.size());
  e.program[0].otherwise = 1 + static_cast<int64_t>(epilogue.kernels.size());
  nlohmann::json plain = nlohmann::json::object();
  std::vector<std::string> operands = {"a", "b"};
  if (epilogue.productHasBias) {
    plain["bias"] = true;
    operands.push_back("bias");
  }
  operands.push_back(epilogue.product);
  call(plain, operands, 1);
  std::vector<std::pair<std::string, int>> entries;
  for (const Kernel &kernel : epilogue.kernels) {
    registerKernel(kernel.name, kernel.body);
    Instruction step{
        Kind::Kernel, static_cast<int64_t>(a.kernelNames.size()), {}, 1, 1,
        kernel.name};
    for (const char *name : kernel.buffers)
      step.buffers.push_back(place(epilogue, e, name));
    step.results = 1;
    e.program.push_back(step);
    a.kernelNames.push_back(kernel.name);
    GpuKernel code;
    code.symbol = kernel.name;
    a.gpu.kernels.push_back(code);
    entries.push_back(
        {kernel.name, static_cast<int>(kernel.buffers.size()) + 1});
  }
  a.object = ptxOf(entries);
  a.entries = {e};
  return a;
}

TensorMap inputsOf(const Artifact &artifact) {
  TensorMap inputs;
  for (const Input &input : artifact.entries[0].inputs) {
    HostTensor tensor(DType::F32, input.layout.shape);
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.as<float>()[i] =
          std::sin(static_cast<float>(i * 7 + int64_t(input.name[0])));
    inputs.emplace(input.name, std::move(tensor));
  }
  return inputs;
}

/// The results, in double precision.
std::map<std::string, std::vector<double>> expected(const Epilogue &epilogue,
                                                    const TensorMap &inputs) {
  std::map<std::string, std::vector<double>> results;
  std::vector<double> &y = results["y"], &t = results["t"],
                      &sum = results["sum"];
  sum.assign(static_cast<size_t>(columns), 0);
  std::string activation = epilogue.attributes.value("activation", "none");
  const float *a = inputs.at("a").as<float>(), *b = inputs.at("b").as<float>();
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      double x = 0;
      for (int64_t k = 0; k < kDepth; ++k)
        x += double(
                 a[epilogue.transposesA ? k * kRows + row : row * kDepth + k]) *
             double(b[k * columns + column]);
      if (epilogue.productHasBias)
        x += double(inputs.at("bias").as<float>()[column]);
      t.push_back(x);
      if (activation == "gelu_tanh")
        x = gelu(x);
      if (activation == "gelu_tanh_gradient")
        x *= geluGradient(
            double(inputs.at("h").as<float>()[row * columns + column]));
      y.push_back(x);
      if (epilogue.attributes.value("biasGradient", "none") == "result")
        sum[static_cast<size_t>(column)] += x;
    }
  std::vector<double> &left = results["left"];
  left.assign(static_cast<size_t>(kRows), 0);
  if (epilogue.transposesA)
    for (int64_t i = 0; i < kDepth * kRows; ++i)
      left[static_cast<size_t>(i % kRows)] += double(a[i]);
  if (epilogue.attributes.value("biasGradient", "none") == "b")
    for (int64_t i = 0; i < kDepth * columns; ++i)
      sum[static_cast<size_t>(i % columns)] += double(b[i]);
  return results;
}

const Epilogue kGelu = {
    {{"activation", "gelu_tanh"}, {"bias", true}, {"aux", true}},
    {"bias"},
    {"y", "t"},
    {{"gelu", geluKernel, {"t", "y"}}},
    true};
const Epilogue kGradient = {
    {{"activation", "gelu_tanh_gradient"}, {"biasGradient", "result"}},
    {"h"},
    {"y", "sum"},
    {{"gradient", gradientKernel, {"h", "t", "y"}},
     {"sum", sumKernel, {"y", "sum"}}}};
const Epilogue kOperand = {{{"biasGradient", "b"}},
                           {},
                           {"y", "sum"},
                           {{"sum_depth", sumDepthKernel, {"b", "sum"}}},
                           false,
                           "y",
                           true};

const Epilogue kLeft = {{{"biasGradient", "a"}},
                        {},
                        {"y", "left"},
                        {{"sum_left", sumLeftKernel, {"a", "left"}}},
                        false,
                        "y",
                        true};

class Epilogues : public GpuTest {
protected:
  /// Runs three steps, checks results and record; the launches of a rank and
  /// step.
  size_t launchesOf(const Epilogue &epilogue) {
    reset({});
    Artifact artifact = artifactOf(epilogue);
    TensorMap inputs = inputsOf(artifact);
    auto wanted = expected(epilogue, inputs);
    auto session = start(std::move(artifact), "nccl");
    if (!session)
      return 0;
    size_t before = launches();
    for (int step = 0; step < 3; ++step) {
      TensorMap outputs;
      Error error;
      EXPECT_TRUE(session->run(inputs, outputs, error)) << error.message;
      for (auto &[name, tensor] : outputs)
        for (int64_t i = 0; i < tensor.elements(); ++i)
          EXPECT_NEAR(tensor.as<float>()[i],
                      wanted.at(name)[static_cast<size_t>(i)], 1e-5)
              << name << " " << i;
    }
    size_t after = launches();
    session.reset();
    expectClean();
    // Two ranks; one step is given, the next one captured.
    EXPECT_EQ((after - before) % 4, 0u);
    return (after - before) / 4;
  }

  static size_t launches() {
    size_t count = 0;
    for (const software::Call &call : record().calls)
      count += call.name == "cuLaunchKernel";
    return count;
  }
};

TEST_F(Epilogues, AreTakenWhereOneCallIsFaster) {
  columns = 8;
  for (const Epilogue *epilogue : {&kGelu, &kGradient, &kOperand, &kLeft})
    EXPECT_EQ(launchesOf(*epilogue), 0u);
}

/// cuBLASLt needs rows of a multiple of eight elements.
TEST_F(Epilogues, AreKernelsWherePreActivationsDoNotFit) {
  columns = 7;
  EXPECT_EQ(launchesOf(kGelu), 1u);
  EXPECT_EQ(launchesOf(kGradient), 2u);
}

TEST_F(Epilogues, OfDamagedArtifactsAreRefused) {
  columns = 8;
  const std::pair<std::function<void(Artifact &)>, const char *> cases[] = {
      {[](Artifact &a) { a.entries[0].program[0].otherwise = 9; },
       "more than follow"},
      {[](Artifact &a) { a.entries[0].program[0].otherwise = -1; },
       "more than follow"},
      {[](Artifact &a) { a.entries[0].program[0].otherwise = 1; },
       "leaves out a result"},
      {[](Artifact &a) { a.entries[0].program[1].otherwise = 1; },
       "neither calls nor launches"},
      {[](Artifact &a) { a.entries[0].program[1].index = 9; },
       "unknown library site"},
      {[](Artifact &a) { a.entries[0].program[2].results = 7; },
       "more results than operands"},
  };
  for (auto &[damage, part] : cases) {
    Artifact artifact = artifactOf(kGradient);
    damage(artifact);
    std::string error;
    EXPECT_FALSE(artifact.verify(error)) << part;
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
}

} // namespace
