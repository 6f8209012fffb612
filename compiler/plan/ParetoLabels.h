// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ParetoLabels.h - elimination with lists of labels ------------------===//
//
// One pass of Pareto.h's elimination: every label that may be part of a plan
// that fits and costs less than a limit. Internal to the solver.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_PARETOLABELS_H
#define MTP_COMPILER_PLAN_PARETOLABELS_H

#include "compiler/plan/Labels.h"

namespace mtp::plan {

class LabelSearch {
public:
  enum Outcome { Found, Nothing, TooMany };

  LabelSearch(const FoldedProblem &problem, int64_t budget,
              int64_t floorTransient, int64_t labelLimit)
      : problem(problem), budget(budget), floorTransient(floorTransient),
        labelLimit(labelLimit) {}

  /// Messages of costs that charge `multiplier` for bytes; kept by reference.
  void addBound(Messages &messages, Multiplier multiplier);
  /// Messages of bytes alone.
  void addBytes(Messages &messages);

  /// Looks for assignments that fit and cost less than `limit`. Of each list
  /// only the `widest` labels of the least charged cost are kept: with a
  /// number, Nothing proves nothing.
  Outcome run(Time limit, size_t widest);
  /// After Found: the cheapest.
  std::vector<int> assignment();
  /// Labels of the last pass.
  int64_t count() const { return int64_t(all.size()); }
  int64_t sumsMade() const { return work; }

private:
  struct Bound {
    Messages *messages;
    Multiplier multiplier;
  };
  /// A label of a combination, and where it came from: a label of what was
  /// combined before, and one of all.
  struct Sum {
    Label label;
    uint32_t before = 0, with = 0;
    auto operator<=>(const Sum &) const = default;
  };
  /// What is least outside of a partial combination, by bound.
  struct Rest {
    std::vector<Time> costs;
    int64_t bytes = 0;
  };

  Time chargeOf(const Label &label) const {
    return label.cost + bounds.back().multiplier.of(label.additive);
  }
  bool isWithin() const {
    constexpr int64_t mostSumsPerLabel = 64;
    return count() <= labelLimit && work / mostSumsPerLabel <= labelLimit;
  }
  bool survives(const Label &label, const Rest &rest) const;
  void open(Time most);
  void fill(int bucket);
  void shorten(std::vector<Label> &list) const;
  std::pair<uint32_t, uint32_t> rangeOf(int bucket, size_t position) const {
    const uint32_t *start = starts.data() + firstStart[bucket] + position;
    return {start[0], start[1]};
  }
  void addRest(int bucket, size_t position, Time sign);
  void combine(int bucket, size_t place, std::vector<std::vector<Sum>> *steps);
  void combineWith(std::pair<uint32_t, uint32_t> range);

  const FoldedProblem &problem;
  int64_t budget, floorTransient, labelLimit;
  std::vector<Bound> bounds;
  Messages *bytes = nullptr;
  Time limit = 0;
  size_t widest = SIZE_MAX;
  int64_t work = 0;
  std::optional<Shapes> shapes;
  Time reach = 0; ///< of the shapes
  /// Places that this pass looks at, by shape.
  std::vector<std::vector<uint32_t>> places;
  /// All lists. Those of a bucket's position s are from start[s] to
  /// start[s + 1], `starts` from firstStart[bucket] on; sorted by cost.
  std::vector<size_t> firstStart;
  std::vector<uint32_t> starts;
  std::vector<Label> all;
  /// The same ranges, in order of the cost charged by the last bound.
  std::vector<std::pair<Time, uint32_t>> byCharge;
  /// Of the combination that is made.
  Rest rest;
  std::vector<Sum> sums, next;
  std::vector<Label> merged;
  Stair stair;
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_PARETOLABELS_H
