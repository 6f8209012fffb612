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

/// The one label of the bucket's own tables.
LabelMarginals::Item LabelMarginals::ownItem(const Shape::Place &place) const {
  Label label = place.own;
  // No assignment has fewer transient bytes: fewer labels are incomparable.
  label.transient = std::max(label.transient, floorTransient);
  return {chargeOf(label), label};
}

LabelMarginals::Range LabelMarginals::keep(View list) {
  Range range{uint32_t(items.size()), uint32_t(list.count)};
  items.insert(items.end(), list.begin(), list.end());
  labels += int64_t(list.count);
  return range;
}

/// Drops labels that another is at most in all three; sorts by charged cost.
void LabelMarginals::keepBest(List &list) {
  std::sort(list.begin(), list.end(),
            [](const Item &a, const Item &b) { return a.label < b.label; });
  stair.clear();
  std::erase_if(list, [&](const Item &item) { return !stair.add(item.label); });
  std::sort(list.begin(), list.end());
}

void LabelMarginals::sum(View a, View b, const Room &room, List &result) {
  result.clear();
  bool isChanged = false; // transient bytes of a label that one was added to
  for (const Item &x : a)
    for (const Item &y : b) {
      ++sums;
      if (x.charge + y.charge > room.charge)
        break;
      Label both{x.label.cost + y.label.cost,
                 x.label.additive + y.label.additive,
                 std::max(x.label.transient, y.label.transient)};
      isChanged |= both.transient != (a.count == 1 ? y : x).label.transient;
      if (both.additive + room.bytes + both.transient <= budget)
        result.push_back({chargeOf(both), both});
    }
  if ((a.count > 1 && b.count > 1) || isChanged)
    keepBest(result);
  else if (!std::is_sorted(result.begin(), result.end()))
    std::sort(result.begin(), result.end()); // charges are rounded
}

/// Makes `current` the labels of the bucket's subtree at a place that cost at
/// most `room` more than the least.
void LabelMarginals::combine(int bucket, size_t index, Time room) {
  const Shape &shape = shapes->of(bucket);
  const Shape::Place &place = shape.places[index];
  const std::vector<int> &children = charged.childrenOf(bucket);
  const size_t *positions = shape.positionsOf(index);
  current.assign(1, ownItem(place));
  Room most{current[0].charge + room + slack,
            smallest.down(bucket, place.position)};
  for (size_t c = 0; c < children.size(); ++c)
    most.bytes += smallest.up(children[c], positions[c]);
  for (size_t c = 0; c < children.size() && !current.empty(); ++c) {
    most.charge += charged.up(children[c], positions[c]);
    most.bytes -= smallest.up(children[c], positions[c]);
    sum(viewOf(current), upOf(children[c], positions[c]), most, next);
    std::swap(current, next);
  }
}

void LabelMarginals::fillUp(int bucket) {
  const std::vector<Shape::Place> &places = shapes->of(bucket).places;
  for (size_t i = 0; i < places.size();) {
    const size_t position = places[i].position;
    const Time here = costOf(bucket, position);
    merged.clear();
    int lists = 0;
    for (; i < places.size() && places[i].position == position; ++i) {
      Time room = windowOf(here) - (costOf(places[i]) - here);
      if (room < 0)
        continue;
      combine(bucket, i, room);
      merged.insert(merged.end(), current.begin(), current.end());
      ++lists;
      if (!isWithin())
        return;
    }
    if (lists > 1)
      keepBest(merged);
    up[firstOf[bucket] + position] = keep(viewOf(merged));
  }
}

/// To each child what everything but it comes to, at a place.
void LabelMarginals::addDown(int bucket, size_t index) {
  const Shape &shape = shapes->of(bucket);
  const Shape::Place &place = shape.places[index];
  const std::vector<int> &children = charged.childrenOf(bucket);
  const size_t *positions = shape.positionsOf(index);
  Time room = -1;
  for (size_t c = 0; c < children.size(); ++c) {
    Time there = costOf(children[c], positions[c]);
    room = std::max(room, windowOf(there) - (costOf(place) - there));
  }
  if (room < 0)
    return;
  room += slack;
  // Before each child: own, D and the children before it; behind it: the
  // others.
  const Item own = ownItem(place);
  int64_t bytes = own.label.additive + smallest.down(bucket, place.position);
  for (size_t c = 0; c < children.size(); ++c)
    bytes += smallest.up(children[c], positions[c]);
  // Bytes of the other parts, for parts of so many.
  auto beside = [&](int64_t mine) { return bytes - mine; };
  Time least = own.charge + charged.down(bucket, place.position);
  int64_t inside = own.label.additive + smallest.down(bucket, place.position);
  if (before.size() < children.size())
    before.resize(children.size());
  sum({&own, 1}, downOf(bucket, place.position), {least + room, beside(inside)},
      before[0].labels);
  for (size_t c = 0; c < children.size(); ++c) {
    before[c].charge = least;
    before[c].bytes = inside;
    least += charged.up(children[c], positions[c]);
    inside += smallest.up(children[c], positions[c]);
    if (c + 1 < children.size())
      sum(viewOf(before[c].labels), upOf(children[c], positions[c]),
          {least + room, beside(inside)}, before[c + 1].labels);
  }
  behind.assign(1, {});
  least = inside = 0;
  for (size_t c = children.size(); c-- > 0;) {
    sum(viewOf(before[c].labels), viewOf(behind),
        {before[c].charge + least + room, beside(before[c].bytes + inside)},
        next);
    parts.push_back({firstOf[children[c]] + positions[c],
                     {uint32_t(partItems.size()), uint32_t(next.size())}});
    partItems.insert(partItems.end(), next.begin(), next.end());
    least += charged.up(children[c], positions[c]);
    inside += smallest.up(children[c], positions[c]);
    if (c == 0)
      break;
    sum(viewOf(behind), upOf(children[c], positions[c]),
        {least + room, beside(inside)}, next);
    std::swap(behind, next);
  }
}

void LabelMarginals::fillDown(int bucket) {
  parts.clear();
  partItems.clear();
  for (size_t i = 0; i < shapes->of(bucket).places.size(); ++i) {
    addDown(bucket, i);
    if (!isWithin())
      return;
  }
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const auto &a, const auto &b) { return a.first < b.first; });
  for (size_t i = 0; i < parts.size();) {
    const size_t position = parts[i].first, first = i;
    merged.clear();
    for (; i < parts.size() && parts[i].first == position; ++i) {
      const Item *part = partItems.data() + parts[i].second.first;
      merged.insert(merged.end(), part, part + parts[i].second.count);
    }
    if (i > first + 1)
      keepBest(merged);
    down[position] = keep(viewOf(merged));
  }
}

bool LabelMarginals::run(Time newWindow, Time newReach, int64_t most) {
  window = newWindow;
  reach = newReach;
  mostWork = most;
  labels = sums = 0;
  // Places beyond the reach have no room: a larger reach may follow.
  constexpr Time ahead = 2;
  if (Time most = reach - charged.optimum(); !shapes || most > widest) {
    widest = most < kIllegal / ahead ? most * ahead : kIllegal;
    shapes.emplace(problem, charged, widest);
  }
  size_t total = 0;
  firstOf.clear();
  for (int bucket = 0; bucket <= problem.root(); ++bucket) {
    firstOf.push_back(total);
    total += problem.entries(bucket);
  }
  up.assign(total, {});
  down.assign(total, {});
  items.clear();
  for (int bucket = 0; bucket < problem.root() && isWithin(); ++bucket)
    fillUp(bucket);
  const Item nothing{};
  down[firstOf[problem.root()]] = keep({&nothing, 1});
  for (int bucket = problem.root(); bucket >= 0 && isWithin(); --bucket)
    fillDown(bucket);
  return isWithin();
}

std::vector<Time> LabelMarginals::marginal(int bucket,
                                           const std::vector<bool> &wanted) {
  std::vector<Time> least(problem.strategies(bucket), kIllegal), result = least;
  const std::vector<Shape::Place> &places = shapes->of(bucket).places;
  for (const Shape::Place &place : places)
    least[place.strategy] = std::min(least[place.strategy], costOf(place));
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t strategy = places[i].strategy;
    Time room =
        windowOf(least[strategy]) - (costOf(places[i]) - least[strategy]);
    if (!wanted[strategy] || room < 0)
      continue;
    // Of whole assignments, so no other part needs bytes.
    const Time most = costOf(places[i]) + room + slack;
    combine(bucket, i, room);
    for (const Item &x : current)
      for (const Item &y : downOf(bucket, places[i].position)) {
        ++sums;
        if (x.charge + y.charge > most)
          break;
        if (x.label.additive + y.label.additive +
                std::max(x.label.transient, y.label.transient) <=
            budget)
          result[strategy] =
              std::min(result[strategy], x.label.cost + y.label.cost);
      }
  }
  return result;
}

} // namespace mtp::plan
