// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MicroKernelsAvx2.cpp -----------------------------------------------===//
#define MTP_VECTOR_BYTES 32
#define MTP_TILE_ROWS 6
#define MTP_ISA avx2
#define MTP_ISA_NAME "avx2"
#include "runtime/kernels/MicroKernels.inc"
