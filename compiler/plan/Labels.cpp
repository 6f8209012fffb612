// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Labels.h"

namespace mtp::plan {

bool Stair::add(const Label &label) {
  auto after = std::upper_bound(
      steps.begin(), steps.end(), label.additive,
      [](int64_t bytes, const Step &step) { return bytes < step.first; });
  if (after != steps.begin() && std::prev(after)->second <= label.transient)
    return false;
  auto last = after;
  while (last != steps.end() && last->second >= label.transient)
    ++last;
  if (after != steps.begin() && std::prev(after)->first == label.additive)
    --after;
  after = steps.erase(after, last);
  steps.insert(after, {label.additive, label.transient});
  return true;
}

template <typename Cost>
static Weights weigh(const FoldedProblem &folded, int64_t cap, Cost cost) {
  auto one = [&](const FoldedProblem::Table &table) {
    const Footprint &footprint = table.footprint;
    std::vector<Time> result(table.cost.size(), kIllegal);
    for (size_t i = 0; i < result.size(); ++i)
      if (table.cost[i] < kIllegal &&
          (footprint.transient.empty() || footprint.transient[i] <= cap))
        result[i] = cost(table.cost[i],
                         footprint.bytes.empty() ? 0 : footprint.bytes[i]);
    return result;
  };
  Weights weights;
  for (const FoldedProblem::Table &table : folded.unary)
    weights.unary.push_back(one(table));
  for (const FoldedProblem::Table &table : folded.pairs)
    weights.pairs.push_back(one(table));
  return weights;
}

Weights charge(const FoldedProblem &folded, Multiplier multiplier,
               int64_t cap) {
  return weigh(folded, cap, [&](Time cost, int64_t bytes) {
    return add(cost, multiplier.of(bytes));
  });
}

Weights bytesOnly(const FoldedProblem &folded, int64_t cap) {
  return weigh(folded, cap, [](Time, int64_t bytes) { return bytes; });
}

/// The assignment of a bucket's scope at a position of its tables.
static std::vector<int> digitsOf(const FoldedProblem &problem, int bucket,
                                 size_t position) {
  const std::vector<int> &scope = problem.tree.buckets[bucket].scope;
  std::vector<int> digits(scope.size());
  for (size_t d = digits.size(); d-- > 0;) {
    size_t size = size_t(problem.sizes[scope[d]]);
    digits[d] = int(position % size);
    position /= size;
  }
  return digits;
}

/// Where the entry of an assignment and a strategy is in a table.
static size_t offsetOf(const Strides &strides, const std::vector<int> &digits,
                       size_t strategy) {
  size_t offset = strategy;
  for (size_t d = 0; d < strides.size(); ++d)
    offset += strides[d] * size_t(digits[d]);
  return offset;
}

/// The bucket's own tables beside an assignment of its scope.
static Label ownLabel(const FoldedProblem &problem, int index,
                      const std::vector<int> &digits, size_t strategy) {
  const Elimination::Bucket &bucket = problem.tree.buckets[index];
  Label label;
  auto count = [&](const FoldedProblem::Table &table, size_t entry) {
    label.cost = add(label.cost, table.cost[entry]);
    if (!table.footprint.bytes.empty())
      label.additive += table.footprint.bytes[entry];
    if (!table.footprint.transient.empty())
      label.transient =
          std::max(label.transient, table.footprint.transient[entry]);
  };
  if (bucket.variable >= 0)
    count(problem.unary[problem.unaryOf[bucket.variable]], strategy);
  for (int pair : bucket.pairs)
    count(problem.pairs[problem.pairOf[pair]],
          offsetOf(problem.pairStrides[pair], digits, strategy));
  return label;
}

static Shape shapeOf(const FoldedProblem &problem, const Messages &messages,
                     int bucket, Time most) {
  Shape shape;
  Time least = kIllegal; // of all entries: it belongs to the optimum
  messages.forEachRow(bucket,
                      [&](size_t position, const std::vector<Time> &row) {
                        Time rest = messages.restTable(bucket)[position];
                        for (size_t x = 0; x < row.size(); ++x) {
                          Time cost = add(row[x], rest);
                          if (cost >= kIllegal)
                            continue;
                          least = std::min(least, cost);
                          if (cost - least <= most)
                            shape.places.push_back({position, x, cost, {}});
                        }
                      });
  std::erase_if(shape.places, [&](Shape::Place &place) {
    place.more -= least;
    return place.more > most;
  });
  const std::vector<int> &children = messages.childrenOf(bucket);
  shape.children = children.size();
  for (Shape::Place &place : shape.places) {
    std::vector<int> digits = digitsOf(problem, bucket, place.position);
    place.own = ownLabel(problem, bucket, digits, place.strategy);
    for (int child : children)
      shape.childPositions.push_back(
          offsetOf(problem.messageStrides[child], digits, place.strategy));
  }
  return shape;
}

Shapes::Shapes(const FoldedProblem &problem, const Messages &messages,
               Time most) {
  std::map<std::pair<int, int>, int> known;
  for (int bucket = 0; bucket <= problem.root(); ++bucket) {
    auto [it, isNew] = known.try_emplace(
        {messages.kindOf(bucket), messages.restOf(bucket)}, int(shapes.size()));
    if (isNew)
      shapes.push_back(shapeOf(problem, messages, bucket, most));
    numbers.push_back(it->second);
  }
}

} // namespace mtp::plan
