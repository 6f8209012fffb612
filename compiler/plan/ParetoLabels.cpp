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

namespace {

/// Sorts the labels and drops those that another is at most in all three.
void keepBest(std::vector<Label> &labels) {
  std::sort(labels.begin(), labels.end());
  Stair stair;
  labels.erase(
      std::remove_if(labels.begin(), labels.end(),
                     [&](const Label &label) { return !stair.add(label); }),
      labels.end());
}

/// The same, with where they came from.
template <typename Origin>
void keepBest(std::vector<Label> &labels, std::vector<Origin> &origins) {
  std::vector<std::pair<Label, size_t>> order;
  for (size_t i = 0; i < labels.size(); ++i)
    order.push_back({labels[i], i});
  std::sort(order.begin(), order.end());
  Stair stair;
  std::vector<Origin> kept;
  labels.clear();
  for (const auto &[label, from] : order)
    if (stair.add(label)) {
      labels.push_back(label);
      kept.push_back(origins[from]);
    }
  origins = std::move(kept);
}

/// The cheapest label of each number of bytes: equal layers make the same sums
/// in many ways. A hash table with open addressing.
class CheapestByBytes {
public:
  explicit CheapestByBytes(std::vector<Label> &labels) : labels(labels) {}

  /// Where the label was put, or -1 if one that is as cheap is there.
  int64_t add(const Label &label) {
    if (2 * labels.size() >= slots.size())
      grow();
    uint32_t &slot = slotOf(label);
    if (!slot) {
      labels.push_back(label);
      slot = uint32_t(labels.size());
      return int64_t(slot) - 1;
    }
    Label &known = labels[slot - 1];
    if (known.cost <= label.cost)
      return -1;
    known = label;
    return int64_t(slot) - 1;
  }

private:
  uint32_t &slotOf(const Label &label) {
    uint64_t hash = uint64_t(label.additive) * 0x9e3779b97f4a7c15 ^
                    uint64_t(label.transient) * 0xbf58476d1ce4e5b9;
    size_t at = (hash ^ hash >> 32) & (slots.size() - 1);
    while (slots[at] && (labels[slots[at] - 1].additive != label.additive ||
                         labels[slots[at] - 1].transient != label.transient))
      at = (at + 1) & (slots.size() - 1);
    return slots[at];
  }
  void grow() {
    slots.assign(slots.empty() ? 32 : 4 * slots.size(), 0);
    for (size_t i = 0; i < labels.size(); ++i)
      slotOf(labels[i]) = uint32_t(i + 1);
  }

  std::vector<Label> &labels;
  std::vector<uint32_t> slots; ///< index + 1; 0: free
};

} // namespace

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

/// Buckets with equal messages around them have the same ones.
const std::vector<Entry> &LabelSearch::entriesAt(int bucket) {
  const Messages &messages = *bounds.back().messages;
  auto [it, isNew] =
      entries.try_emplace({messages.kindOf(bucket), messages.restOf(bucket)});
  if (isNew)
    it->second = entriesOf(messages, bucket);
  return it->second;
}

/// Positions and strategies of a bucket that the last bound leaves.
const LabelSearch::Open &LabelSearch::openOf(int bucket) {
  const Bound &bound = bounds.back();
  const Messages &messages = *bound.messages;
  auto [it, isNew] =
      open.try_emplace({messages.kindOf(bucket), messages.restOf(bucket)});
  if (!isNew)
    return it->second;
  Time most =
      limit + bound.multiplier.of(budget - floorTransient) - messages.optimum();
  for (const Entry &entry : entriesAt(bucket))
    if (entry.more < most)
      it->second.push_back({entry.position, entry.strategy});
  return it->second;
}

/// Labels of the bucket's subtree beside a position, with one strategy. With
/// `origins`, for each child and label where the label came from.
std::vector<Label>
LabelSearch::combine(const Place &place,
                     std::vector<std::vector<Origin>> *origins) {
  const Elimination::Bucket &bucket = problem.tree.buckets[place.bucket];
  std::vector<int> digits = digitsOf(problem, place.bucket, place.position);
  std::vector<size_t> positions;
  Rest rest;
  for (const Bound &bound : bounds)
    rest.costs.push_back(bound.messages->down(place.bucket, place.position));
  rest.bytes = bytes->down(place.bucket, place.position);
  for (int child : bucket.children) {
    positions.push_back(
        offsetOf(problem.messageStrides[child], digits, place.strategy));
    size_t position = positions.back();
    if (lists[child].start[position] == lists[child].start[position + 1])
      return {};
    for (size_t i = 0; i < bounds.size(); ++i)
      rest.costs[i] =
          add(rest.costs[i], bounds[i].messages->up(child, position));
    rest.bytes = add(rest.bytes, bytes->up(child, position));
  }
  std::vector<Label> current{
      ownLabel(problem, place.bucket, digits, place.strategy)};
  if (current[0].cost >= kIllegal || !survives(current[0], rest))
    return {};
  for (size_t c = 0; c < bucket.children.size(); ++c) {
    int child = bucket.children[c];
    for (size_t i = 0; i < bounds.size(); ++i)
      rest.costs[i] -= bounds[i].messages->up(child, positions[c]);
    rest.bytes -= bytes->up(child, positions[c]);
    const Lists &list = lists[child];
    size_t first = list.start[positions[c]],
           last = list.start[positions[c] + 1];
    std::vector<Label> next;
    std::vector<Origin> from;
    CheapestByBytes cheapest(next);
    // Charges are rounded down by less than one each.
    const Time most = limit - rest.costs.back() + 2 +
                      bounds.back().multiplier.of(budget - floorTransient);
    for (size_t i = 0; i < current.size(); ++i) {
      const Time charged = chargeOf(current[i]);
      for (size_t j = first; j < last; ++j) {
        const auto &[charge, index] = list.byCharge[j];
        ++work;
        if (charged + charge > most)
          break;
        const Label &other = list.labels[index];
        Label sum{current[i].cost + other.cost,
                  current[i].additive + other.additive,
                  std::max(current[i].transient, other.transient)};
        if (!survives(sum, rest))
          continue;
        int64_t place = cheapest.add(sum);
        if (!origins || place < 0)
          continue;
        from.resize(next.size());
        from[size_t(place)] = {int(i), int(index)};
      }
    }
    if (origins) {
      keepBest(next, from);
      origins->push_back(std::move(from));
    } else {
      keepBest(next);
    }
    current = std::move(next);
    if (current.empty())
      break;
  }
  return current;
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
  Lists &mine = lists[bucket];
  size_t entries = problem.entries(bucket);
  mine.start.assign(entries + 1, 0);
  const Open &places = openOf(bucket);
  size_t filled = 0;
  for (size_t i = 0; i < places.size();) {
    size_t position = places[i].first;
    std::vector<Label> all;
    for (; i < places.size() && places[i].first == position; ++i) {
      std::vector<Label> some =
          combine({bucket, position, places[i].second}, nullptr);
      all.insert(all.end(), some.begin(), some.end());
    }
    if (all.empty())
      continue;
    keepBest(all);
    shorten(all);
    for (; filled <= position; ++filled)
      mine.start[filled] = mine.labels.size();
    size_t first = mine.labels.size();
    for (const Label &label : all) {
      mine.byCharge.push_back({chargeOf(label), mine.labels.size()});
      mine.labels.push_back(label);
    }
    std::sort(mine.byCharge.begin() + long(first), mine.byCharge.end());
  }
  for (; filled <= entries; ++filled)
    mine.start[filled] = mine.labels.size();
  labels += int64_t(mine.labels.size());
}

LabelSearch::Outcome LabelSearch::run(Time newLimit, size_t newWidest) {
  limit = newLimit;
  widest = newWidest;
  labels = work = 0;
  open.clear();
  lists.assign(problem.tree.buckets.size(), {});
  constexpr int64_t mostSumsPerLabel = 64;
  for (int bucket = 0; bucket <= problem.root(); ++bucket) {
    fill(bucket);
    if (labels > labelLimit || work / mostSumsPerLabel > labelLimit)
      return TooMany;
  }
  return lists.back().labels.empty() ? Nothing : Found;
}

/// The way back: each bucket's label is found again among those of its
/// strategies, and with it a label for each child.
std::vector<int> LabelSearch::assignment() {
  std::vector<int> result(problem.sizes.size(), -1);
  std::vector<Label> wanted(problem.tree.buckets.size());
  wanted.back() = lists.back().labels.front();
  for (int index = problem.root(); index >= 0; --index) {
    const Elimination::Bucket &bucket = problem.tree.buckets[index];
    size_t position = 0;
    for (int v : bucket.scope)
      position = position * size_t(problem.sizes[v]) + size_t(result[v]);
    const Open &places = openOf(index);
    auto place = std::lower_bound(places.begin(), places.end(),
                                  std::pair(position, size_t(0)));
    for (; place != places.end() && place->first == position; ++place) {
      std::vector<std::vector<Origin>> origins;
      std::vector<Label> found =
          combine({index, position, place->second}, &origins);
      auto it = std::find_if(found.begin(), found.end(), [&](const Label &l) {
        return l == wanted[index];
      });
      if (it == found.end())
        continue;
      int label = int(it - found.begin());
      for (size_t c = bucket.children.size(); c-- > 0;) {
        Origin origin = origins[c][label];
        wanted[bucket.children[c]] =
            lists[bucket.children[c]].labels[origin.label];
        label = origin.before;
      }
      if (bucket.variable >= 0)
        result[bucket.variable] = int(place->second);
      break;
    }
  }
  return result;
}

} // namespace mtp::plan
