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

  struct Item {
    Time charge = 0;
    Label label;
    bool operator<(const Item &other) const {
      return std::tie(charge, label) < std::tie(other.charge, other.label);
    }
  };
  /// Sorted by charged cost; no label is at most another.
  using List = std::vector<Item>;
  /// A list among all of them.
  struct Range {
    uint32_t first = 0, count = 0;
  };
  struct View {
    const Item *first;
    size_t count;
    const Item *begin() const { return first; }
    const Item *end() const { return first + count; }
  };
  /// What a combination of a place's parts may come to.
  struct Room {
    Time charge;   ///< most
    int64_t bytes; ///< least of all other parts
  };

  View viewOf(const List &list) const { return {list.data(), list.size()}; }
  View viewOf(Range range) const {
    return {items.data() + range.first, range.count};
  }
  View upOf(int bucket, size_t position) const {
    return viewOf(up[firstOf[bucket] + position]);
  }
  View downOf(int bucket, size_t position) const {
    return viewOf(down[firstOf[bucket] + position]);
  }
  Range keep(View list);
  Item ownItem(const Shape::Place &place) const;
  Time chargeOf(const Label &label) const {
    return label.cost + multiplier.of(label.additive);
  }
  Time costOf(int bucket, size_t position) const {
    return add(charged.up(bucket, position), charged.down(bucket, position));
  }
  Time costOf(const Shape::Place &place) const {
    return charged.optimum() + place.more;
  }
  /// How much more than the least a part may cost beside a position.
  Time windowOf(Time cost) const { return std::min(window, reach - cost); }
  void sum(View a, View b, const Room &room, List &result);
  void keepBest(List &list);
  void combine(int bucket, size_t place, Time room);
  void fillUp(int bucket);
  void fillDown(int bucket);
  void addDown(int bucket, size_t place);
  bool isWithin() const { return work() <= mostWork; }

  const FoldedProblem &problem;
  const Messages &charged, &smallest;
  Multiplier multiplier;
  int64_t budget, floorTransient;
  /// Charges of parts are rounded down each.
  Time slack;
  Time window = 0, reach = 0;
  int64_t labels = 0, sums = 0, mostWork = 0;
  std::optional<Shapes> shapes;
  Time widest = 0; ///< most of the shapes
  /// By bucket and position: those of a bucket from firstOf[bucket] on.
  std::vector<size_t> firstOf;
  std::vector<Range> up, down;
  List items; ///< of all lists
  /// What goes to positions of a bucket's children: several lists to one.
  std::vector<std::pair<size_t, Range>> parts;
  List partItems;
  /// Of a place, before each child: the least charge and bytes, and labels.
  struct Before {
    Time charge = 0;
    int64_t bytes = 0;
    List labels;
  };
  std::vector<Before> before;
  List current, next, merged, behind;
  Stair stair;
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_LABELMARGINALS_H
