// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- NcclApi.h - what mtp calls of NCCL ---------------------------------===//
//
// Own declarations of the public C interface (libnccl.so.2, 2.18 and newer), as
// in DriverApi.h.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_API_NCCLAPI_H
#define MTP_RUNTIME_CUDA_API_NCCLAPI_H

#include "runtime/cuda/api/DriverApi.h"

#include <climits>

namespace mtp::cuda {

using NcclStatus = int; ///< ncclResult_t

struct NcclHandle; ///< ncclComm

struct NcclId {
  char bytes[128];
};

/// The front of ncclConfig_t, as of 2.18; `version` tells newer libraries where
/// it ends.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21801;
  int blocking = INT_MIN; ///< INT_MIN: not set
  int clusterSize = INT_MIN;
  int minBlocks = INT_MIN;
  int maxBlocks = INT_MIN;
  const char *network = nullptr;
  int splitShare = INT_MIN;
};

namespace nccl {
inline constexpr NcclStatus Success = 0, UnhandledCuda = 1, InvalidArgument = 4,
                            InvalidUsage = 5, InProgress = 7;
// ncclDataType_t
inline constexpr int I8 = 0, U8 = 1, I32 = 2, U32 = 3, I64 = 4, U64 = 5,
                     F16 = 6, F32 = 7, F64 = 8, BF16 = 9;
// ncclRedOp_t
inline constexpr int Sum = 0, Max = 2, Min = 3;
} // namespace nccl

/// X(member, symbol of the library, parameters).
#define MTP_NCCL_FUNCTIONS(X)                                                  \
  X(version, ncclGetVersion, (int *version))                                   \
  X(uniqueId, ncclGetUniqueId, (NcclId * id))                                  \
  X(initRank, ncclCommInitRankConfig,                                          \
    (NcclHandle * *comm, int ranks, NcclId id, int rank, NcclConfig *config))  \
  X(asyncError, ncclCommGetAsyncError,                                         \
    (NcclHandle * comm, NcclStatus * error))                                   \
  X(finalize, ncclCommFinalize, (NcclHandle * comm))                           \
  X(destroy, ncclCommDestroy, (NcclHandle * comm))                             \
  X(abort, ncclCommAbort, (NcclHandle * comm))                                 \
  X(allReduce, ncclAllReduce,                                                  \
    (const void *in, void *out, size_t count, int type, int op,                \
     NcclHandle *comm, StreamHandle *stream))                                  \
  X(allGather, ncclAllGather,                                                  \
    (const void *in, void *out, size_t count, int type, NcclHandle *comm,      \
     StreamHandle *stream))                                                    \
  X(reduceScatter, ncclReduceScatter,                                          \
    (const void *in, void *out, size_t count, int type, int op,                \
     NcclHandle *comm, StreamHandle *stream))                                  \
  X(send, ncclSend,                                                            \
    (const void *in, size_t count, int type, int peer, NcclHandle *comm,       \
     StreamHandle *stream))                                                    \
  X(receive, ncclRecv,                                                         \
    (void *out, size_t count, int type, int peer, NcclHandle *comm,            \
     StreamHandle *stream))                                                    \
  X(groupStart, ncclGroupStart, ())                                            \
  X(groupEnd, ncclGroupEnd, ())

struct NcclApi {
#define MTP_DECLARE(member, symbol, parameters)                                \
  NcclStatus(*member) parameters = nullptr;
  MTP_NCCL_FUNCTIONS(MTP_DECLARE)
#undef MTP_DECLARE
  const char *(*errorText)(NcclStatus status) = nullptr;
  const char *(*lastError)(NcclHandle *comm) = nullptr;
};

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_API_NCCLAPI_H
