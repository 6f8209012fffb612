// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Labels.h - cost and bytes of parts of an assignment ----------------===//
//
// What the passes over lists of labels share (Pareto.h, BudgetRegret.h).
// Internal to the solver.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_LABELS_H
#define MTP_COMPILER_PLAN_LABELS_H

#include "compiler/plan/Fold.h"

#include <compare>

namespace mtp::plan {

/// Picoseconds for each byte, in parts of 2^-20.
struct Multiplier {
  int64_t parts = 0;

  static constexpr int kShift = 20;
  static Multiplier ratio(Time time, int64_t bytes) {
    __int128 parts = (__int128(time) << kShift) / bytes;
    return {parts > INT64_MAX ? INT64_MAX : int64_t(parts)};
  }
  /// The largest that charges `bytes` at most `time`.
  static Multiplier atMost(Time time, int64_t bytes) {
    return ratio(time, bytes);
  }
  /// Rounded down, so that charges of parts never exceed that of their sum.
  Time of(int64_t bytes) const {
    return Time((__int128(parts) * bytes) >> kShift);
  }
  bool operator<(const Multiplier &other) const { return parts < other.parts; }
};

/// Cost and bytes of an assignment of a bucket's subtree.
struct Label {
  Time cost = 0;
  int64_t additive = 0, transient = 0;
  auto operator<=>(const Label &) const = default;
};

/// What was kept so far, by additive bytes: the larger they are, the fewer are
/// the transient ones.
class Stair {
public:
  /// False if a label that was kept is at most this one. Labels come in order
  /// of cost.
  bool add(const Label &label);
  void clear() { steps.clear(); }

private:
  using Step = std::pair<int64_t, int64_t>;
  std::vector<Step> steps;
};

/// Costs with each byte charged, and bytes alone. What takes more transient
/// bytes than `cap` is illegal.
Weights charge(const FoldedProblem &problem, Multiplier multiplier,
               int64_t cap);
Weights bytesOnly(const FoldedProblem &problem, int64_t cap);

/// What buckets with equal messages around them have in common: the positions
/// and strategies that cost little more than the optimum.
struct Shape {
  struct Place {
    size_t position, strategy;
    Time more; ///< than the optimum costs the least that has them
    Label own; ///< of the bucket's own tables
  };
  std::vector<Place> places; ///< sorted by position, then by strategy
  size_t children = 0;
  std::vector<size_t> childPositions; ///< by place, then by child

  const size_t *positionsOf(size_t place) const {
    return childPositions.data() + place * children;
  }
};

/// The shapes of all buckets. Children are in the order of
/// Messages::childrenOf.
class Shapes {
public:
  /// Of places that cost at most `most` more. `messages` were sent down.
  Shapes(const FoldedProblem &problem, const Messages &messages, Time most);

  const Shape &of(int bucket) const { return shapes[numbers[bucket]]; }
  int numberOf(int bucket) const { return numbers[bucket]; }
  const std::vector<Shape> &all() const { return shapes; }

private:
  std::vector<Shape> shapes;
  std::vector<int> numbers; ///< by bucket
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_LABELS_H
