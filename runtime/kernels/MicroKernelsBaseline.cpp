// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MicroKernelsBaseline.cpp -------------------------------------------===//
#define MTP_VECTOR_BYTES 16
#define MTP_TILE_ROWS 4
#define MTP_ISA baseline
#define MTP_ISA_NAME "baseline"
#include "runtime/kernels/MicroKernels.inc"
