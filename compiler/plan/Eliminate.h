// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Eliminate.h - in which order variables go, and the tree of buckets -===//
//
// Eliminating a variable makes a bucket: the variable, its neighbours of that
// moment (the scope), and the tables that mention the variable and no variable
// eliminated earlier. Its message, a table over the scope, goes to the bucket
// of that neighbour which is eliminated first.
//
//   pairs ab bc bd, order a c d b:
//     bucket a: scope b, table ab    ->  bucket b
//     bucket c: scope b, table bc    ->  bucket b
//     bucket d: scope b, table bd    ->  bucket b
//     bucket b: scope -              ->  root
//
// Invariants: the last bucket is the root: no variable, and one child for every
// connected component. A scope is sorted by rank, the variable that goes last
// first, so the last of a scope is the parent's variable.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_ELIMINATE_H
#define MTP_COMPILER_PLAN_ELIMINATE_H

#include "compiler/plan/Solver.h"

namespace mtp::plan {

struct Elimination {
  struct Bucket {
    int variable = -1; ///< -1: the root
    std::vector<int> scope;
    int parent = -1;
    std::vector<int> pairs;    ///< of the problem
    std::vector<int> children; ///< buckets
  };
  std::vector<Bucket> buckets; ///< in order of elimination; last: the root
  std::vector<int> rankOf;     ///< by variable
  int width = 0;               ///< largest number of neighbours
  int64_t largestTable = 0;    ///< entries over a variable and its neighbours
  int64_t entries = 0;         ///< of all these tables
};

/// Min-fill order; nothing, and `error` that names the variables, where tables
/// exceed the limits.
std::optional<Elimination> eliminate(const Problem &problem,
                                     const SolverOptions &options,
                                     SolverError &error);

/// That a bucket has no legal assignment, with the names.
SolverError infeasible(const Problem &problem, const Elimination &tree,
                       int bucket);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_ELIMINATE_H
