// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/codegen/KernelRunner.h"
#include "runtime/loader/ElfCheck.h"
#include "runtime/loader/ObjectLoader.h"

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

namespace {

int64_t bytesOf(Type type) {
  return std::max(1u, type.getIntOrFloatBitWidth() / 8);
}

template <typename T> void put(char *at, T value) {
  std::memcpy(at, &value, sizeof(T));
}
template <typename T> T take(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
const llvm::fltSemantics &semanticsOf(Type type) {
  return cast<FloatType>(type).getFloatSemantics();
}

void store(char *at, Type type, double value) {
  if (isa<FloatType>(type)) {
    APFloat number(value);
    bool lost;
    number.convert(semanticsOf(type), APFloat::rmNearestTiesToEven, &lost);
    uint64_t bits = number.bitcastToAPInt().getZExtValue();
    std::memcpy(at, &bits, bytesOf(type));
    return;
  }
  int64_t bits = type.isUnsignedInteger()
                     ? static_cast<int64_t>(static_cast<uint64_t>(value))
                     : static_cast<int64_t>(value);
  std::memcpy(at, &bits, bytesOf(type));
}
double load(const char *at, Type type) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, bytesOf(type));
  if (isa<FloatType>(type))
    return APFloat(semanticsOf(type), APInt(type.getIntOrFloatBitWidth(), bits))
        .convertToDouble();
  APInt integer(bytesOf(type) * 8, bits);
  return type.isUnsignedInteger() || type.isInteger(1)
             ? double(integer.getZExtValue())
             : double(integer.getSExtValue());
}

Type elementOf(Type tensor) {
  return cast<RankedTensorType>(tensor).getElementType();
}
int64_t elementsOf(Type tensor) {
  return cast<RankedTensorType>(tensor).getNumElements();
}

} // namespace

/// Buffers of one call, with guard bytes behind each.
struct KernelRunner::Call {
  static constexpr int64_t kGuard = 64;
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<char *> buffers;
  std::vector<int64_t> sizes;

  Call(TypeRange inputs, TypeRange results,
       const std::vector<Tensor> &arguments) {
    for (auto [type, tensor] : llvm::zip(inputs, arguments)) {
      add(type, 0);
      for (int64_t i = 0; i < elementsOf(type); ++i)
        store(buffers.back() + i * bytesOf(elementOf(type)), elementOf(type),
              tensor.data[i]);
    }
    for (Type type : results)
      add(type, 0x5a);
  }
  void add(Type type, char fill) {
    sizes.push_back(elementsOf(type) * bytesOf(elementOf(type)));
    memory.push_back(std::make_unique<char[]>(sizes.back() + 2 * kGuard + 64));
    std::memset(memory.back().get(), fill ? fill : 0x7f,
                sizes.back() + 2 * kGuard + 64);
    auto address = reinterpret_cast<uintptr_t>(memory.back().get());
    buffers.push_back(reinterpret_cast<char *>((address + 63) / 64 * 64));
  }
  void checkGuards() const {
    for (size_t i = 0; i < buffers.size(); ++i)
      for (int64_t k = 1; k < kGuard; ++k)
        if (buffers[i][sizes[i] + k] != buffers[i][sizes[i]])
          throw std::runtime_error("buffer " + std::to_string(i) +
                                   " was written past its end");
  }
};

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
  Call call(inputs, results, arguments);
  lastFault = 0;
  MtpRank rank{MTP_ABI_VERSION, mathTable(), nullptr, 0, 0,
               nullptr,         &lastFault};
  int64_t count = module->kernels()[index].count;
  for (int i = 0; i < slices; ++i)
    table->kernels[index](&rank, call.buffers.data(), count * i / slices,
                          count * (i + 1) / slices);
  call.checkGuards();
  std::vector<Tensor> tensors;
  size_t buffer = inputs.size();
  for (Type type : results) {
    Tensor tensor{cast<RankedTensorType>(type).getShape().vec(), {}};
    for (int64_t i = 0; i < elementsOf(type); ++i)
      tensor.data.push_back(
          load(call.buffers[buffer] + i * bytesOf(elementOf(type)),
               elementOf(type)));
    tensors.push_back(std::move(tensor));
    ++buffer;
  }
  return tensors;
}

double KernelRunner::time(func::FuncOp func,
                          const std::vector<Tensor> &arguments) {
  Call call(func.getArgumentTypes(), func.getResultTypes(), arguments);
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
    Type element = elementOf(type);
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
