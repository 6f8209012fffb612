// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Fold.h"

#include <algorithm>

namespace mtp::plan {
namespace {

uint64_t hashOf(const std::vector<int64_t> &words, uint64_t state) {
  for (int64_t word : words) {
    state = (state ^ uint64_t(word)) * 0x9e3779b97f4a7c15;
    state ^= state >> 29;
  }
  return state * 31 + words.size();
}

/// Numbers tables by content.
class TableNumbers {
public:
  explicit TableNumbers(std::vector<FoldedProblem::Table> &tables)
      : tables(tables) {}

  int numberOf(FoldedProblem::Table table) {
    uint64_t hash = hashOf(table.cost, 1);
    hash = hashOf(table.footprint.bytes, hash);
    hash = hashOf(table.footprint.transient, hash);
    auto [first, last] = known.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      const FoldedProblem::Table &other = tables[it->second];
      if (other.cost == table.cost &&
          other.footprint.bytes == table.footprint.bytes &&
          other.footprint.transient == table.footprint.transient)
        return it->second;
    }
    known.emplace(hash, int(tables.size()));
    tables.push_back(std::move(table));
    return int(tables.size()) - 1;
  }

private:
  std::vector<FoldedProblem::Table> &tables;
  std::unordered_multimap<uint64_t, int> known;
};

/// A table over (a, b) as one over (b, a).
std::vector<int64_t> transposed(const std::vector<int64_t> &table, size_t rows,
                                size_t columns) {
  std::vector<int64_t> result(table.size());
  for (size_t i = 0; !table.empty() && i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      result[j * rows + i] = table[i * columns + j];
  return result;
}

/// Subtracts the least legal entry and returns it.
Time normalize(std::vector<Time> &table) {
  Time least = *std::min_element(table.begin(), table.end());
  if (least == 0 || least >= kIllegal)
    return least;
  for (Time &entry : table)
    if (entry < kIllegal)
      entry -= least;
  return least;
}

} // namespace

FoldedProblem::FoldedProblem(const Problem &problem, const MemoryModel &memory,
                             Elimination given)
    : tree(std::move(given)) {
  TableNumbers unaryNumbers(unary), pairNumbers(pairs);
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    sizes.push_back(int(problem.variables[v].unary.size()));
    unaryOf.push_back(unaryNumbers.numberOf(
        {problem.variables[v].unary,
         memory.variables.empty() ? Footprint() : memory.variables[v]}));
  }
  for (size_t i = 0; i < problem.pairs.size(); ++i) {
    const Pair &pair = problem.pairs[i];
    Table table{pair.table,
                memory.pairs.empty() ? Footprint() : memory.pairs[i]};
    if (tree.rankOf[pair.a] < tree.rankOf[pair.b]) {
      size_t rows = size_t(sizes[pair.a]), columns = size_t(sizes[pair.b]);
      table.cost = transposed(table.cost, rows, columns);
      table.footprint.bytes = transposed(table.footprint.bytes, rows, columns);
      table.footprint.transient =
          transposed(table.footprint.transient, rows, columns);
    }
    pairOf.push_back(pairNumbers.numberOf(std::move(table)));
  }
  auto place = [&](const Elimination::Bucket &bucket, int variable) {
    return std::find(bucket.scope.begin(), bucket.scope.end(), variable) -
           bucket.scope.begin();
  };
  pairStrides.resize(problem.pairs.size());
  messageStrides.resize(tree.buckets.size());
  for (const Elimination::Bucket &bucket : tree.buckets) {
    for (int pair : bucket.pairs) {
      const Pair &given = problem.pairs[pair];
      int other = given.a == bucket.variable ? given.b : given.a;
      pairStrides[pair].assign(bucket.scope.size(), 0);
      pairStrides[pair][place(bucket, other)] = size_t(sizes[bucket.variable]);
    }
    for (int child : bucket.children) {
      Strides &strides = messageStrides[child];
      strides.assign(bucket.scope.size(), 0);
      const std::vector<int> &scope = tree.buckets[child].scope;
      if (scope.empty())
        continue;
      size_t stride = size_t(sizes[bucket.variable]);
      for (size_t i = scope.size() - 1; i-- > 0;) {
        strides[place(bucket, scope[i])] = stride;
        stride *= size_t(sizes[scope[i]]);
      }
    }
  }
}

size_t FoldedProblem::entries(int bucket) const {
  size_t total = 1;
  for (int v : tree.buckets[bucket].scope)
    total *= size_t(sizes[v]);
  return total;
}

Messages::Messages(const FoldedProblem &problem, Weights given)
    : problem(problem), weights(std::move(given)) {
  size_t count = problem.tree.buckets.size();
  upOf.resize(count);
  upOffset.resize(count);
  kind.resize(count);
  children.resize(count);
  std::map<std::vector<int>, int> known;
  std::vector<std::pair<int, Time>> made; // by kind: table, least entry
  for (size_t bucket = 0; bucket < count && dead < 0; ++bucket) {
    auto [it, isNew] = known.try_emplace(keyOf(int(bucket)), int(made.size()));
    kind[bucket] = it->second;
    if (isNew) {
      std::vector<Time> table = message(int(bucket));
      Time least = normalize(table);
      if (least >= kIllegal)
        dead = int(bucket);
      made.push_back({numberOf(std::move(table)), least});
    }
    upOf[bucket] = made[kind[bucket]].first;
    upOffset[bucket] = made[kind[bucket]].second;
    for (int child : children[bucket])
      upOffset[bucket] = add(upOffset[bucket], upOffset[child]);
  }
}

/// Messages of equal content have one number, whatever they came from.
int Messages::numberOf(std::vector<Time> table) {
  uint64_t hash = hashOf(table, 1);
  auto [first, last] = byContent.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (tables[it->second] == table)
      return it->second;
  byContent.emplace(hash, int(tables.size()));
  tables.push_back(std::move(table));
  return int(tables.size()) - 1;
}

/// What the bucket's message follows from; also sorts its children.
std::vector<int> Messages::keyOf(int index) {
  const Elimination::Bucket &bucket = problem.tree.buckets[index];
  std::vector<int> key{bucket.variable < 0 ? -1
                                           : problem.unaryOf[bucket.variable]};
  for (int v : bucket.scope)
    key.push_back(problem.sizes[v]);
  std::vector<std::vector<int>> parts;
  for (int pair : bucket.pairs) {
    parts.push_back({0, problem.pairOf[pair]});
    for (size_t stride : problem.pairStrides[pair])
      parts.back().push_back(int(stride));
  }
  std::sort(parts.begin(), parts.end());
  for (const std::vector<int> &part : parts)
    key.insert(key.end(), part.begin(), part.end());
  children[index] = bucket.children;
  std::stable_sort(children[index].begin(), children[index].end(),
                   [&](int a, int b) {
                     return std::tie(upOf[a], problem.messageStrides[a]) <
                            std::tie(upOf[b], problem.messageStrides[b]);
                   });
  for (int child : children[index]) {
    key.push_back(1);
    key.push_back(upOf[child]);
    for (size_t stride : problem.messageStrides[child])
      key.push_back(int(stride));
  }
  return key;
}

std::vector<Messages::Factor> Messages::factorsOf(int index) const {
  static const Strides none;
  const Elimination::Bucket &bucket = problem.tree.buckets[index];
  std::vector<Factor> factors;
  if (bucket.variable >= 0)
    factors.push_back(
        {weights.unary[problem.unaryOf[bucket.variable]].data(), &none});
  for (int pair : bucket.pairs)
    factors.push_back({weights.pairs[problem.pairOf[pair]].data(),
                       &problem.pairStrides[pair]});
  for (int child : children[index])
    factors.push_back(
        {tables[upOf[child]].data(), &problem.messageStrides[child]});
  return factors;
}

/// Walks the neighbours' assignments depth first and keeps, at each depth, the
/// sum of the tables that are fixed so far as one row over the bucket's
/// variable. What has no legal entry left is not walked.
void Messages::forEachRow(int index, const Visit &visit) const {
  const std::vector<int> &scope = problem.tree.buckets[index].scope;
  const size_t depth = scope.size(), strategies = problem.strategies(index);
  std::vector<Factor> factors = factorsOf(index);
  std::vector<size_t> below(depth + 1, 1);
  for (size_t d = depth; d-- > 0;)
    below[d] = below[d + 1] * size_t(problem.sizes[scope[d]]);

  // ready[d]: factors whose last neighbour is d.
  std::vector<std::vector<size_t>> ready(depth);
  std::vector<Time> base(strategies, 0);
  for (size_t f = 0; f < factors.size(); ++f) {
    size_t last = factors[f].strides->size();
    while (last > 0 && (*factors[f].strides)[last - 1] == 0)
      --last;
    if (last > 0)
      ready[last - 1].push_back(f);
    else
      for (size_t x = 0; x < strategies; ++x)
        base[x] = add(base[x], factors[f].entries[x]);
  }

  std::vector<std::vector<Time>> rows(depth + 1, base);
  std::vector<std::vector<size_t>> offsets(
      depth + 1, std::vector<size_t>(factors.size(), 0));
  auto descend = [&](auto &&self, size_t d, size_t position) -> void {
    if (d == depth) {
      visit(position, rows[d]);
      return;
    }
    for (size_t x = 0; x < size_t(problem.sizes[scope[d]]); ++x) {
      for (size_t f = 0; f < factors.size(); ++f)
        if (!factors[f].strides->empty())
          offsets[d + 1][f] = offsets[d][f] + x * (*factors[f].strides)[d];
      const Time *above = rows[d].data();
      Time *row = rows[d + 1].data();
      // One pass for each factor: this takes most of the time.
      Time least = ready[d].empty() ? 0 : kIllegal;
      if (ready[d].empty())
        std::copy(above, above + strategies, row);
      for (size_t f : ready[d]) {
        const Time *entries = factors[f].entries + offsets[d + 1][f];
        least = kIllegal;
        for (size_t s = 0; s < strategies; ++s) {
          row[s] = add(above[s], entries[s]);
          least = std::min(least, row[s]);
        }
        above = row;
      }
      if (least < kIllegal)
        self(self, d + 1, position + x * below[d + 1]);
    }
  };
  descend(descend, 0, 0);
}

std::vector<Time> Messages::message(int index) const {
  std::vector<Time> result(problem.entries(index), kIllegal);
  forEachRow(index, [&](size_t position, const std::vector<Time> &row) {
    result[position] = *std::min_element(row.begin(), row.end());
  });
  return result;
}

std::vector<Time> Messages::row(int index,
                                const std::vector<int> &assignment) const {
  const std::vector<int> &scope = problem.tree.buckets[index].scope;
  std::vector<Time> costs(problem.strategies(index), 0);
  for (const Factor &factor : factorsOf(index)) {
    size_t offset = 0;
    for (size_t d = 0; d < factor.strides->size(); ++d)
      offset += (*factor.strides)[d] * size_t(assignment[scope[d]]);
    for (size_t x = 0; x < costs.size(); ++x)
      costs[x] = add(costs[x], factor.entries[offset + x]);
  }
  return costs;
}

std::vector<int> Messages::assignment() const {
  std::vector<int> result(problem.sizes.size(), -1);
  for (int bucket = problem.root(); bucket-- > 0;) {
    std::vector<Time> costs = row(bucket, result);
    result[problem.tree.buckets[bucket].variable] =
        int(std::min_element(costs.begin(), costs.end()) - costs.begin());
  }
  return result;
}

/// With joint = tables of b + down(b):
///
///   down(child) = min of joint over what the child doesn't see, less the
///                 child's own message
void Messages::sendDown() {
  if (!downOf.empty())
    return;
  size_t count = problem.tree.buckets.size();
  downOf.assign(count, -1);
  downOffset.assign(count, 0);
  downOf[problem.root()] = numberOf({0});
  std::map<std::pair<int, int>, std::vector<std::pair<int, Time>>> known;
  for (size_t bucket = count; bucket-- > 0;) {
    auto [it, isNew] = known.try_emplace({kind[bucket], downOf[bucket]}, 0);
    if (isNew)
      it->second = messagesDown(int(bucket));
    Time all = downOffset[bucket];
    for (int child : children[bucket])
      all = add(all, upOffset[child]);
    for (size_t i = 0; i < children[bucket].size(); ++i) {
      int child = children[bucket][i];
      downOf[child] = it->second[i].first;
      downOffset[child] = it->second[i].second + all - upOffset[child];
    }
  }
}

std::vector<Time> Messages::marginal(int bucket) const {
  std::vector<Time> result(problem.strategies(bucket), kIllegal);
  const std::vector<Time> &rest = tables[downOf[bucket]];
  forEachRow(bucket, [&](size_t position, const std::vector<Time> &row) {
    for (size_t x = 0; x < row.size(); ++x)
      result[x] = std::min(result[x], add(row[x], rest[position]));
  });
  // Whatever the offsets are, the least of these is the optimum.
  normalize(result);
  for (Time &cost : result)
    cost = add(cost, optimum());
  return result;
}

/// To each child: the number of the table and what was taken from it.
std::vector<std::pair<int, Time>> Messages::messagesDown(int index) {
  const Elimination::Bucket &bucket = problem.tree.buckets[index];
  const std::vector<int> &sorted = children[index];
  std::vector<std::vector<Time>> down;
  for (int child : sorted)
    down.emplace_back(problem.entries(child), kIllegal);
  const std::vector<Time> mine = tables[downOf[index]];
  std::vector<size_t> digits(bucket.scope.size());
  forEachRow(index, [&](size_t position, const std::vector<Time> &row) {
    if (mine[position] >= kIllegal)
      return;
    size_t rest = position;
    for (size_t d = digits.size(); d-- > 0;) {
      size_t size = size_t(problem.sizes[bucket.scope[d]]);
      digits[d] = rest % size;
      rest /= size;
    }
    for (size_t i = 0; i < sorted.size(); ++i) {
      const Strides &strides = problem.messageStrides[sorted[i]];
      const std::vector<Time> &up = tables[upOf[sorted[i]]];
      size_t offset = 0;
      for (size_t d = 0; d < digits.size(); ++d)
        offset += strides[d] * digits[d];
      for (size_t x = 0; x < row.size(); ++x)
        if (row[x] < kIllegal) {
          Time &entry = down[i][offset + x];
          entry = std::min(entry, row[x] + mine[position] - up[offset + x]);
        }
    }
  });
  std::vector<std::pair<int, Time>> result;
  for (std::vector<Time> &table : down) {
    Time least = normalize(table);
    result.push_back({numberOf(std::move(table)), least});
  }
  return result;
}

} // namespace mtp::plan
