// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/ParetoLabels.h"

namespace mtp::plan {

ByteCount bytesOf(const Problem &problem, const MemoryModel &memory,
                  const std::vector<int> &assignment) {
  ByteCount count;
  auto addEntry = [&](const Footprint &footprint, size_t entry) {
    if (!footprint.bytes.empty())
      count.additive += footprint.bytes[entry];
    if (!footprint.transient.empty())
      count.transient = std::max(count.transient, footprint.transient[entry]);
  };
  for (size_t v = 0; v < memory.variables.size(); ++v)
    addEntry(memory.variables[v], size_t(assignment[v]));
  for (size_t i = 0; i < memory.pairs.size(); ++i) {
    const Pair &pair = problem.pairs[i];
    size_t columns = problem.variables[pair.b].unary.size();
    addEntry(memory.pairs[i],
             size_t(assignment[pair.a]) * columns + size_t(assignment[pair.b]));
  }
  return count;
}

void LabelSearch::addBound(Messages &messages, Multiplier multiplier) {
  messages.sendDown();
  bounds.push_back({&messages, multiplier});
}

void LabelSearch::addBytes(Messages &messages) {
  messages.sendDown();
  bytes = &messages;
}

bool LabelSearch::survives(const Label &label, const Rest &rest) const {
  int64_t room =
      budget - std::max(label.transient, floorTransient) - label.additive;
  if (room < rest.bytes)
    return false;
  for (size_t i = 0; i < bounds.size(); ++i)
    if (label.cost + rest.costs[i] - bounds[i].multiplier.of(room) >= limit)
      return false;
  return true;
}

/// Finds the places that cost less than `most` more than the optimum of the
/// last bound.
void LabelSearch::open(Time most) {
  // Passes with larger limits follow, as a rule.
  constexpr Time ahead = 8;
  if (!shapes || most > reach) {
    reach = most < kIllegal / ahead ? most * ahead : kIllegal;
    shapes.emplace(problem, *bounds.back().messages, reach);
  }
  places.clear();
  for (const Shape &shape : shapes->all()) {
    std::vector<uint32_t> &mine = places.emplace_back();
    for (size_t i = 0; i < shape.places.size(); ++i)
      if (shape.places[i].more < most)
        mine.push_back(uint32_t(i));
  }
}

/// Adds what the least of a child's subtree takes to the rest, or takes it
/// away.
void LabelSearch::addRest(int child, size_t position, Time sign) {
  for (size_t i = 0; i < bounds.size(); ++i)
    rest.costs[i] =
        add(rest.costs[i], sign * bounds[i].messages->up(child, position));
  rest.bytes = add(rest.bytes, sign * bytes->up(child, position));
}

/// `sums` of `sums` and a list.
void LabelSearch::combineWith(std::pair<uint32_t, uint32_t> range) {
  next.clear();
  auto take = [&](uint32_t before, uint32_t with) {
    const Label &a = sums[before].label, &b = all[with];
    Label sum{a.cost + b.cost, a.additive + b.additive,
              std::max(a.transient, b.transient)};
    if (survives(sum, rest))
      next.push_back({sum, before, with});
  };
  // Equal layers make the same sums in many ways: what is not best goes early.
  auto keepBest = [&] {
    std::sort(next.begin(), next.end());
    stair.clear();
    std::erase_if(next, [&](const Sum &sum) { return !stair.add(sum.label); });
  };
  size_t most = 1024;
  const bool isOne = sums.size() == 1;
  if (isOne) {
    work += range.second - range.first;
    for (uint32_t with = range.first; with < range.second; ++with)
      take(0, with);
  } else {
    // Charges are rounded down by less than one each.
    const Time dearest = limit - rest.costs.back() + 2 +
                         bounds.back().multiplier.of(budget - floorTransient);
    for (uint32_t before = 0; before < sums.size() && isWithin(); ++before) {
      if (next.size() > most) {
        keepBest();
        most = std::max(most, 2 * next.size());
      }
      const Time charged = chargeOf(sums[before].label);
      for (uint32_t at = range.first; at < range.second; ++at) {
        const auto &[charge, with] = byCharge[at];
        ++work;
        if (charged + charge > dearest)
          break;
        take(before, with);
      }
    }
  }
  keepBest();
  std::swap(sums, next);
}

/// Makes `sums` the labels of the bucket's subtree at a place. `steps` are
/// those after each child.
void LabelSearch::combine(int bucket, size_t index,
                          std::vector<std::vector<Sum>> *steps) {
  const Shape &shape = shapes->of(bucket);
  const Shape::Place &place = shape.places[index];
  const std::vector<int> &children = bounds.back().messages->childrenOf(bucket);
  const size_t *positions = shape.positionsOf(index);
  sums.clear();
  for (size_t c = 0; c < children.size(); ++c) {
    auto [first, last] = rangeOf(children[c], positions[c]);
    if (first == last)
      return;
  }
  for (size_t i = 0; i < bounds.size(); ++i)
    rest.costs[i] = bounds[i].messages->down(bucket, place.position);
  rest.bytes = bytes->down(bucket, place.position);
  for (size_t c = 0; c < children.size(); ++c)
    addRest(children[c], positions[c], 1);
  if (place.own.cost >= kIllegal || !survives(place.own, rest))
    return;
  sums.push_back({place.own});
  for (size_t c = 0; c < children.size() && !sums.empty(); ++c) {
    addRest(children[c], positions[c], -1);
    combineWith(rangeOf(children[c], positions[c]));
    if (steps)
      steps->push_back(sums);
  }
}

void LabelSearch::shorten(std::vector<Label> &list) const {
  if (list.size() <= widest)
    return;
  std::stable_sort(list.begin(), list.end(),
                   [&](const Label &a, const Label &b) {
                     return chargeOf(a) < chargeOf(b);
                   });
  list.resize(widest);
  std::sort(list.begin(), list.end());
}

void LabelSearch::fill(int bucket) {
  uint32_t *start = starts.data() + firstStart[bucket];
  const size_t entries = problem.entries(bucket);
  const Shape &shape = shapes->of(bucket);
  const std::vector<uint32_t> &mine = places[shapes->numberOf(bucket)];
  size_t filled = 0;
  for (size_t i = 0; i < mine.size();) {
    const size_t position = shape.places[mine[i]].position;
    merged.clear();
    bool isSorted = true;
    for (; i < mine.size() && shape.places[mine[i]].position == position; ++i) {
      combine(bucket, mine[i], nullptr);
      isSorted = isSorted && (merged.empty() || sums.empty());
      for (const Sum &sum : sums)
        merged.push_back(sum.label);
    }
    if (merged.empty())
      continue;
    if (!isSorted) {
      std::sort(merged.begin(), merged.end());
      stair.clear();
      std::erase_if(merged,
                    [&](const Label &label) { return !stair.add(label); });
    }
    shorten(merged);
    for (; filled <= position; ++filled)
      start[filled] = uint32_t(all.size());
    const long first = long(all.size());
    for (const Label &label : merged) {
      byCharge.push_back({chargeOf(label), uint32_t(all.size())});
      all.push_back(label);
    }
    std::sort(byCharge.begin() + first, byCharge.end());
  }
  for (; filled <= entries; ++filled)
    start[filled] = uint32_t(all.size());
}

LabelSearch::Outcome LabelSearch::run(Time newLimit, size_t newWidest) {
  limit = newLimit;
  widest = newWidest;
  work = 0;
  all.clear();
  byCharge.clear();
  rest.costs.resize(bounds.size());
  open(limit + bounds.back().multiplier.of(budget - floorTransient) -
       bounds.back().messages->optimum());
  if (firstStart.empty()) {
    size_t total = 0;
    for (int bucket = 0; bucket <= problem.root(); ++bucket) {
      firstStart.push_back(total);
      total += problem.entries(bucket) + 1;
    }
    starts.resize(total);
  }
  for (int bucket = 0; bucket <= problem.root(); ++bucket) {
    fill(bucket);
    if (!isWithin())
      return TooMany;
  }
  auto [first, last] = rangeOf(problem.root(), 0);
  return first == last ? Nothing : Found;
}

/// The way back: each bucket's label is found again among those of its
/// strategies, and with it a label for each child.
std::vector<int> LabelSearch::assignment() {
  std::vector<int> result(problem.sizes.size(), -1);
  std::vector<Label> wanted(problem.tree.buckets.size());
  wanted.back() = all[rangeOf(problem.root(), 0).first];
  for (int index = problem.root(); index >= 0; --index) {
    const Elimination::Bucket &bucket = problem.tree.buckets[index];
    size_t position = 0;
    for (int v : bucket.scope)
      position = position * size_t(problem.sizes[v]) + size_t(result[v]);
    const Shape &shape = shapes->of(index);
    const std::vector<int> &children =
        bounds.back().messages->childrenOf(index);
    for (uint32_t place : places[shapes->numberOf(index)]) {
      if (shape.places[place].position != position)
        continue;
      std::vector<std::vector<Sum>> steps;
      combine(index, place, &steps);
      auto it = std::find_if(sums.begin(), sums.end(), [&](const Sum &sum) {
        return sum.label == wanted[index];
      });
      if (it == sums.end())
        continue;
      size_t at = size_t(it - sums.begin());
      for (size_t c = children.size(); c-- > 0;) {
        const Sum &sum = steps[c][at];
        wanted[children[c]] = all[sum.with];
        at = sum.before;
      }
      if (bucket.variable >= 0)
        result[bucket.variable] = int(shape.places[place].strategy);
      break;
    }
  }
  return result;
}

} // namespace mtp::plan
