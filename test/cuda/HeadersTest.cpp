// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- HeadersTest.cpp - own declarations are those of NVIDIA -------------===//
#include "runtime/cuda/api/CublasLtApi.h"
#include "runtime/cuda/api/DriverApi.h"
#include "runtime/cuda/api/NcclApi.h"

#include <cublasLt.h>
#include <cuda.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <string>

namespace ours = mtp::cuda;

TEST(Headers, NumbersOfTheDriverAreTheSame) {
  EXPECT_EQ(ours::driver::OutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(ours::driver::InvalidValue, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ours::driver::NoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(ours::driver::InvalidHandle, CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(ours::driver::NotFound, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(ours::driver::NotReady, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(ours::driver::LaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(ours::driver::Unknown, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(ours::driver::CaptureUnsupported,
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(ours::driver::CaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(ours::driver::CaptureUnmatched,
            CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(ours::driver::CaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(ours::driver::CaptureIsolation,
            CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(ours::driver::CapabilityMajor,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(ours::driver::CapabilityMinor,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(ours::driver::MaxSharedMemory,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  EXPECT_EQ(ours::driver::NumRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
  EXPECT_EQ(ours::driver::MaxDynamicShared,
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(ours::driver::StreamNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(ours::driver::EventDisableTiming, CU_EVENT_DISABLE_TIMING);
  EXPECT_EQ(ours::driver::CaptureThreadLocal,
            CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(ours::driver::HostPortable, CU_MEMHOSTALLOC_PORTABLE);
  EXPECT_EQ(ours::driver::HostDeviceMap, CU_MEMHOSTALLOC_DEVICEMAP);
  EXPECT_EQ(ours::driver::MemoryDevice, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(ours::driver::JitErrorLog, CU_JIT_ERROR_LOG_BUFFER);
  EXPECT_EQ(ours::driver::JitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
}

TEST(Headers, CopiesLieInMemoryAsTheDriverReadsThem) {
  static_assert(sizeof(ours::Address) == sizeof(CUdeviceptr));
  static_assert(sizeof(ours::Copy2D) == sizeof(CUDA_MEMCPY2D));
#define SAME(ours_, theirs)                                                    \
  EXPECT_EQ(offsetof(ours::Copy2D, ours_), offsetof(CUDA_MEMCPY2D, theirs))
  SAME(sourceType, srcMemoryType);
  SAME(source, srcDevice);
  SAME(sourcePitch, srcPitch);
  SAME(targetType, dstMemoryType);
  SAME(target, dstDevice);
  SAME(targetPitch, dstPitch);
  SAME(width, WidthInBytes);
  SAME(height, Height);
#undef SAME
}

/// The symbols that cuda.h calls by these names.
TEST(Headers, SymbolsHaveTheVersionsOfTheHeader) {
#define TEXT(x) #x
#define SYMBOL(x) std::string(TEXT(x))
  EXPECT_EQ(SYMBOL(cuMemAlloc), "cuMemAlloc_v2");
  EXPECT_EQ(SYMBOL(cuMemFree), "cuMemFree_v2");
  EXPECT_EQ(SYMBOL(cuMemGetInfo), "cuMemGetInfo_v2");
  EXPECT_EQ(SYMBOL(cuStreamDestroy), "cuStreamDestroy_v2");
  EXPECT_EQ(SYMBOL(cuEventDestroy), "cuEventDestroy_v2");
  EXPECT_EQ(SYMBOL(cuDevicePrimaryCtxRelease), "cuDevicePrimaryCtxRelease_v2");
  EXPECT_EQ(SYMBOL(cuMemcpyHtoDAsync), "cuMemcpyHtoDAsync_v2");
  EXPECT_EQ(SYMBOL(cuMemcpy2DAsync), "cuMemcpy2DAsync_v2");
  EXPECT_EQ(SYMBOL(cuStreamBeginCapture), "cuStreamBeginCapture_v2");
#undef SYMBOL
#undef TEXT
}

TEST(Headers, NumbersOfCublasLtAreTheSame) {
  EXPECT_EQ(ours::blas::TypeF32, CUDA_R_32F);
  EXPECT_EQ(ours::blas::TypeF64, CUDA_R_64F);
  EXPECT_EQ(ours::blas::TypeF16, CUDA_R_16F);
  EXPECT_EQ(ours::blas::TypeBF16, CUDA_R_16BF);
  EXPECT_EQ(ours::blas::ComputeF32, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(ours::blas::ComputeF64, CUBLAS_COMPUTE_64F);
  EXPECT_EQ(ours::blas::ComputeFastBF16, CUBLAS_COMPUTE_32F_FAST_16BF);
  EXPECT_EQ(ours::blas::ComputeFastTF32, CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(ours::blas::PlainOperand, CUBLAS_OP_N);
  EXPECT_EQ(ours::blas::TransposedOperand, CUBLAS_OP_T);
  EXPECT_EQ(ours::blas::TransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_EQ(ours::blas::TransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
  EXPECT_EQ(ours::blas::Epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  EXPECT_EQ(ours::blas::BiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  EXPECT_EQ(ours::blas::EpilogueNone, CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_EQ(ours::blas::EpilogueBias, CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(ours::blas::EpilogueGelu, CUBLASLT_EPILOGUE_GELU);
  EXPECT_EQ(ours::blas::EpilogueGeluBias, CUBLASLT_EPILOGUE_GELU_BIAS);
  EXPECT_EQ(ours::blas::AuxPointer, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
  EXPECT_EQ(ours::blas::AuxLeading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
  EXPECT_EQ(ours::blas::EpilogueGelu | ours::blas::EpilogueAux,
            CUBLASLT_EPILOGUE_GELU_AUX);
  EXPECT_EQ(ours::blas::EpilogueGeluBias | ours::blas::EpilogueAux,
            CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  EXPECT_EQ(ours::blas::EpilogueGeluGradient, CUBLASLT_EPILOGUE_DGELU);
  EXPECT_EQ(ours::blas::EpilogueGeluGradient | ours::blas::EpilogueGradientSum,
            CUBLASLT_EPILOGUE_DGELU_BGRAD);
  EXPECT_EQ(ours::blas::EpilogueSumA, CUBLASLT_EPILOGUE_BGRADA);
  EXPECT_EQ(ours::blas::EpilogueSumB, CUBLASLT_EPILOGUE_BGRADB);
  EXPECT_EQ(ours::blas::BatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  EXPECT_EQ(ours::blas::BatchStride,
            CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  EXPECT_EQ(ours::blas::MaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(ours::blas::ReductionMask,
            CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  EXPECT_EQ(ours::blas::AlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  EXPECT_EQ(ours::blas::AlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  EXPECT_EQ(ours::blas::DeterministicReductions,
            CUBLASLT_REDUCTION_SCHEME_MASK &
                ~CUBLASLT_REDUCTION_SCHEME_INPLACE);
  EXPECT_EQ(ours::blas::NotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
  static_assert(sizeof(ours::BlasAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
  static_assert(sizeof(ours::BlasCandidate) ==
                sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(offsetof(ours::BlasCandidate, workspaceBytes),
            offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
  EXPECT_EQ(offsetof(ours::BlasCandidate, status),
            offsetof(cublasLtMatmulHeuristicResult_t, state));
}

TEST(Headers, NumbersOfNcclAreTheSame) {
  EXPECT_EQ(ours::nccl::InProgress, ncclInProgress);
  EXPECT_EQ(ours::nccl::InvalidArgument, ncclInvalidArgument);
  EXPECT_EQ(ours::nccl::InvalidUsage, ncclInvalidUsage);
  EXPECT_EQ(ours::nccl::I8, ncclInt8);
  EXPECT_EQ(ours::nccl::U8, ncclUint8);
  EXPECT_EQ(ours::nccl::I32, ncclInt32);
  EXPECT_EQ(ours::nccl::U32, ncclUint32);
  EXPECT_EQ(ours::nccl::I64, ncclInt64);
  EXPECT_EQ(ours::nccl::U64, ncclUint64);
  EXPECT_EQ(ours::nccl::F16, ncclFloat16);
  EXPECT_EQ(ours::nccl::F32, ncclFloat32);
  EXPECT_EQ(ours::nccl::F64, ncclFloat64);
  EXPECT_EQ(ours::nccl::BF16, ncclBfloat16);
  EXPECT_EQ(ours::nccl::Sum, ncclSum);
  EXPECT_EQ(ours::nccl::Max, ncclMax);
  EXPECT_EQ(ours::nccl::Min, ncclMin);
  static_assert(sizeof(ours::NcclId) == sizeof(ncclUniqueId));
  EXPECT_EQ(offsetof(ours::NcclConfig, magic), offsetof(ncclConfig_t, magic));
  EXPECT_EQ(offsetof(ours::NcclConfig, blocking),
            offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(offsetof(ours::NcclConfig, network),
            offsetof(ncclConfig_t, netName));
  EXPECT_EQ(offsetof(ours::NcclConfig, splitShare),
            offsetof(ncclConfig_t, splitShare));
  ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  ours::NcclConfig mine;
  EXPECT_EQ(mine.magic, theirs.magic);
  EXPECT_EQ(mine.minBlocks, theirs.minCTAs);
}
