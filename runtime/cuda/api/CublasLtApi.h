// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CublasLtApi.h - what mtp calls of cuBLASLt -------------------------===//
//
// Own declarations of the public C interface, as in DriverApi.h.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_RUNTIME_CUDA_API_CUBLASLTAPI_H
#define MTP_RUNTIME_CUDA_API_CUBLASLTAPI_H

#include "runtime/cuda/api/DriverApi.h"

namespace mtp::cuda {

using BlasStatus = int; ///< cublasStatus_t

struct BlasHandle;
struct ProductHandle;    ///< cublasLtMatmulDesc_t
struct LayoutHandle;     ///< cublasLtMatrixLayout_t
struct PreferenceHandle; ///< cublasLtMatmulPreference_t

/// cublasLtMatmulAlgo_t
struct BlasAlgorithm {
  uint64_t data[8];
};
/// cublasLtMatmulHeuristicResult_t
struct BlasCandidate {
  BlasAlgorithm algorithm;
  size_t workspaceBytes;
  BlasStatus status;
  float waves;
  int reserved[4];
};

namespace blas {
inline constexpr BlasStatus Success = 0, InvalidValue = 7, NotSupported = 15;
// cudaDataType
inline constexpr int TypeF32 = 0, TypeF64 = 1, TypeF16 = 2, TypeBF16 = 14;
// cublasComputeType_t
inline constexpr int ComputeF32 = 68, ComputeF64 = 70, ComputeFastBF16 = 75,
                     ComputeFastTF32 = 77;
// cublasOperation_t
inline constexpr int PlainOperand = 0, TransposedOperand = 1;
// cublasLtMatmulDescAttributes_t
inline constexpr int TransposeA = 3, TransposeB = 4, Epilogue = 7,
                     BiasPointer = 8, AuxPointer = 11, AuxLeading = 12,
                     BiasType = 26;
// cublasLtEpilogue_t; the GELU is the one with tanh. Those with an auxiliary
// matrix read or write what it is applied to; bias gradients are stored where
// BiasPointer says.
inline constexpr int EpilogueNone = 1, EpilogueBias = 4, EpilogueGelu = 32,
                     EpilogueGeluBias = 36, EpilogueAux = 128,
                     EpilogueGeluGradient = 192, EpilogueGradientSum = 16,
                     EpilogueSumA = 256, EpilogueSumB = 512;
/// Leading dimension (elements) and address (bytes) of an auxiliary matrix.
inline constexpr int64_t AuxGranule = 8, AuxAlignment = 16;
// cublasLtMatrixLayoutAttribute_t
inline constexpr int BatchCount = 5, BatchStride = 6;
// cublasLtMatmulPreferenceAttributes_t
inline constexpr int MaxWorkspace = 1, ReductionMask = 3, AlignmentA = 5,
                     AlignmentB = 6, AlignmentC = 7, AlignmentD = 8;
/// Split-k sums in a fixed order; the scheme with atomics is left out.
inline constexpr unsigned DeterministicReductions = 6;
} // namespace blas

/// X(member, symbol of the library, parameters).
#define MTP_CUBLASLT_FUNCTIONS(X)                                              \
  X(create, cublasLtCreate, (BlasHandle * *handle))                            \
  X(destroy, cublasLtDestroy, (BlasHandle * handle))                           \
  X(productCreate, cublasLtMatmulDescCreate,                                   \
    (ProductHandle * *product, int compute, int scaleType))                    \
  X(productDestroy, cublasLtMatmulDescDestroy, (ProductHandle * product))      \
  X(productSet, cublasLtMatmulDescSetAttribute,                                \
    (ProductHandle * product, int attribute, const void *value, size_t bytes)) \
  X(layoutCreate, cublasLtMatrixLayoutCreate,                                  \
    (LayoutHandle * *layout, int type, uint64_t rows, uint64_t columns,        \
     int64_t leading))                                                         \
  X(layoutDestroy, cublasLtMatrixLayoutDestroy, (LayoutHandle * layout))       \
  X(layoutSet, cublasLtMatrixLayoutSetAttribute,                               \
    (LayoutHandle * layout, int attribute, const void *value, size_t bytes))   \
  X(preferenceCreate, cublasLtMatmulPreferenceCreate,                          \
    (PreferenceHandle * *preference))                                          \
  X(preferenceDestroy, cublasLtMatmulPreferenceDestroy,                        \
    (PreferenceHandle * preference))                                           \
  X(preferenceSet, cublasLtMatmulPreferenceSetAttribute,                       \
    (PreferenceHandle * preference, int attribute, const void *value,          \
     size_t bytes))                                                            \
  X(candidates, cublasLtMatmulAlgoGetHeuristic,                                \
    (BlasHandle * handle, ProductHandle * product, LayoutHandle * a,           \
     LayoutHandle * b, LayoutHandle * c, LayoutHandle * d,                     \
     PreferenceHandle * preference, int wanted, BlasCandidate *found,          \
     int *count))                                                              \
  X(multiply, cublasLtMatmul,                                                  \
    (BlasHandle * handle, ProductHandle * product, const void *alpha,          \
     const void *a, LayoutHandle *aLayout, const void *b,                      \
     LayoutHandle *bLayout, const void *beta, const void *c,                   \
     LayoutHandle *cLayout, void *d, LayoutHandle *dLayout,                    \
     const BlasAlgorithm *algorithm, void *workspace, size_t workspaceBytes,   \
     StreamHandle *stream))

struct CublasLtApi {
#define MTP_DECLARE(member, symbol, parameters)                                \
  BlasStatus(*member) parameters = nullptr;
  MTP_CUBLASLT_FUNCTIONS(MTP_DECLARE)
#undef MTP_DECLARE
  const char *(*statusText)(BlasStatus status) = nullptr;
};

} // namespace mtp::cuda

#endif // MTP_RUNTIME_CUDA_API_CUBLASLTAPI_H
