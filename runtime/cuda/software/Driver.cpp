// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Driver.cpp - the entry points of the CUDA driver -------------------===//
#include "runtime/artifact/PtxText.h"
#include "runtime/cuda/api/DriverApi.h"
#include "runtime/cuda/software/Engine.h"
#include "runtime/cuda/software/KernelImage.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

using namespace mtp::cuda;
using namespace mtp::software;

namespace mtp::cuda {
struct ContextHandle {
  int device;
};
struct ModuleHandle {
  std::shared_ptr<const KernelSource> source; ///< null: PTX
  std::map<std::string, std::unique_ptr<FunctionHandle>> functions;
};
struct FunctionHandle {
  std::string name;
  int parameters = 0;
  bool loaded = false;
  std::shared_ptr<const KernelSource> source; ///< null: PTX
  int kernel = -1;                            ///< of the source
};
} // namespace mtp::cuda

namespace {

thread_local ContextHandle *currentContext = nullptr;

template <typename Handle> Handle *handleOf(uint64_t number) {
  return reinterpret_cast<Handle *>(number);
}

struct Locked {
  Locked() : engine(Engine::get()), lock(engine.mutex) {}
  Engine &engine;
  Engine::Lock lock;
  /// Records the call and gives its status back.
  int done(const char *name, int status, uint64_t stream = 0,
           uint64_t handle = 0, uint64_t bytes = 0,
           const std::string &detail = "") {
    if (!engine.records)
      return status;
    Call call;
    call.name = name;
    call.context = numberOf(currentContext);
    call.status = status;
    call.stream = stream;
    call.handle = handle;
    call.bytes = bytes;
    call.detail = detail;
    engine.note(std::move(call));
    return status;
  }
  /// Another status of a call that has been recorded.
  int correct(int status) {
    if (engine.records)
      engine.record.calls.back().status = status;
    return status;
  }
  /// Memory at an address that is never used again; 0: there is none.
  static uint64_t map(size_t bytes) {
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? 0 : numberOf(mapped);
  }
  /// Gives the pages back, and keeps the address as long as a record names it.
  bool unmap(std::map<uint64_t, uint64_t> &list, uint64_t address) {
    auto it = list.find(address);
    if (it == list.end())
      return false;
    if (engine.records)
      madvise(handleOf<void>(address), it->second, MADV_DONTNEED);
    else
      munmap(handleOf<void>(address), it->second);
    list.erase(it);
    return true;
  }
  /// Records the call, then gives its work to the stream.
  int give(const char *name, StreamHandle *stream, Work work, Action action) {
    done(name, driver::Success, numberOf(stream), 0, 0, work.what);
    if (engine.give(numberOf(stream), std::move(work), std::move(action)))
      return driver::Success;
    return correct(driver::InvalidHandle);
  }
};

int copyWork(const char *name, void *target, const void *source, size_t bytes,
             StreamHandle *stream) {
  Locked locked;
  Work work;
  work.what = "copy";
  work.reads = {rangeOf(source, bytes)};
  work.writes = {rangeOf(target, bytes)};
  return locked.give(name, stream, std::move(work), [=] {
    // The host looks at words meanwhile.
    if (bytes == sizeof(uint32_t))
      __atomic_store_n(static_cast<uint32_t *>(target),
                       *static_cast<const uint32_t *>(source),
                       __ATOMIC_RELAXED);
    else
      std::memmove(target, source, bytes);
  });
}

/// Copies from pageable memory are over when the call is.
int copyFromHost(const char *name, void *target, const void *source,
                 size_t bytes, StreamHandle *stream) {
  Locked locked;
  const char *begin = static_cast<const char *>(source);
  bool isPinned = false;
  for (auto &[address, size] : locked.engine.pinned)
    isPinned |= numberOf(begin) >= address && numberOf(begin) < address + size;
  Work work;
  work.what = "copy";
  work.writes = {rangeOf(target, bytes)};
  if (isPinned) {
    work.reads = {rangeOf(source, bytes)};
    return locked.give(name, stream, std::move(work),
                       [=] { std::memcpy(target, source, bytes); });
  }
  if (bytes == 0)
    return locked.give(name, stream, std::move(work), nullptr);
  std::vector<char> staged(begin, begin + bytes);
  return locked.give(name, stream, std::move(work),
                     [=] { std::memcpy(target, staged.data(), bytes); });
}

auto add(ModuleHandle &module, const std::string &name, int parameters,
         int kernel = -1) {
  auto function = std::make_unique<FunctionHandle>();
  function->name = name;
  function->parameters = parameters;
  function->source = module.source;
  function->kernel = kernel;
  return module.functions.emplace(name, std::move(function)).first;
}

/// KernelLaunch::extents, of what this thread's launch touches.
std::vector<int64_t> extentsOf(const std::vector<uint64_t> &parameters) {
  std::vector<int64_t> extents(parameters.size(), -1);
  for (size_t i = 0; i < extents.size(); ++i)
    for (const Touched &range : touchedByThread())
      if (range.begin == parameters[i])
        extents[i] = std::max(extents[i], static_cast<int64_t>(range.bytes));
  return extents;
}

} // namespace

extern "C" {

int mtp_cuInit(unsigned) {
  Locked locked;
  return locked.done("cuInit", locked.engine.settings.initStatus);
}
int mtp_cuDriverGetVersion(int *version) {
  *version = 13000;
  return driver::Success;
}
int mtp_cuGetErrorName(int status, const char **text) {
  *text = status == driver::OutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
          : status == driver::NoDevice  ? "CUDA_ERROR_NO_DEVICE"
                                        : "CUDA_ERROR";
  return driver::Success;
}
int mtp_cuGetErrorString(int status, const char **text) {
  switch (status) {
  case driver::OutOfMemory:
    *text = "out of memory";
    break;
  case driver::NoDevice:
    *text = "no CUDA-capable device is detected";
    break;
  case driver::CaptureUnsupported:
    *text = "operation not permitted when stream is capturing";
    break;
  case driver::CaptureUnjoined:
    *text = "capturing stream has unjoined work";
    break;
  case driver::CaptureIsolation:
    *text = "dependency created on uncaptured work in another stream";
    break;
  case driver::LaunchFailed:
  case driver::Unknown:
    *text = faultOfThread().c_str();
    break;
  default:
    *text = "an error of the software driver";
  }
  return driver::Success;
}
int mtp_cuDeviceGetCount(int *count) {
  Locked locked;
  *count = locked.engine.settings.devices;
  return driver::Success;
}
int mtp_cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return driver::Success;
}
int mtp_cuDeviceGetName(char *name, int size, int device) {
  std::string text = "software device " + std::to_string(device);
  std::strncpy(name, text.c_str(), static_cast<size_t>(size));
  return driver::Success;
}
int mtp_cuDeviceGetAttribute(int *value, int attribute, int) {
  *value = attribute == driver::CapabilityMajor   ? 9
           : attribute == driver::CapabilityMinor ? 0
                                                  : 227 << 10;
  return driver::Success;
}
int mtp_cuDevicePrimaryCtxRetain(ContextHandle **context, int device) {
  Locked locked;
  // A device has one primary context.
  static std::map<int, ContextHandle> contexts;
  *context = &contexts.try_emplace(device, ContextHandle{device}).first->second;
  ++locked.engine.otherHandles;
  return locked.done("cuDevicePrimaryCtxRetain", driver::Success, 0,
                     numberOf(*context), 0, std::to_string(device));
}
int mtp_cuDevicePrimaryCtxRelease_v2(int device) {
  Locked locked;
  --locked.engine.otherHandles;
  return locked.done("cuDevicePrimaryCtxRelease_v2", driver::Success, 0, 0, 0,
                     std::to_string(device));
}
int mtp_cuCtxSetCurrent(ContextHandle *context) {
  currentContext = context;
  return driver::Success;
}
int mtp_cuMemGetInfo_v2(size_t *free, size_t *total) {
  Locked locked;
  *free = *total = locked.engine.settings.memoryBytes;
  return driver::Success;
}
int mtp_cuMemAlloc_v2(Address *address, size_t bytes) {
  Locked locked;
  if (bytes > locked.engine.settings.memoryBytes)
    return locked.done("cuMemAlloc_v2", driver::OutOfMemory, 0, 0, bytes);
  *address = locked.map(bytes);
  if (!*address)
    return locked.done("cuMemAlloc_v2", driver::OutOfMemory, 0, 0, bytes);
  // Fresh memory holds anything.
  std::memset(handleOf<void>(*address), 0xcb, bytes);
  locked.engine.allocations[*address] = bytes;
  return locked.done("cuMemAlloc_v2", driver::Success, 0, *address, bytes);
}
int mtp_cuMemFree_v2(Address address) {
  Locked locked;
  bool known =
      currentContext && locked.unmap(locked.engine.allocations, address);
  return locked.done("cuMemFree_v2",
                     known ? driver::Success : driver::InvalidValue, 0,
                     address);
}
int mtp_cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  Locked locked;
  *address = handleOf<void>(locked.map(bytes));
  if (!*address)
    return locked.done("cuMemHostAlloc", driver::OutOfMemory, 0, 0, bytes);
  locked.engine.pinned[numberOf(*address)] = bytes;
  return locked.done("cuMemHostAlloc", driver::Success, 0, numberOf(*address),
                     bytes);
}
int mtp_cuMemFreeHost(void *address) {
  Locked locked;
  bool known =
      currentContext && locked.unmap(locked.engine.pinned, numberOf(address));
  return locked.done("cuMemFreeHost",
                     known ? driver::Success : driver::InvalidValue, 0,
                     numberOf(address));
}
int mtp_cuMemcpyHtoDAsync_v2(Address target, const void *source, size_t bytes,
                             StreamHandle *stream) {
  return copyFromHost("cuMemcpyHtoDAsync_v2", handleOf<void>(target), source,
                      bytes, stream);
}
int mtp_cuMemcpyDtoHAsync_v2(void *target, Address source, size_t bytes,
                             StreamHandle *stream) {
  return copyWork("cuMemcpyDtoHAsync_v2", target, handleOf<void>(source), bytes,
                  stream);
}
int mtp_cuMemcpyDtoDAsync_v2(Address target, Address source, size_t bytes,
                             StreamHandle *stream) {
  return copyWork("cuMemcpyDtoDAsync_v2", handleOf<void>(target),
                  handleOf<void>(source), bytes, stream);
}
int mtp_cuMemcpy2DAsync_v2(const Copy2D *given, StreamHandle *stream) {
  Locked locked;
  Copy2D copy = *given;
  Work work;
  work.what = "copy";
  for (size_t row = 0; locked.engine.records && row < copy.height; ++row) {
    work.reads.push_back(
        rangeOf(copy.source + row * copy.sourcePitch, copy.width));
    work.writes.push_back(
        rangeOf(copy.target + row * copy.targetPitch, copy.width));
  }
  return locked.give("cuMemcpy2DAsync_v2", stream, std::move(work), [copy] {
    for (size_t row = 0; row < copy.height; ++row)
      std::memcpy(handleOf<char>(copy.target + row * copy.targetPitch),
                  handleOf<char>(copy.source + row * copy.sourcePitch),
                  copy.width);
  });
}
int mtp_cuMemsetD8Async(Address target, unsigned char value, size_t bytes,
                        StreamHandle *stream) {
  Locked locked;
  Work work;
  work.what = "fill";
  work.writes = {rangeOf(target, bytes)};
  return locked.give("cuMemsetD8Async", stream, std::move(work), [=] {
    std::memset(handleOf<void>(target), value, bytes);
  });
}
int mtp_cuMemsetD32Async(Address target, unsigned value, size_t count,
                         StreamHandle *stream) {
  Locked locked;
  Work work;
  work.what = "fill";
  work.writes = {rangeOf(target, count * sizeof(unsigned))};
  return locked.give("cuMemsetD32Async", stream, std::move(work), [=] {
    // Pinned memory is read by the host meanwhile.
    for (size_t i = 0; i < count; ++i)
      __atomic_store_n(handleOf<unsigned>(target) + i, value, __ATOMIC_RELAXED);
  });
}

int mtp_cuStreamCreate(StreamHandle **stream, unsigned) {
  Locked locked;
  uint64_t number = locked.engine.newHandle();
  locked.engine.streams[number];
  *stream = handleOf<StreamHandle>(number);
  return locked.done("cuStreamCreate", driver::Success, 0, number);
}
int mtp_cuStreamDestroy_v2(StreamHandle *stream) {
  Locked locked;
  bool known =
      currentContext && locked.engine.streams.count(numberOf(stream)) != 0;
  if (known)
    locked.engine.destroyStream(numberOf(stream));
  return locked.done("cuStreamDestroy_v2",
                     known ? driver::Success : driver::InvalidHandle, 0,
                     numberOf(stream));
}
int mtp_cuStreamQuery(StreamHandle *stream) {
  Locked locked;
  auto it = locked.engine.streams.find(numberOf(stream));
  int status = driver::InvalidHandle;
  if (it != locked.engine.streams.end())
    status = it->second.captured.capture
                 ? driver::CaptureUnsupported
                 : locked.engine.finish(locked.lock, it->second.eager);
  // Polls that find nothing tell nothing.
  if (status != driver::NotReady)
    locked.done("cuStreamQuery", status, numberOf(stream), numberOf(stream));
  return status;
}
int mtp_cuStreamWaitEvent(StreamHandle *stream, EventHandle *event, unsigned) {
  Locked locked;
  bool dropped =
      locked.engine.capturesFirst() && locked.engine.plants("drop-wait");
  int status = dropped
                   ? driver::Success
                   : locked.engine.waitEvent(numberOf(stream), numberOf(event));
  return locked.done("cuStreamWaitEvent", status, numberOf(stream),
                     numberOf(event));
}
int mtp_cuStreamBeginCapture_v2(StreamHandle *stream, unsigned mode) {
  Locked locked;
  int status = mode == driver::CaptureThreadLocal
                   ? locked.engine.beginCapture(numberOf(stream))
                   : driver::InvalidValue;
  return locked.done("cuStreamBeginCapture_v2", status, numberOf(stream));
}
int mtp_cuStreamEndCapture(StreamHandle *stream, GraphHandle **graph) {
  Locked locked;
  uint64_t number = 0;
  int status = locked.engine.endCapture(numberOf(stream), number);
  *graph = handleOf<GraphHandle>(number);
  return locked.done("cuStreamEndCapture", status, numberOf(stream), number);
}

int mtp_cuEventCreate(EventHandle **event, unsigned) {
  Locked locked;
  uint64_t number = locked.engine.newHandle();
  locked.engine.events[number];
  *event = handleOf<EventHandle>(number);
  return locked.done("cuEventCreate", driver::Success, 0, number);
}
int mtp_cuEventDestroy_v2(EventHandle *event) {
  Locked locked;
  bool known = currentContext && locked.engine.events.erase(numberOf(event));
  return locked.done("cuEventDestroy_v2",
                     known ? driver::Success : driver::InvalidHandle, 0,
                     numberOf(event));
}
int mtp_cuEventRecord(EventHandle *event, StreamHandle *stream) {
  Locked locked;
  int status = locked.engine.recordEvent(numberOf(event), numberOf(stream));
  return locked.done("cuEventRecord", status, numberOf(stream),
                     numberOf(event));
}
int mtp_cuEventQuery(EventHandle *event) {
  Locked locked;
  auto it = locked.engine.events.find(numberOf(event));
  int status = driver::InvalidHandle;
  if (it != locked.engine.events.end())
    status = it->second.capture ? driver::CaptureUnsupported
                                : locked.engine.finish(locked.lock, it->second);
  return locked.done("cuEventQuery", status, 0, numberOf(event));
}
int mtp_cuEventElapsedTime(float *milliseconds, EventHandle *begin,
                           EventHandle *end) {
  // Every work takes a millisecond: the same in every run of one program.
  Locked locked;
  auto given = [&](EventHandle *event) {
    return locked.engine.events[numberOf(event)].given;
  };
  *milliseconds = static_cast<float>(given(end) - given(begin));
  return driver::Success;
}

int mtp_cuModuleLoadDataEx(ModuleHandle **module, const void *image, unsigned,
                           const int *, void **) {
  Locked locked;
  *module = new ModuleHandle;
  uint64_t first = 0;
  std::memcpy(&first, image,
              strnlen(static_cast<const char *>(image), sizeof(first)));
  if (first == KernelImage::kMagic)
    (*module)->source = static_cast<const KernelImage *>(image)->source;
  else
    for (auto &[name, parameters] :
         mtp::ptxEntries(static_cast<const char *>(image)))
      add(**module, name, parameters);
  ++locked.engine.otherHandles;
  return locked.done("cuModuleLoadDataEx", driver::Success, 0,
                     numberOf(*module));
}
int mtp_cuModuleUnload(ModuleHandle *module) {
  Locked locked;
  if (!currentContext)
    return locked.done("cuModuleUnload", driver::InvalidHandle);
  locked.done("cuModuleUnload", driver::Success, 0, numberOf(module));
  delete module;
  --locked.engine.otherHandles;
  return driver::Success;
}
int mtp_cuModuleGetFunction(FunctionHandle **function, ModuleHandle *module,
                            const char *name) {
  Locked locked;
  auto it = module->functions.find(name);
  int kernel = module->source ? module->source->find(name) : -1;
  if (it == module->functions.end() && kernel >= 0)
    it = add(*module, name, module->source->parameters(kernel), kernel);
  bool found = it != module->functions.end();
  if (found)
    *function = it->second.get();
  return locked.done("cuModuleGetFunction",
                     found ? driver::Success : driver::NotFound, 0, 0, 0, name);
}
int mtp_cuFuncSetAttribute(FunctionHandle *function, int, int) {
  Locked locked;
  return locked.done("cuFuncSetAttribute", driver::Success, 0, 0, 0,
                     function->name);
}
int mtp_cuFuncGetAttribute(int *value, int, FunctionHandle *function) {
  Locked locked;
  function->loaded = true;
  *value = 32;
  return locked.done("cuFuncGetAttribute", driver::Success, 0, 0, 0,
                     function->name);
}
int mtp_cuLaunchKernel(FunctionHandle *function, unsigned gridX, unsigned gridY,
                       unsigned gridZ, unsigned blockX, unsigned blockY,
                       unsigned blockZ, unsigned, StreamHandle *stream,
                       void **parameters, void **) {
  Locked locked;
  if (locked.engine.capturesFirst() && locked.engine.plants("allocate"))
    locked.done("cuMemAlloc_v2", driver::Success, 0, locked.map(4096), 4096);
  if (!function->loaded) {
    function->loaded = true;
    locked.done("lazy load", driver::Success, numberOf(stream), 0, 0,
                function->name);
  }
  KernelLaunch launch;
  launch.grid = {gridX, gridY, gridZ};
  launch.block = {blockX, blockY, blockZ};
  launch.parameters.resize(static_cast<size_t>(function->parameters));
  for (size_t i = 0; i < launch.parameters.size(); ++i)
    std::memcpy(&launch.parameters[i], parameters[i], sizeof(uint64_t));
  Action action;
  if (function->source) {
    launch.extents = extentsOf(launch.parameters);
    action = [source = function->source, kernel = function->kernel, launch] {
      source->launch(kernel, launch);
    };
  } else if (auto it = locked.engine.kernels.find(function->name);
             it != locked.engine.kernels.end()) {
    action = [body = it->second, launch] {
      unsigned shape[6];
      std::copy(launch.grid.begin(), launch.grid.end(), shape);
      std::copy(launch.block.begin(), launch.block.end(), shape + 3);
      body(launch.parameters.data(), shape);
    };
  }
  Work work;
  work.what = "kernel " + function->name;
  takeTouched(work);
  return locked.give("cuLaunchKernel", stream, std::move(work),
                     std::move(action));
}

int mtp_cuGraphInstantiateWithFlags(GraphExecHandle **exec, GraphHandle *graph,
                                    unsigned long long) {
  Locked locked;
  auto it = locked.engine.graphs.find(numberOf(graph));
  if (it == locked.engine.graphs.end())
    return locked.done("cuGraphInstantiateWithFlags", driver::InvalidHandle);
  uint64_t number = locked.engine.newHandle();
  locked.engine.executables[number] = it->second;
  *exec = handleOf<GraphExecHandle>(number);
  return locked.done("cuGraphInstantiateWithFlags", driver::Success, 0, number);
}
int mtp_cuGraphLaunch(GraphExecHandle *exec, StreamHandle *stream) {
  Locked locked;
  if (locked.engine.plants("free")) {
    auto &list = locked.engine.allocations;
    auto largest =
        std::max_element(list.begin(), list.end(),
                         [](auto &a, auto &b) { return a.second < b.second; });
    locked.done("cuMemFree_v2", driver::Success, 0, largest->first);
  }
  locked.done("cuGraphLaunch", driver::Success, numberOf(stream),
              numberOf(exec));
  return locked.correct(locked.engine.launch(numberOf(exec), numberOf(stream)));
}
int mtp_cuGraphDestroy(GraphHandle *graph) {
  Locked locked;
  bool known = currentContext && locked.engine.graphs.erase(numberOf(graph));
  return locked.done("cuGraphDestroy",
                     known ? driver::Success : driver::InvalidHandle, 0,
                     numberOf(graph));
}
int mtp_cuGraphExecDestroy(GraphExecHandle *exec) {
  Locked locked;
  bool known =
      currentContext && locked.engine.executables.erase(numberOf(exec));
  return locked.done("cuGraphExecDestroy",
                     known ? driver::Success : driver::InvalidHandle, 0,
                     numberOf(exec));
}

void mtp_touches(const Touched *ranges, size_t count) {
  touchedByThread().assign(ranges, ranges + count);
}

const char *mtp_kernelFault() { return faultOfThread().c_str(); }

} // extern "C"
