// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/codegen/KernelRunner.h"
#include "runtime/loader/ElfCheck.h"
#include "runtime/loader/ObjectLoader.h"
#include "test/unit/codegen/CallMemory.h"

#include "mlir/IR/Diagnostics.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <random>
#include <sstream>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace mtp;
using namespace mtp::test;

static CallMemory memoryOf(TypeRange inputs, TypeRange results,
                           const std::vector<Tensor> &arguments) {
  CallMemory memory;
  for (auto [type, tensor] : llvm::zip(inputs, arguments))
    memory.add(type, tensor);
  for (Type type : results)
    memory.add(type);
  return memory;
}

KernelRunner::KernelRunner(ModuleOp source) {
  std::string messages;
  ScopedDiagnosticHandler handler(source.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    messages += diagnostic.str() + "\n";
                                    return success();
                                  });
  module = std::make_unique<KernelModule>(source.getContext());
  for (auto func : source.getOps<func::FuncOp>()) {
    KernelInfo info;
    auto index = module->addFunction(func, info);
    if (failed(index))
      throw std::runtime_error(messages);
    indices[func.getName().str()] = *index;
  }
  compile();
}

KernelRunner::KernelRunner(MLIRContext *context, ArrayRef<Operation *> fused)
    : module(std::make_unique<KernelModule>(context)) {
  for (Operation *op : fused) {
    KernelInfo info;
    auto index = module->add(op, info);
    if (failed(index))
      throw std::runtime_error("a fused region has no kernel");
    fusedIndices[op] = *index;
  }
  compile();
}

void KernelRunner::compile() {
  std::string error;
  KernelOptions options;
  if (const char *directory = getenv("MTP_DUMP_KERNELS"))
    options.dumpDir = directory;
  auto object = module->emitObject(options, error);
  if (failed(object))
    throw std::runtime_error(error);
  compiled = std::move(*object);
  if (!checkSharedObject(compiled.bytes, MTP_KERNELS_SYMBOL, error))
    throw std::runtime_error(error);
  int file = memfd_create("kernels", MFD_CLOEXEC);
  if (write(file, compiled.bytes.data(), compiled.bytes.size()) !=
      static_cast<ssize_t>(compiled.bytes.size()))
    throw std::runtime_error("memory file");
  handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(),
                  RTLD_NOW | RTLD_LOCAL);
  close(file);
  if (!handle)
    throw std::runtime_error(dlerror());
  table =
      reinterpret_cast<MtpKernelsEntry>(dlsym(handle, MTP_KERNELS_SYMBOL))();
}

KernelRunner::~KernelRunner() {
  if (handle)
    dlclose(handle);
}

std::vector<Tensor> KernelRunner::run(func::FuncOp func,
                                      const std::vector<Tensor> &arguments,
                                      int slices) {
  return run(indexOf(func), func.getArgumentTypes(), func.getResultTypes(),
             arguments, slices);
}

std::vector<Tensor> KernelRunner::run(int index, TypeRange inputs,
                                      TypeRange results,
                                      const std::vector<Tensor> &arguments,
                                      int slices) {
  CallMemory call = memoryOf(inputs, results, arguments);
  lastFault = 0;
  MtpRank rank{MTP_ABI_VERSION, mathTable(), nullptr, 0, 0,
               nullptr,         &lastFault};
  int64_t count = module->kernels()[index].count;
  for (int i = 0; i < slices; ++i)
    table->kernels[index](&rank, call.buffers.data(), count * i / slices,
                          count * (i + 1) / slices);
  call.checkGuards();
  std::vector<Tensor> tensors;
  for (auto [i, type] : llvm::enumerate(results))
    tensors.push_back(call.read(inputs.size() + i, type));
  return tensors;
}

double KernelRunner::time(func::FuncOp func,
                          const std::vector<Tensor> &arguments) {
  CallMemory call =
      memoryOf(func.getArgumentTypes(), func.getResultTypes(), arguments);
  int index = indexOf(func);
  MtpRank rank{MTP_ABI_VERSION, mathTable(), nullptr, 0, 0,
               nullptr,         &lastFault};
  double best = 1e9;
  for (int i = 0; i < 200; ++i) {
    auto start = std::chrono::steady_clock::now();
    table->kernels[index](&rank, call.buffers.data(), 0,
                          module->kernels()[index].count);
    best = std::min(best, std::chrono::duration<double, std::milli>(
                              std::chrono::steady_clock::now() - start)
                              .count());
  }
  return best;
}

std::vector<Tensor> mtp::test::randomArguments(func::FuncOp func,
                                               uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<Tensor> result;
  for (auto [number, type] : llvm::enumerate(func.getArgumentTypes())) {
    Tensor tensor{cast<RankedTensorType>(type).getShape().vec(), {}};
    Type element = cast<RankedTensorType>(type).getElementType();
    auto below = func.getArgAttrOfType<IntegerAttr>(number, "mtp.below");
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      double value = normal(generator);
      if (element.isF32())
        value = static_cast<float>(value);
      if (element.isF16() || element.isBF16())
        value = std::round(value * 64) / 64;
      if (below)
        value = generator() % below.getInt();
      else if (element.isInteger(1))
        value = generator() % 2;
      else if (element.isUnsignedInteger())
        value = generator() % 10;
      else if (isa<IntegerType>(element))
        value = double(generator() % 19) - 9;
      tensor.data.push_back(value);
    }
    result.push_back(std::move(tensor));
  }
  return result;
}

std::string mtp::test::difference(const Tensor &actual, const Tensor &expected,
                                  double tolerance) {
  double scale = 1;
  for (double x : expected.data)
    if (std::isfinite(x))
      scale = std::max(scale, std::fabs(x));
  for (size_t i = 0; i < expected.data.size(); ++i) {
    double a = actual.data[i], b = expected.data[i];
    if (std::isnan(a) && std::isnan(b))
      continue;
    if (a == b || std::fabs(a - b) <= tolerance * scale)
      continue;
    // A value that overflows f32 is infinite there.
    if (std::isinf(a) && std::fabs(b) > 3e38 && (a > 0) == (b > 0))
      continue;
    std::ostringstream text;
    text.precision(10);
    text << "element " << i << " is " << a << ", expected " << b;
    return text.str();
  }
  return "";
}
