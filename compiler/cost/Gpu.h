// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Gpu.h - GPUs that programs are made for ----------------------------===//
//
// A program for GPUs is made without them: what pays is decided for a host of 8
// devices of the compute capability that it is compiled for, with the numbers
// of clusters/*.json.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_COST_GPU_H
#define MTP_COMPILER_COST_GPU_H

#include "compiler/cost/Cluster.h"

namespace mtp::plan {

/// The cost functions' view of devices of `capability` (90 for 9.0): H100 from
/// 90 on, A100 from 80 on, else V100. Products in f32 and f64 run at a
/// sixteenth of the rate of half precision, which is near all of them.
Machine gpuMachine(int capability,
                   const std::vector<std::pair<std::string, int64_t>> &axes);

/// A product [m, k] x [k, n] whose result is then summed over ranks.
struct SummedProduct {
  int64_t m = 0, n = 0, k = 0;
  FlopKind kind = FlopKind::Half;
  int64_t bytes = 0;     ///< of the result
  std::vector<int> axes; ///< of the sum, indices into Machine::axes
};

/// How long it takes in `parts` of m / parts rows, each summed while the next
/// one is multiplied:
///
///   product  0 1 2 3
///   sum        0 1 2 3
Time timeInParts(const Machine &machine, const SummedProduct &product,
                 int64_t parts);

/// The number of parts, a power of two up to `most`, that takes least time; 1
/// unless parts save a twentieth: NCCL takes processors from the product.
int64_t bestParts(const Machine &machine, const SummedProduct &product,
                  int64_t most);

} // namespace mtp::plan

#endif // MTP_COMPILER_COST_GPU_H
