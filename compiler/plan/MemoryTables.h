// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MemoryTables.h - the bytes of a problem while they are added up ----===//
#ifndef MTP_COMPILER_PLAN_MEMORYTABLES_H
#define MTP_COMPILER_PLAN_MEMORYTABLES_H

#include "compiler/plan/Solver.h"

#include <algorithm>
#include <map>

namespace mtp::plan {

/// Bytes add up; of transient ones the largest counts.
class MemoryTables {
public:
  explicit MemoryTables(const Problem &problem) : problem(problem) {
    memory.variables.resize(problem.variables.size());
    memory.pairs.resize(problem.pairs.size());
    for (size_t index = 0; index < problem.pairs.size(); ++index)
      indices[{problem.pairs[index].a, problem.pairs[index].b}] = index;
  }

  void addUnary(int variable, int strategy, int64_t bytes,
                int64_t transient = 0) {
    add(memory.variables[variable], strategies(variable), size_t(strategy),
        bytes, transient);
  }

  /// There must be a pair of both, unless they are the same.
  void addPair(int a, int b, int x, int y, int64_t bytes, int64_t transient) {
    if (!bytes && !transient)
      return;
    if (a == b) {
      if (x == y)
        addUnary(a, x, bytes, transient);
      return;
    }
    if (a > b) {
      std::swap(a, b);
      std::swap(x, y);
    }
    add(memory.pairs[indices.at({a, b})], strategies(a) * strategies(b),
        size_t(x) * strategies(b) + size_t(y), bytes, transient);
  }

  /// Whatever the assignment.
  void addFixed(int64_t bytes) {
    for (size_t x = 0; !problem.variables.empty() && x < strategies(0); ++x)
      addUnary(0, int(x), bytes);
  }

  MemoryModel take() { return std::move(memory); }

private:
  size_t strategies(int variable) const {
    return problem.variables[variable].unary.size();
  }
  static void add(Footprint &footprint, size_t size, size_t at, int64_t bytes,
                  int64_t transient) {
    if (bytes) {
      footprint.bytes.resize(size);
      footprint.bytes[at] += bytes;
    }
    if (transient) {
      footprint.transient.resize(size);
      footprint.transient[at] = std::max(footprint.transient[at], transient);
    }
  }

  const Problem &problem;
  MemoryModel memory;
  std::map<std::pair<int, int>, size_t> indices;
};

/// Bytes that are needed from one position to another, both included.
class Load {
public:
  explicit Load(int positions) : changes(size_t(positions) + 1) {}
  void add(int from, int to, int64_t bytes) {
    from = std::max(from, 0);
    if (from > to)
      return;
    changes[from] += bytes;
    changes[to + 1] -= bytes;
  }
  /// At the position that needs most.
  int64_t most() const {
    int64_t most = 0, now = 0;
    for (int64_t change : changes)
      most = std::max(most, now += change);
    return most;
  }

private:
  std::vector<int64_t> changes; ///< by position
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_MEMORYTABLES_H
