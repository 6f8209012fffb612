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

#include <set>

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
  int64_t count() const { return labels; }
  int64_t sums() const { return work; }

private:
  struct Bound {
    Messages *messages;
    Multiplier multiplier;
  };
  /// Lists of a bucket: those of position s are from start[s] to start[s + 1].
  /// `byCharge` has the same ranges, in order of the cost charged by the last
  /// bound.
  struct Lists {
    std::vector<size_t> start;
    std::vector<Label> labels;
    std::vector<std::pair<Time, size_t>> byCharge;
  };
  /// What is least outside of a partial combination, by bound.
  struct Rest {
    std::vector<Time> costs;
    int64_t bytes = 0;
  };
  /// Where a label of a combination came from.
  struct Origin {
    int before = 0, label = 0;
  };
  struct Place {
    int bucket = 0;
    size_t position = 0, strategy = 0;
  };

  /// (position, strategy), sorted.
  using Open = std::vector<std::pair<size_t, size_t>>;

  Time chargeOf(const Label &label) const {
    return label.cost + bounds.back().multiplier.of(label.additive);
  }
  bool survives(const Label &label, const Rest &rest) const;
  void fill(int bucket);
  void shorten(std::vector<Label> &list) const;
  const std::vector<Entry> &entriesAt(int bucket);
  const Open &openOf(int bucket);
  std::vector<Label> combine(const Place &place,
                             std::vector<std::vector<Origin>> *origins);

  const FoldedProblem &problem;
  int64_t budget, floorTransient, labelLimit;
  std::vector<Bound> bounds;
  Messages *bytes = nullptr;
  Time limit = 0;
  size_t widest = SIZE_MAX;
  int64_t labels = 0, work = 0;
  std::vector<Lists> lists;                                  ///< by bucket
  std::map<std::pair<int, int>, std::vector<Entry>> entries; ///< by kind, rest
  std::map<std::pair<int, int>, Open> open;                  ///< of this pass
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_PARETOLABELS_H
