// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/cuda/GpuFixture.h"
#include "runtime/abi/GpuAbi.h"
#include "runtime/comm/Reduce.h"

#include <cmath>
#include <cstdlib>
#include <dlfcn.h>

using namespace mtp;
using namespace mtp::test;
using software::KernelBody;

namespace {

/// Set before any test runs: nothing here looks for a real driver.
const bool environmentIsSet = [] {
  setenv("MTP_CUDA_RECORDER", MTP_CUDA_RECORDER_FILE, 1);
  return true;
}();

template <typename Function> Function *find(const char *name) {
  static void *library = dlopen(MTP_CUDA_RECORDER_FILE, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function *>(dlsym(library, name));
}

template <typename T> T *pointer(uint64_t address) {
  return reinterpret_cast<T *>(address);
}
uint64_t threads(const unsigned *shape) {
  return uint64_t(shape[0]) * shape[3];
}

// The kernels of objects/kernels.c: the rank, then the buffers.
void multiply(const uint64_t *p, const unsigned *shape) {
  for (uint64_t i = 0; i < threads(shape); ++i)
    pointer<float>(p[3])[i] = pointer<float>(p[1])[i] * pointer<float>(p[2])[i];
}
void lookUp(const uint64_t *p, const unsigned *shape) {
  for (uint64_t i = 0; i < threads(shape); ++i) {
    int64_t index = pointer<int64_t>(p[1])[i];
    if (index < 0 || index >= 4)
      *pointer<const MtpGpuRank>(p[0])->fault = 1;
    else
      pointer<float>(p[3])[i] = pointer<float>(p[2])[index];
  }
}
void addOne(const uint64_t *p, const unsigned *shape) {
  for (uint64_t i = 0; i < threads(shape); ++i)
    pointer<float>(p[1])[i] += 1;
}
/// y = exp(x) + rankValues[0] + 100 step + seed.
void exponent(const uint64_t *p, const unsigned *shape) {
  auto *rank = pointer<const MtpGpuRank>(p[0]);
  for (uint64_t i = 0; i < threads(shape); ++i)
    pointer<float>(p[2])[i] =
        std::exp(pointer<float>(p[1])[i]) +
        static_cast<float>(rank->rankValues[0] + 100 * rank->step + rank->seed);
}

using Reduction = CollectiveSite::Reduction;
constexpr const char *kReductions[] = {"sum", "max", "min"};
constexpr int kTypes = static_cast<int>(DType::Bool) + 1;

/// mtp_reduce_*: out, in, count.
template <int Code> void reduce(const uint64_t *p, const unsigned *) {
  const char *in[] = {pointer<char>(p[0]), pointer<char>(p[1])};
  reduceMembers(static_cast<DType>(Code % kTypes),
                static_cast<Reduction>(Code / kTypes), in, 2,
                pointer<char>(p[0]), static_cast<int64_t>(p[2]));
}
std::string reduceName(int code) {
  return std::string("mtp_reduce_") + kReductions[code / kTypes] + "_" +
         name(static_cast<DType>(code % kTypes));
}
template <int... Codes> void registerAll(std::integer_sequence<int, Codes...>) {
  (registerKernel(reduceName(Codes), reduce<Codes>), ...);
}

} // namespace

void mtp::test::registerKernel(const std::string &name, KernelBody body) {
  find<void(const char *, KernelBody)>("mtpRecorderKernel")(name.c_str(), body);
}

void mtp::test::registerReductions() {
  registerAll(std::make_integer_sequence<int, 3 * kTypes>());
}

void GpuTest::reset(const software::Settings &settings) {
  find<void(const software::Settings *)>("mtpRecorderReset")(&settings);
  registerKernel("multiply", multiply);
  registerKernel("look_up", lookUp);
  registerKernel("add_one", addOne);
  registerKernel("exponent", exponent);
  registerReductions();
}

software::Record GpuTest::record() {
  const auto *taken = find<const software::Record *()>("mtpRecorderTake")();
  software::Record copy = *taken;
  find<void(const software::Record *)>("mtpRecorderFree")(taken);
  return copy;
}

uint64_t GpuTest::alive() { return find<uint64_t()>("mtpRecorderAlive")(); }

void GpuTest::expectClean(bool ended) {
  for (const std::string &finding : software::checkRecord(record(), ended))
    ADD_FAILURE() << finding;
  if (ended) {
    EXPECT_EQ(alive(), 0u);
  }
}

std::unique_ptr<Session> GpuTest::start(Artifact artifact,
                                        const std::string &comm,
                                        SessionOptions options) {
  options.comm = comm;
  Error error;
  auto session = Session::create(std::move(artifact), options, error);
  EXPECT_TRUE(session) << error.message;
  return session;
}

std::string mtp::test::ptxOf(
    const std::vector<std::pair<std::string, int>> &namesAndParameters) {
  std::string text = ".version 7.8\n.target sm_90\n.address_size 64\n";
  auto add = [&](const std::string &name, int parameters) {
    text += ".visible .entry " + name + "(";
    for (int i = 0; i < parameters; ++i)
      text += std::string(i ? "," : "") + "\n  .param .u64 " + name +
              "_param_" + std::to_string(i);
    text += "\n)\n{\n  ret;\n}\n";
  };
  for (auto &[name, parameters] : namesAndParameters)
    add(name, parameters);
  for (int code = 0; code < 3 * kTypes; ++code)
    add(reduceName(code), 3);
  return text;
}

Artifact mtp::test::forGpu(Artifact artifact) {
  artifact.device = "cuda";
  artifact.object = ptxOf({{"multiply", 4},
                           {"look_up", 4},
                           {"add_one", 2},
                           {"hang", 2},
                           {"exponent", 3}});
  artifact.gpu.arch = "sm_90";
  artifact.gpu.kernels.resize(artifact.kernelNames.size());
  for (size_t i = 0; i < artifact.kernelNames.size(); ++i)
    artifact.gpu.kernels[i].symbol = artifact.kernelNames[i];
  for (Entry &entry : artifact.entries)
    for (Instruction &step : entry.program)
      if (step.kind == Instruction::Kind::Kernel) {
        step.results = 1;
        artifact.gpu.kernels[step.index].grid[0] =
            std::max<int64_t>(step.count, 1);
      }
  return artifact;
}
