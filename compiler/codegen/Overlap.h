// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Overlap.h - collectives beside the program -------------------------===//
//
// A collective that overlaps begins where it stands and is done before the
// first op that needs its result:
//
//   %1 = mtp.matmul %a, %b
//   %2 = spmd.all_reduce %1 ...        start
//   %3 = mtp.matmul %c, %d             meanwhile
//   %4 = spmd.fused(%2) ...            done, then the kernel
//
// What it reads and writes is held until then (BufferPlan.h). Others are done
// at once: on a CPU a rank has one thread of control, and memory that is held
// longer would be paid for nothing.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_OVERLAP_H
#define MTP_COMPILER_CODEGEN_OVERLAP_H

#include "mlir/IR/Operation.h"

namespace mtp {

/// UnitAttr on a collective: it overlaps.
inline constexpr llvm::StringLiteral kOverlaps("spmd.overlaps");
/// IntegerAttr on an all-reduce: its number among the parts of one collective
/// (CollectiveSite::partOf), which follow each other.
inline constexpr llvm::StringLiteral kCollectivePart("spmd.part");

/// Collectives of an entry that are under way at one time; the oldest is done
/// before one more begins. Fewer than what an artifact may have
/// (runtime/artifact/VerifyProgram.h).
inline constexpr size_t kMostUnderWay = 8;

inline bool overlaps(mlir::Operation *collective) {
  return collective->hasAttr(kOverlaps);
}

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_OVERLAP_H
