// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- DriverApi.h - what mtp calls of the CUDA driver --------------------===//
//
// Own declarations of the public C interface (libcuda.so.1, CUDA 12 and newer),
// so that a machine without the toolkit builds the same program. A test
// compares them with cuda.h where that is installed.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_API_DRIVERAPI_H
#define MTP_RUNTIME_CUDA_API_DRIVERAPI_H

#include <cstddef>
#include <cstdint>

namespace mtp::cuda {

using DriverStatus = int; ///< CUresult
using DeviceNumber = int; ///< CUdevice
/// CUdeviceptr: an address of device memory, or of pinned host memory.
using Address = unsigned long long;

struct ContextHandle;
struct ModuleHandle;
struct FunctionHandle;
struct StreamHandle;
struct EventHandle;
struct GraphHandle;
struct GraphExecHandle;

namespace driver {
inline constexpr DriverStatus Success = 0, InvalidValue = 1, OutOfMemory = 2,
                              NoDevice = 100, InvalidHandle = 400,
                              NotFound = 500, NotReady = 600,
                              LaunchFailed = 719, Unknown = 999,
                              CaptureUnsupported = 900, CaptureMerge = 902,
                              CaptureUnmatched = 903, CaptureUnjoined = 904,
                              CaptureIsolation = 905;
// CUdevice_attribute
inline constexpr int CapabilityMajor = 75, CapabilityMinor = 76,
                     MaxSharedMemory = 97;
// CUfunction_attribute
inline constexpr int NumRegisters = 4, MaxDynamicShared = 8;
inline constexpr unsigned StreamNonBlocking = 1, EventDisableTiming = 2,
                          CaptureThreadLocal = 1, HostPortable = 1,
                          HostDeviceMap = 2;
// CUmemorytype
inline constexpr int MemoryDevice = 2;
// CUjit_option
inline constexpr int JitErrorLog = 5, JitErrorLogBytes = 6;
} // namespace driver

/// CUDA_MEMCPY2D.
struct Copy2D {
  size_t sourceX, sourceY;
  int sourceType;
  const void *sourceHost;
  Address source;
  void *sourceArray;
  size_t sourcePitch;
  size_t targetX, targetY;
  int targetType;
  void *targetHost;
  Address target;
  void *targetArray;
  size_t targetPitch;
  size_t width, height; ///< bytes, rows
};

/// Bytes that a call reads or writes: what the software driver is told.
struct Touched {
  Address begin;
  uint64_t bytes;
  bool written;
};

/// X(member, symbol of the library, parameters).
#define MTP_DRIVER_FUNCTIONS(X)                                                \
  X(init, cuInit, (unsigned flags))                                            \
  X(driverVersion, cuDriverGetVersion, (int *version))                         \
  X(errorName, cuGetErrorName, (DriverStatus status, const char **text))       \
  X(errorString, cuGetErrorString, (DriverStatus status, const char **text))   \
  X(deviceCount, cuDeviceGetCount, (int *count))                               \
  X(deviceGet, cuDeviceGet, (DeviceNumber * device, int ordinal))              \
  X(deviceName, cuDeviceGetName, (char *name, int size, DeviceNumber device))  \
  X(deviceAttribute, cuDeviceGetAttribute,                                     \
    (int *value, int attribute, DeviceNumber device))                          \
  X(contextRetain, cuDevicePrimaryCtxRetain,                                   \
    (ContextHandle * *context, DeviceNumber device))                           \
  X(contextRelease, cuDevicePrimaryCtxRelease_v2, (DeviceNumber device))       \
  X(contextSetCurrent, cuCtxSetCurrent, (ContextHandle * context))             \
  X(memoryInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                \
  X(memoryAlloc, cuMemAlloc_v2, (Address * address, size_t bytes))             \
  X(memoryFree, cuMemFree_v2, (Address address))                               \
  X(hostAlloc, cuMemHostAlloc, (void **address, size_t bytes, unsigned flags)) \
  X(hostFree, cuMemFreeHost, (void *address))                                  \
  X(copyToDevice, cuMemcpyHtoDAsync_v2,                                        \
    (Address target, const void *source, size_t bytes, StreamHandle *stream))  \
  X(copyToHost, cuMemcpyDtoHAsync_v2,                                          \
    (void *target, Address source, size_t bytes, StreamHandle *stream))        \
  X(copy, cuMemcpyDtoDAsync_v2,                                                \
    (Address target, Address source, size_t bytes, StreamHandle *stream))      \
  X(copy2D, cuMemcpy2DAsync_v2, (const Copy2D *copy, StreamHandle *stream))    \
  X(fill, cuMemsetD8Async,                                                     \
    (Address target, unsigned char value, size_t bytes, StreamHandle *stream)) \
  X(fill32, cuMemsetD32Async,                                                  \
    (Address target, unsigned value, size_t count, StreamHandle *stream))      \
  X(streamCreate, cuStreamCreate, (StreamHandle * *stream, unsigned flags))    \
  X(streamDestroy, cuStreamDestroy_v2, (StreamHandle * stream))                \
  X(streamQuery, cuStreamQuery, (StreamHandle * stream))                       \
  X(streamWaitEvent, cuStreamWaitEvent,                                        \
    (StreamHandle * stream, EventHandle * event, unsigned flags))              \
  X(beginCapture, cuStreamBeginCapture_v2,                                     \
    (StreamHandle * stream, unsigned mode))                                    \
  X(endCapture, cuStreamEndCapture,                                            \
    (StreamHandle * stream, GraphHandle * *graph))                             \
  X(eventCreate, cuEventCreate, (EventHandle * *event, unsigned flags))        \
  X(eventDestroy, cuEventDestroy_v2, (EventHandle * event))                    \
  X(eventRecord, cuEventRecord, (EventHandle * event, StreamHandle * stream))  \
  X(eventQuery, cuEventQuery, (EventHandle * event))                           \
  X(eventElapsed, cuEventElapsedTime,                                          \
    (float *milliseconds, EventHandle *begin, EventHandle *end))               \
  X(moduleLoad, cuModuleLoadDataEx,                                            \
    (ModuleHandle * *module, const void *image, unsigned options,              \
     const int *names, void **values))                                         \
  X(moduleUnload, cuModuleUnload, (ModuleHandle * module))                     \
  X(moduleFunction, cuModuleGetFunction,                                       \
    (FunctionHandle * *function, ModuleHandle * module, const char *name))     \
  X(functionSet, cuFuncSetAttribute,                                           \
    (FunctionHandle * function, int attribute, int value))                     \
  X(functionGet, cuFuncGetAttribute,                                           \
    (int *value, int attribute, FunctionHandle *function))                     \
  X(launch, cuLaunchKernel,                                                    \
    (FunctionHandle * function, unsigned gridX, unsigned gridY,                \
     unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ,        \
     unsigned sharedBytes, StreamHandle *stream, void **parameters,            \
     void **extra))                                                            \
  X(graphInstantiate, cuGraphInstantiateWithFlags,                             \
    (GraphExecHandle * *exec, GraphHandle * graph, unsigned long long flags))  \
  X(graphLaunch, cuGraphLaunch,                                                \
    (GraphExecHandle * exec, StreamHandle * stream))                           \
  X(graphDestroy, cuGraphDestroy, (GraphHandle * graph))                       \
  X(graphExecDestroy, cuGraphExecDestroy, (GraphExecHandle * exec))

/// The driver's functions.
struct DriverApi {
#define MTP_DECLARE(member, symbol, parameters)                                \
  DriverStatus(*member) parameters = nullptr;
  MTP_DRIVER_FUNCTIONS(MTP_DECLARE)
#undef MTP_DECLARE
  // Of the software driver only, null for a real one.

  /// Tells what the next launch or product of this thread touches.
  void (*touches)(const Touched *ranges, size_t count) = nullptr;
  /// What is wrong with the kernel for which a call of this thread has given
  /// LaunchFailed.
  const char *(*kernelFault)() = nullptr;
};

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_API_DRIVERAPI_H
