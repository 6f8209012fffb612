// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RuleMutations.h - wrong rules on purpose ---------------------------===//
//
// Linked into mutate-rules only: this file's definitions of `detail::takeRule`
// and `partition::neutralElement` stand in for those of the product's
// libraries.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TEST_FUZZ_RULEMUTATIONS_H
#define MTP_TEST_FUZZ_RULEMUTATIONS_H

#include "dialects/mtp/ShardingRule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <functional>
#include <string>
#include <vector>

namespace mtp::fuzz {

/// One change of the rule of one op, or of a neutral element.
struct RuleMutation {
  std::string text;        ///< "matmul: factor k is whole"
  mlir::func::FuncOp seed; ///< whose op is changed; null for a neutral element
  std::function<void(ShardingRule &)> change;
  std::function<void(mlir::Type element, Kind reduction, double &value)>
      neutral;
};

/// All changes of the rule of the seed's op.
std::vector<RuleMutation> mutationsOf(mlir::func::FuncOp seed);
/// Changes of neutral elements.
std::vector<RuleMutation> neutralMutations();

/// From now on rules are changed; null: they are right.
void setMutation(const RuleMutation *mutation);

} // namespace mtp::fuzz

#endif // MTP_TEST_FUZZ_RULEMUTATIONS_H
