// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LoopNest.h - how the loops of a kernel are cut and merged ----------===//
//
// A nest iterates over dimensions. Each dimension is one part, or several where
// a reshape needs it (a cut), e.g. 12 = 4 x 3 by the cut at stride 3.
// Neighbouring parts that every access uses as one (their strides continue each
// other) are merged into one loop. A part may be broken into ranges at points
// where a concat or a pad changes over, so that no test is left inside a loop.
//
// Where one tensor runs along another dimension than the innermost loop (a
// transpose), both dimensions are cut and the loops inside of the cuts come
// last: a tile, whose lines stay in the first cache until all of them is read.
//
// A kernel is emitted several times: every pass collects cuts and breaks that
// it missed, until none is; the last pass merges. Plans are what stays between
// passes.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_EMIT_LOOPNEST_H
#define MTP_COMPILER_CODEGEN_EMIT_LOOPNEST_H

#include "compiler/codegen/emit/IndexExpr.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <set>
#include <tuple>

namespace mtp {

/// Which nest: the op that sweeps (null: the result nest) and its number in it.
using NestKey = std::pair<mlir::Operation *, unsigned>;

/// One factor of a dimension, `stride` positions apart, `extent` of them.
struct LoopPart {
  unsigned dim;
  int64_t stride, extent;
};

struct NestPlan {
  /// Strides at which a dimension is cut, by dimension.
  std::map<unsigned, std::set<int64_t>> cuts;
  /// Positions where a range of the part (dim, stride, extent) ends.
  std::map<std::tuple<unsigned, int64_t, int64_t>, std::set<int64_t>> breaks;
  /// Positions of parts that can't be merged with the next one.
  std::set<unsigned> apart;
  /// The dimension that is tiled with the last one, -1 if none is.
  int tiledWithLast = -1;

  /// The parts of dimensions of these extents, major first; parts of extent 1
  /// are left out.
  llvm::SmallVector<LoopPart> parts(llvm::ArrayRef<int64_t> extents) const;
  /// The ranges [first, last] of a part, ascending.
  llvm::SmallVector<std::pair<int64_t, int64_t>>
  ranges(const LoopPart &part) const;
  bool hasBreaks(const LoopPart &part) const {
    return breaks.count({part.dim, part.stride, part.extent}) != 0;
  }
  /// Tiles the innermost part of a dimension with that of the last one; false
  /// if something is tiled already or there is no size that divides both.
  bool tile(const LoopPart &part, const LoopPart &last);
  /// Adds a cut; false if it is there or does not divide.
  bool cut(unsigned dim, int64_t stride);
  /// Adds a break; false if it is there, outside, or one too many.
  bool breakAt(const LoopPart &part, int64_t position);
};

/// A place in the loops: code at a level runs once per iteration of its loop
/// and of those around it.
struct Level {
  Level *parent = nullptr;
  unsigned depth = 0;
  mlir::Block *block = nullptr;
  /// The loop inside of this level that is being filled; code goes before it.
  mlir::Operation *anchor = nullptr;

  /// Values already computed here: (tensor or op, number) at indices.
  llvm::DenseMap<std::pair<void *, unsigned>,
                 llvm::SmallVector<std::pair<Indices, mlir::Value>, 1>>
      memo;

  /// A tensor whose swept dimensions, at one position of the others, lie in a
  /// buffer.
  struct RowCache {
    mlir::Value tensor;
    Indices indices; ///< those of swept dimensions don't count
    llvm::SmallVector<unsigned> swept;
    mlir::Value buffer;
    int resultNumber; ///< the buffer is the one of this result, or -1: scratch
    IndexExpr first = {}; ///< position of the buffer's first element in the row
  };
  llvm::SmallVector<RowCache, 1> rowCaches;
};

/// Parts that run as one loop.
struct LoopGroup {
  llvm::SmallVector<VariableId> variables; ///< major first
  mlir::Value counter;
  Level *level = nullptr;
};

/// A nest while it is emitted.
struct NestInstance {
  NestKey key;
  llvm::SmallVector<LoopPart> parts;
};

struct Variable {
  Level *level = nullptr;
  int64_t low = 0, high = 0; ///< inclusive
  mlir::Value value;         ///< of a variable that is no loop counter
  LoopGroup *group = nullptr;
  NestInstance *nest = nullptr;
  unsigned part = 0; ///< position in the nest's parts
};

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMIT_LOOPNEST_H
