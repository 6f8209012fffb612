// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MicroKernelsAvx512.cpp ---------------------------------------------===//
#define MTP_VECTOR_BYTES 64
#define MTP_TILE_ROWS 12
#define MTP_ISA avx512
#define MTP_ISA_NAME "avx512"
#include "runtime/kernels/MicroKernels.inc"
