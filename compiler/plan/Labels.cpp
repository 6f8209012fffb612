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

std::vector<int> digitsOf(const FoldedProblem &problem, int bucket,
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

size_t offsetOf(const Strides &strides, const std::vector<int> &digits,
                size_t strategy) {
  size_t offset = strategy;
  for (size_t d = 0; d < strides.size(); ++d)
    offset += strides[d] * size_t(digits[d]);
  return offset;
}

Label ownLabel(const FoldedProblem &problem, int index,
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

std::vector<Entry> entriesOf(const Messages &messages, int bucket) {
  std::vector<Entry> entries;
  Time least = kIllegal; // of all entries: it belongs to the optimum
  messages.forEachRow(bucket,
                      [&](size_t position, const std::vector<Time> &row) {
                        Time rest = messages.restTable(bucket)[position];
                        for (size_t x = 0; x < row.size(); ++x)
                          if (Time cost = add(row[x], rest); cost < kIllegal) {
                            least = std::min(least, cost);
                            entries.push_back({position, x, cost});
                          }
                      });
  for (Entry &entry : entries)
    entry.more -= least;
  return entries;
}

} // namespace mtp::plan
