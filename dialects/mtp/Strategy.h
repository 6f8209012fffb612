// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Strategy.h - the well-typed ways to run an op ----------------------===//
//
// For one mesh axis an op is well-typed in exactly these ways:
//
//   case       operands                             results
//   invariant  all I                                all I
//   replicated all R                                all R
//   sharded f  S where they have f, else R          S where they have f, else
//                                                   P(reduction of f)
//   linear     P(sum) in one linear set, else R     all P(sum)
//   ordered    all P(max) (or all P(min))           likewise, for ops that only
//                                                   move elements or take
//                                                   max/min
//
// Operands without cotangent (integers, booleans, constants) may be I where R
// is required. Constants may be produced in any state but partial. A literal
// zero counts as P. Several axes combine freely except on one dimension: see
// `combine`.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_DIALECT_STRATEGY_H
#define MTP_DIALECT_STRATEGY_H

#include "dialects/mtp/ShardingRule.h"

namespace mtp {

/// One row of the table above, for one axis.
struct AxisCase {
  enum class Row : uint8_t {
    Invariant,
    Replicated,
    Sharded,
    Linear,
    Max,
    Min
  } row;
  int index = 0; ///< Sharded: the factor; Linear: index of the linear set
  /// Sharded: blocks are multiples of so many elements of the factor, because a
  /// neighbouring op splits it: 30 heads x 64 in one dimension have unit 64.
  int64_t unit = 1;

  bool operator==(const AxisCase &other) const {
    return row == other.row && index == other.index && unit == other.unit;
  }
  /// "invariant", "sharded b", "linear 0&1": for messages and tables.
  std::string text(const ShardingRule &rule) const;
};

/// All cases of `rule` for one axis, in a fixed order: invariant, replicated,
/// sharded by factor, linear by set, max, min.
llvm::SmallVector<AxisCase, 8> enumerateCases(const ShardingRule &rule);

/// State of operand `index` on an axis whose case `c` does not shard it.
Kind operandKind(const ShardingRule &rule, AxisCase c, unsigned index);
/// State of a result on an axis whose case `c` does not shard it.
Kind resultKind(const ShardingRule &rule, AxisCase c);

/// Layouts of all operands and results.
struct Strategy {
  llvm::SmallVector<AxisCase, 4> cases; ///< one per mesh axis
  llvm::SmallVector<Layout, 3> operands, results;
};

/// Combines one case per axis into layouts. Axes on one factor nest in mesh
/// order (slowest is major) unless `order` (a permutation of mesh axes, major
/// first) says otherwise. Fails, with a reason, where the combination is not
/// legal: two axes shard a factor in different units; a factor behind a major
/// factor of the same dimension is sharded although that major factor is not
/// cut to size 1 on every rank without padding; a tensor would have two kinds
/// of reduction; a factor is whole; an axis of size 1 shards nothing (it may).
std::optional<Strategy> combine(mlir::Operation *op, const ShardingRule &rule,
                                llvm::ArrayRef<AxisCase> cases,
                                const MeshShape &mesh,
                                std::string *why = nullptr,
                                llvm::ArrayRef<int> order = {});

/// True if the value has no cotangent: integers, booleans, constants, results
/// of stop-gradient, and anything computed from only such values.
bool hasNoCotangent(mlir::Value value);

/// True if `actual` may stand where a strategy asks for `required` (equal, or I
/// for R on axes where the value has no cotangent, or anything non-partial from
/// R/I of a literal zero for P).
bool accepts(mlir::Value value, const Layout &actual, const Layout &required);

} // namespace mtp

#endif // MTP_DIALECT_STRATEGY_H
