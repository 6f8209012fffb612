// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/LabelMarginals.h"

namespace mtp::plan {

LabelMarginals::LabelMarginals(const FoldedProblem &problem,
                               const Messages &charged, Multiplier multiplier,
                               const Messages &smallest, int64_t budget,
                               int64_t floorTransient)
    : problem(problem), charged(charged), smallest(smallest),
      multiplier(multiplier), budget(budget), floorTransient(floorTransient),
      slack(Time(problem.unaryOf.size() + problem.pairOf.size())) {}

/// Places in the reach. Buckets with equal messages around them have the same.
const std::vector<LabelMarginals::Place> &LabelMarginals::placesOf(int bucket) {
  auto [it, isNew] =
      open.try_emplace({charged.kindOf(bucket), charged.restOf(bucket)});
  if (!isNew)
    return it->second;
  for (const Entry &entry : entriesOf(charged, bucket))
    if (Time cost = charged.optimum() + entry.more; cost <= reach)
      it->second.push_back({entry.position, entry.strategy, cost});
  return it->second;
}

/// The one label of the bucket's own tables.
LabelMarginals::List LabelMarginals::ownList(int bucket,
                                             const std::vector<int> &digits,
                                             size_t strategy) const {
  Label label = ownLabel(problem, bucket, digits, strategy);
  // No assignment has fewer transient bytes: fewer labels are incomparable.
  label.transient = std::max(label.transient, floorTransient);
  List list;
  list.add(label, chargeOf(label));
  return list;
}

std::vector<size_t>
LabelMarginals::childPositions(int bucket, const std::vector<int> &digits,
                               size_t strategy) const {
  std::vector<size_t> positions;
  for (int child : problem.tree.buckets[bucket].children)
    positions.push_back(
        offsetOf(problem.messageStrides[child], digits, strategy));
  return positions;
}

/// Those of which no other is at most in all three, sorted by charged cost.
LabelMarginals::List LabelMarginals::best(List list) const {
  std::sort(list.labels.begin(), list.labels.end());
  Stair stair;
  std::vector<std::pair<Time, Label>> kept;
  for (const Label &label : list.labels)
    if (stair.add(label))
      kept.push_back({chargeOf(label), label});
  std::sort(kept.begin(), kept.end());
  List result;
  for (const auto &[charge, label] : kept)
    result.add(label, charge);
  return result;
}

LabelMarginals::List LabelMarginals::sum(const List &a, const List &b,
                                         const Room &room) {
  List result;
  for (size_t i = 0; i < a.labels.size(); ++i)
    for (size_t j = 0; j < b.labels.size(); ++j) {
      ++sums;
      if (a.charges[i] + b.charges[j] > room.charge)
        break;
      const Label &x = a.labels[i], &y = b.labels[j];
      Label both{x.cost + y.cost, x.additive + y.additive,
                 std::max(x.transient, y.transient)};
      if (both.additive + room.bytes + both.transient <= budget)
        result.add(both, 0);
    }
  return best(std::move(result));
}

/// Labels of the bucket's subtree at a place that cost at most `room` more
/// than the least.
LabelMarginals::List LabelMarginals::subtree(int index, const Place &place,
                                             Time room) {
  const std::vector<int> &children = problem.tree.buckets[index].children;
  std::vector<int> digits = digitsOf(problem, index, place.position);
  std::vector<size_t> positions = childPositions(index, digits, place.strategy);
  List current = ownList(index, digits, place.strategy);
  Room most{current.charges[0] + room + slack,
            smallest.down(index, place.position)};
  for (size_t c = 0; c < children.size(); ++c)
    most.bytes += smallest.up(children[c], positions[c]);
  for (size_t c = 0; c < children.size() && !current.labels.empty(); ++c) {
    most.charge += charged.up(children[c], positions[c]);
    most.bytes -= smallest.up(children[c], positions[c]);
    current = sum(current, up[children[c]][positions[c]], most);
  }
  return current;
}

void LabelMarginals::fillUp(int index) {
  std::map<size_t, List> all;
  for (const Place &place : placesOf(index)) {
    Time here = costOf(index, place.position);
    Time room = windowOf(here) - (place.cost - here);
    if (room < 0)
      continue;
    List current = subtree(index, place, room);
    List &mine = all[place.position];
    mine.labels.insert(mine.labels.end(), current.labels.begin(),
                       current.labels.end());
    if (!isWithin())
      return;
  }
  for (auto &[position, list] : all) {
    list = best(std::move(list));
    labels += int64_t(list.labels.size());
  }
  up[index] = std::move(all);
}

/// To each child what everything but it comes to.
void LabelMarginals::fillDown(int index) {
  const std::vector<int> &children = problem.tree.buckets[index].children;
  for (const Place &place : placesOf(index)) {
    std::vector<int> digits = digitsOf(problem, index, place.position);
    std::vector<size_t> positions =
        childPositions(index, digits, place.strategy);
    Time room = -1;
    for (size_t c = 0; c < children.size(); ++c) {
      Time there = costOf(children[c], positions[c]);
      room = std::max(room, windowOf(there) - (place.cost - there));
    }
    if (room < 0)
      continue;
    room += slack;
    // Before each child: own, D and the children before it; behind it: the
    // others.
    List own = ownList(index, digits, place.strategy);
    int64_t bytes =
        own.labels[0].additive + smallest.down(index, place.position);
    for (size_t c = 0; c < children.size(); ++c)
      bytes += smallest.up(children[c], positions[c]);
    // Bytes of the other parts, for parts of so many.
    auto beside = [&](int64_t mine) { return bytes - mine; };
    Time least = own.charges[0] + charged.down(index, place.position);
    int64_t inside =
        own.labels[0].additive + smallest.down(index, place.position);
    std::vector<List> before{
        sum(own, down[index][place.position], {least + room, beside(inside)})};
    std::vector<Time> leastBefore{least};
    std::vector<int64_t> insideBefore{inside};
    for (size_t c = 0; c + 1 < children.size(); ++c) {
      least += charged.up(children[c], positions[c]);
      inside += smallest.up(children[c], positions[c]);
      before.push_back(sum(before.back(), up[children[c]][positions[c]],
                           {least + room, beside(inside)}));
      leastBefore.push_back(least);
      insideBefore.push_back(inside);
    }
    List behind;
    behind.add({}, 0);
    least = inside = 0;
    for (size_t c = children.size(); c-- > 0;) {
      Room both{leastBefore[c] + least + room,
                beside(insideBefore[c] + inside)};
      List mine = sum(before[c], behind, both);
      List &list = down[children[c]][positions[c]];
      list.labels.insert(list.labels.end(), mine.labels.begin(),
                         mine.labels.end());
      least += charged.up(children[c], positions[c]);
      inside += smallest.up(children[c], positions[c]);
      if (c > 0)
        behind = sum(behind, up[children[c]][positions[c]],
                     {least + room, beside(inside)});
    }
    if (!isWithin())
      return;
  }
  for (int child : children)
    for (auto &[position, list] : down[child]) {
      list = best(std::move(list));
      labels += int64_t(list.labels.size());
    }
}

bool LabelMarginals::run(Time newWindow, Time newReach, int64_t most) {
  window = newWindow;
  reach = newReach;
  mostWork = most;
  labels = sums = 0;
  open.clear();
  up.assign(problem.tree.buckets.size(), {});
  down.assign(problem.tree.buckets.size(), {});
  for (int bucket = 0; bucket < problem.root() && isWithin(); ++bucket)
    fillUp(bucket);
  down[problem.root()][0].add({}, 0);
  for (int bucket = problem.root(); bucket >= 0 && isWithin(); --bucket)
    fillDown(bucket);
  return isWithin();
}

std::vector<Time> LabelMarginals::marginal(int index,
                                           const std::vector<bool> &wanted) {
  std::vector<Time> least(problem.strategies(index), kIllegal), result = least;
  for (const Place &place : placesOf(index))
    least[place.strategy] = std::min(least[place.strategy], place.cost);
  for (const Place &place : placesOf(index)) {
    Time mine = least[place.strategy];
    Time room = windowOf(mine) - (place.cost - mine);
    if (!wanted[place.strategy] || room < 0)
      continue;
    // Of whole assignments, so no other part needs bytes.
    Room whole{mine + room + (place.cost - mine) + slack, 0};
    List all =
        sum(subtree(index, place, room), down[index][place.position], whole);
    for (const Label &label : all.labels)
      result[place.strategy] = std::min(result[place.strategy], label.cost);
  }
  return result;
}

} // namespace mtp::plan
