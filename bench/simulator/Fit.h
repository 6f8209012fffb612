// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Fit.h - achieved shares from measured steps ------------------------===//
#ifndef MTP_BENCH_SIMULATOR_FIT_H
#define MTP_BENCH_SIMULATOR_FIT_H

#include "bench/simulator/Reference.h"

namespace mtp::bench {

/// Fits Achieved on vtrain-single alone: least squares of log(predicted /
/// measured), linear beyond 3 % (the rows have outliers of 30 %), and a pull
/// towards what is known of the hardware. Network numbers stay as they are.
plan::Achieved fitSingleNode(const Reference &reference);

/// Fits memory, inner, launch_us and layer_us of the DGX-2H on megatron-mp and
/// megatron-strong; the rest is `others`.
plan::Achieved fitMegatron2019(const Reference &reference,
                               const plan::Achieved &others);

/// Fits products, memory, launch_us and layer_us of the H100 on megatron-core.
plan::Achieved fitMegatronCore(const Reference &reference,
                               const plan::Achieved &others);

} // namespace mtp::bench

#endif // MTP_BENCH_SIMULATOR_FIT_H
