// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Fold.h - messages of equal buckets are computed once ---------------===//
//
// Identical layers give identical tables, and identical tables identical
// messages. Tables are numbered by content; a message less its minimum is a
// function of the numbers of the bucket's tables and of its children's messages
// alone, so it is computed once for all buckets that have the same numbers.
//
//   layer 1   x0 -T- x1      m1(x1) = min T(x0, x1)          = f1 + c1
//   layer 2   x1 -T- x2      m2(x2) = min m1(x1) + T(x1, x2) = f2 + c2
//   ...
//
// (min,+) powers become periodic: after a few layers f(k+1) = f(k), and every
// further layer costs a lookup.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_FOLD_H
#define MTP_COMPILER_PLAN_FOLD_H

#include "compiler/plan/Eliminate.h"
#include "compiler/plan/Pareto.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

namespace mtp::plan {

/// Where the entries of a table lie beside an assignment of a bucket's scope:
/// offset(s) = sum of strides[d] * s[d], then one entry for each strategy of
/// the bucket's variable.
using Strides = std::vector<size_t>;

/// A problem without illegal strategies, its tree, and its tables by content.
struct FoldedProblem {
  FoldedProblem(const Problem &problem, const MemoryModel &memory,
                Elimination tree);

  struct Table {
    std::vector<Time> cost;
    Footprint footprint;
  };
  Elimination tree;
  std::vector<int> sizes; ///< strategies by variable
  /// Variables' tables and pairs', pairs as (goes later, goes earlier).
  std::vector<Table> unary, pairs;
  std::vector<int> unaryOf, pairOf; ///< numbers, by variable and by pair
  std::vector<Strides> pairStrides,
      messageStrides; ///< by pair; by child bucket

  size_t strategies(int bucket) const {
    int variable = tree.buckets[bucket].variable;
    return variable < 0 ? 1 : size_t(sizes[variable]);
  }
  /// Assignments of the bucket's scope.
  size_t entries(int bucket) const;
  int root() const { return int(tree.buckets.size()) - 1; }
};

/// One cost for every entry of every table.
struct Weights {
  std::vector<std::vector<Time>> unary, pairs; ///< by number
};

/// Messages up and down the tree for one choice of weights.
///
///   up(b, s)    least cost of b's subtree beside the assignment s of its scope
///   down(b, s)  least cost of everything else
class Messages {
public:
  /// `problem` must outlive this.
  Messages(const FoldedProblem &problem, Weights weights);

  /// Least cost of all; kIllegal: there is none, see deadEnd().
  Time optimum() const {
    return dead < 0 ? upOffset[problem.root()] : kIllegal;
  }
  /// A bucket without legal assignment, or -1.
  int deadEnd() const { return dead; }
  /// First strategies of least cost, from the last variable to the first.
  std::vector<int> assignment() const;
  /// Needed before down(); once is enough.
  void sendDown();

  Time up(int bucket, size_t position) const {
    return add(tables[upOf[bucket]][position], upOffset[bucket]);
  }
  Time down(int bucket, size_t position) const {
    return add(tables[downOf[bucket]][position], downOffset[bucket]);
  }
  /// Least total cost with each strategy of the bucket's variable.
  std::vector<Time> marginal(int bucket) const;
  /// Visits (position, costs of the bucket's variable) beside every assignment
  /// of its scope that has a legal one, less the offsets of its children.
  using Visit = std::function<void(size_t, const std::vector<Time> &)>;
  void forEachRow(int bucket, const Visit &visit) const;
  /// Buckets of one kind have the same rows; of one rest, the same down() but
  /// for an offset.
  int kindOf(int bucket) const { return kind[bucket]; }
  /// Those of buckets of one kind correspond.
  const std::vector<int> &childrenOf(int bucket) const {
    return children[bucket];
  }
  int restOf(int bucket) const { return downOf[bucket]; }
  const std::vector<Time> &restTable(int bucket) const {
    return tables[downOf[bucket]];
  }
  /// Messages that were computed, not looked up.
  int computed() const { return int(tables.size()); }

private:
  struct Factor {
    const Time *entries;
    const Strides *strides; ///< of the variable's own table: empty
  };
  std::vector<int> keyOf(int bucket);
  int numberOf(std::vector<Time> table);
  std::vector<Factor> factorsOf(int bucket) const;
  std::vector<Time> message(int bucket) const;
  std::vector<Time> row(int bucket, const std::vector<int> &assignment) const;
  std::vector<std::pair<int, Time>> messagesDown(int bucket);

  const FoldedProblem &problem;
  Weights weights;
  std::vector<std::vector<Time>> tables; ///< messages, least entry 0
  std::unordered_multimap<uint64_t, int> byContent;
  std::vector<int> kind, upOf, downOf; ///< by bucket
  std::vector<Time> upOffset, downOffset;
  std::vector<std::vector<int>> children; ///< by bucket, by (message, strides)
  int dead = -1;
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_FOLD_H
