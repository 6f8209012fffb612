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

private:
  using Step = std::pair<int64_t, int64_t>;
  std::vector<Step> steps;
};

/// The assignment of a bucket's scope at a position of its tables.
std::vector<int> digitsOf(const FoldedProblem &problem, int bucket,
                          size_t position);
/// Where the entry of an assignment and a strategy is in a table.
size_t offsetOf(const Strides &strides, const std::vector<int> &digits,
                size_t strategy);
/// The bucket's own tables beside an assignment of its scope.
Label ownLabel(const FoldedProblem &problem, int bucket,
               const std::vector<int> &digits, size_t strategy);

/// A position and a strategy of a bucket that are legal, and how much more than
/// the optimum the least costs that has them.
struct Entry {
  size_t position, strategy;
  Time more;
};
/// All of a bucket, sorted. The messages were sent down.
std::vector<Entry> entriesOf(const Messages &messages, int bucket);

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_LABELS_H
