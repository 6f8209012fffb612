// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- LabelMarginals.h - min-marginals under a budget by lists of labels -===//
//
// Lists of labels (Pareto.h) go up and down one tree, as the messages of
// Fold.h do:
//
//   U(b, s)   labels of b's subtree beside the assignment s of its scope
//   D(b, s)   labels of everything else
//
// U of the children, a bucket's own tables and D make the labels of whole
// assignments, by strategy of the bucket's variable: of every variable at once.
//
// Lists hold what costs little more than the least beside the same neighbours,
// bytes charged with the multiplier of the best bound: at most `window` more.
// That is enough. An assignment with strategy x of variable v that costs at
// most C(v, x) + window, C the least with x, has in every part that does not
// contain v no more than the least of that part + window, since the rest, which
// contains v, is at least C(v, x) less that least.
//
// Internal to BudgetRegret.h.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_LABELMARGINALS_H
#define MTP_COMPILER_PLAN_LABELMARGINALS_H

#include "compiler/plan/Labels.h"

#include <map>

namespace mtp::plan {

class LabelMarginals {
public:
  /// `charged` and `smallest` are messages of costs that charge the multiplier
  /// for bytes, and of bytes alone; both were sent down.
  LabelMarginals(const FoldedProblem &problem, const Messages &charged,
                 Multiplier multiplier, const Messages &smallest,
                 int64_t budget, int64_t floorTransient);

  /// Makes the lists where the whole costs at most `reach`, bytes charged.
  /// False if that takes more work than `most`.
  bool run(Time window, Time reach, int64_t most);
  /// For each strategy of a bucket's variable the least cost of an assignment
  /// that fits, if it is within the window and the reach; else kIllegal, or
  /// that of some assignment that fits. `wanted` has a flag for each.
  std::vector<Time> marginal(int bucket, const std::vector<bool> &wanted);
  /// Labels, and sums of two of which 64 count as one, of the last run and the
  /// marginals since then.
  int64_t work() const { return labels + sums / kSumsPerLabel; }

private:
  static constexpr int64_t kSumsPerLabel = 64;

  /// Sorted by charged cost.
  struct List {
    std::vector<Label> labels;
    std::vector<Time> charges;
    void add(const Label &label, Time charge) {
      labels.push_back(label);
      charges.push_back(charge);
    }
  };
  /// An assignment of a bucket's scope and variable.
  struct Place {
    size_t position, strategy;
    Time cost; ///< least of the whole beside it, bytes charged
  };
  /// What a combination of a place's parts may come to.
  struct Room {
    Time charge;   ///< most
    int64_t bytes; ///< least of all other parts
  };

  const std::vector<Place> &placesOf(int bucket);
  List ownList(int bucket, const std::vector<int> &digits,
               size_t strategy) const;
  std::vector<size_t> childPositions(int bucket, const std::vector<int> &digits,
                                     size_t strategy) const;
  Time chargeOf(const Label &label) const {
    return label.cost + multiplier.of(label.additive);
  }
  Time costOf(int bucket, size_t position) const {
    return add(charged.up(bucket, position), charged.down(bucket, position));
  }
  /// How much more than the least a part may cost beside a position.
  Time windowOf(Time cost) const { return std::min(window, reach - cost); }
  List sum(const List &a, const List &b, const Room &room);
  List best(List list) const;
  List subtree(int bucket, const Place &place, Time room);
  void fillUp(int bucket);
  void fillDown(int bucket);
  bool isWithin() const { return work() <= mostWork; }

  const FoldedProblem &problem;
  const Messages &charged, &smallest;
  Multiplier multiplier;
  int64_t budget, floorTransient;
  /// Charges of parts are rounded down each.
  Time slack;
  Time window = 0, reach = 0;
  int64_t labels = 0, sums = 0, mostWork = 0;
  std::map<std::pair<int, int>, std::vector<Place>> open; ///< of equal buckets
  std::vector<std::map<size_t, List>> up, down; ///< by bucket and position
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_LABELMARGINALS_H
