// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Reduce.h - sums, maxima and minima over ranks ----------------------===//
#ifndef MTP_RUNTIME_COMM_REDUCE_H
#define MTP_RUNTIME_COMM_REDUCE_H

#include "runtime/artifact/Artifact.h"

namespace mtp {

/// out[i] = reduction over m of in[m][i], m from 0 to members - 1 in this
/// order, whatever rank computes it, so all ranks get the same bits. f16 and
/// bf16 are accumulated in f32 and rounded once. Integers wrap around. Maximum
/// and minimum give NaN if any operand is NaN. A sum of booleans is their "or".
/// `out` may be one of `in`.
void reduceMembers(DType type, CollectiveSite::Reduction reduction,
                   const char *const *in, int64_t members, char *out,
                   int64_t elements);

} // namespace mtp

#endif // MTP_RUNTIME_COMM_REDUCE_H
