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

/// The two searches share the tree and the numbered tables.
class ParetoSolver::Search {
public:
  Search(Problem given, MemoryModel bytes, int64_t budget,
         ParetoOptions options)
      : problem(std::move(given)), memory(std::move(bytes)), budget(budget),
        options(options) {}

  ParetoResult solve();
  ParetoResult least();
  SolverError failure;

private:
  struct Point {
    std::vector<int> assignment;
    Time cost = kIllegal;
    ByteCount bytes;
  };

  bool prepare();
  bool checkMemory();
  Point pointOf(const Messages &messages) const;
  /// Of cost + multiplier x bytes. Strategies with more transient bytes than
  /// `cap` are illegal.
  Weights charge(Multiplier multiplier, int64_t cap) const;
  Weights bytesOnly(int64_t cap) const;
  void ascend(int64_t cap, const Point &cheapest, const Point &smallest);
  void offer(const Point &point);
  ParetoResult resultOf(const Point &point, ParetoResult::Status status) const;

  Problem problem;
  MemoryModel memory;
  int64_t budget;
  ParetoOptions options;
  std::vector<std::vector<int>> original;
  std::unique_ptr<FoldedProblem> folded;
  std::vector<int64_t> transients; ///< that occur, increasing
  int64_t floorTransient = 0;      ///< no assignment has less
  Multiplier largest;              ///< no sum of charges overflows
  Time bound = 0;                  ///< no assignment that fits costs less
  Multiplier best;                 ///< whose bound that is
  Point known;                     ///< cheapest that fits, so far
};

bool ParetoSolver::Search::checkMemory() {
  auto fail = [&](std::string message) {
    failure = {SolverError::Malformed, std::move(message), {}};
    return false;
  };
  constexpr int64_t most = int64_t(1) << 60;
  int64_t total = 0;
  auto sound = [&](const Footprint &footprint, size_t entries) {
    for (const std::vector<int64_t> *list :
         {&footprint.bytes, &footprint.transient}) {
      if (!list->empty() && list->size() != entries)
        return false;
      int64_t peak = 0;
      for (int64_t bytes : *list) {
        if (bytes < 0 || bytes > most)
          return false;
        peak = std::max(peak, bytes);
      }
      if (__builtin_add_overflow(total, peak, &total) || total > most)
        return false;
    }
    return true;
  };
  if (!memory.variables.empty() &&
      memory.variables.size() != problem.variables.size())
    return fail("bytes are given for another number of variables");
  if (!memory.pairs.empty() && memory.pairs.size() != problem.pairs.size())
    return fail("bytes are given for another number of tables");
  for (size_t v = 0; v < memory.variables.size(); ++v)
    if (!sound(memory.variables[v], problem.variables[v].unary.size()))
      return fail("the bytes of '" + problem.variables[v].name +
                  "' are malformed or more than 2^60 in sum");
  for (size_t i = 0; i < memory.pairs.size(); ++i)
    if (!sound(memory.pairs[i], problem.pairs[i].table.size()))
      return fail("the bytes of '" +
                  problem.variables[problem.pairs[i].a].name + "' and '" +
                  problem.variables[problem.pairs[i].b].name +
                  "' are malformed or more than 2^60 in sum");
  // The sum of all charges stays below 2^60, so it is told from kIllegal.
  largest = Multiplier::atMost(most, std::max<int64_t>(total, 1));
  return true;
}

bool ParetoSolver::Search::prepare() {
  if (folded)
    return true;
  if (auto malformed = findMalformed(problem)) {
    failure = std::move(*malformed);
    return false;
  }
  if (!checkMemory())
    return false;
  if (options.tables.prune)
    removeDominated(problem, memory);
  original = dropIllegal(problem, memory);
  auto tree = eliminate(problem, options.tables, failure);
  if (!tree)
    return false;
  folded = std::make_unique<FoldedProblem>(problem, memory, std::move(*tree));

  // An assignment has an entry of every table.
  transients.push_back(0);
  auto collect = [&](const FoldedProblem::Table &table) {
    const std::vector<int64_t> &list = table.footprint.transient;
    if (list.empty())
      return;
    transients.insert(transients.end(), list.begin(), list.end());
    floorTransient =
        std::max(floorTransient, *std::min_element(list.begin(), list.end()));
  };
  for (const FoldedProblem::Table &table : folded->unary)
    collect(table);
  for (const FoldedProblem::Table &table : folded->pairs)
    collect(table);
  std::sort(transients.begin(), transients.end());
  transients.erase(std::unique(transients.begin(), transients.end()),
                   transients.end());
  transients.erase(
      transients.begin(),
      std::lower_bound(transients.begin(), transients.end(), floorTransient));
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

Weights ParetoSolver::Search::charge(Multiplier multiplier, int64_t cap) const {
  return weigh(*folded, cap, [&](Time cost, int64_t bytes) {
    return add(cost, multiplier.of(bytes));
  });
}

Weights ParetoSolver::Search::bytesOnly(int64_t cap) const {
  return weigh(*folded, cap, [](Time, int64_t bytes) { return bytes; });
}

ParetoSolver::Search::Point
ParetoSolver::Search::pointOf(const Messages &messages) const {
  Point point;
  point.assignment = messages.assignment();
  point.cost = costOf(problem, point.assignment);
  point.bytes = bytesOf(problem, memory, point.assignment);
  return point;
}

ParetoResult ParetoSolver::Search::resultOf(const Point &point,
                                            ParetoResult::Status status) const {
  ParetoResult result;
  result.status = status;
  result.cost = point.cost;
  result.bytes = point.bytes;
  for (size_t v = 0; v < point.assignment.size(); ++v)
    result.assignment.push_back(original[v][point.assignment[v]]);
  return result;
}

void ParetoSolver::Search::offer(const Point &point) {
  if (point.bytes.total() <= budget &&
      (point.cost < known.cost ||
       (point.cost == known.cost && point.bytes.total() < known.bytes.total())))
    known = point;
}

/// Additive bytes fall as more transient bytes are allowed, so an interval
/// (low, high) of allowed transients needs at least additive(high) + low. The
/// interval with the least such bound is halved until it is one value.
ParetoResult ParetoSolver::Search::least() {
  if (!prepare())
    return {};
  struct Interval {
    int64_t bound;
    size_t low, high; ///< into transients
    bool operator<(const Interval &other) const {
      return std::tie(bound, low) < std::tie(other.bound, other.low);
    }
  };
  Point smallest;
  std::set<Interval> open;
  auto push = [&](size_t low, size_t high) {
    Messages messages(*folded, bytesOnly(transients[high]));
    if (messages.deadEnd() >= 0) {
      if (high + 1 == transients.size())
        failure = infeasible(problem, folded->tree, messages.deadEnd());
      return;
    }
    Point point = pointOf(messages);
    if (smallest.assignment.empty() ||
        point.bytes.total() < smallest.bytes.total())
      smallest = point;
    open.insert({messages.optimum() + transients[low], low, high});
  };
  push(0, transients.size() - 1);
  bool any = !open.empty();
  while (!open.empty()) {
    Interval interval = *open.begin();
    open.erase(open.begin());
    if (interval.bound >= smallest.bytes.total() ||
        interval.low == interval.high)
      continue;
    size_t middle = (interval.low + interval.high) / 2;
    push(interval.low, middle);
    push(middle + 1, interval.high);
  }
  if (!any)
    return {};
  ParetoResult result = resultOf(smallest, ParetoResult::Optimal);
  result.bound = 0;
  return result;
}

/// The Lagrangian dual by secants: the multiplier at which the cheapest plan
/// found and the smallest one cost the same; either becomes the plan that is
/// least there.
void ParetoSolver::Search::ascend(int64_t cap, const Point &cheapest,
                                  const Point &smallest) {
  const int64_t room = budget - floorTransient;
  Point above = cheapest, below = smallest; // more bytes than room, fewer
  std::set<int64_t> tried;
  constexpr int mostSteps = 64;
  for (int step = 0; step < mostSteps; ++step) {
    if (above.bytes.additive <= below.bytes.additive)
      return;
    Multiplier multiplier = Multiplier::ratio(
        below.cost - above.cost, above.bytes.additive - below.bytes.additive);
    multiplier = std::min(std::max(multiplier, Multiplier{1}), largest);
    if (!tried.insert(multiplier.parts).second)
      return;
    Messages messages(*folded, charge(multiplier, cap));
    if (messages.optimum() >= kIllegal)
      return;
    Time dual = messages.optimum() - multiplier.of(room);
    if (dual > bound) {
      bound = dual;
      best = multiplier;
    }
    Point point = pointOf(messages);
    offer(point);
    (point.bytes.additive > room ? above : below) = std::move(point);
  }
}

ParetoResult ParetoSolver::Search::solve() {
  if (!prepare())
    return {};
  Messages free(*folded, charge({}, INT64_MAX));
  if (free.deadEnd() >= 0) {
    failure = infeasible(problem, folded->tree, free.deadEnd());
    return {};
  }
  Point cheapest = pointOf(free);
  known = {};
  bound = cheapest.cost;
  best = {};
  auto finish = [&](ParetoResult::Status status) {
    ParetoResult result = resultOf(known, status);
    result.bound = status == ParetoResult::Optimal ? known.cost : bound;
    result.multiplier = best.parts;
    result.unconstrained = cheapest.cost;
    return result;
  };
  offer(cheapest);
  if (!known.assignment.empty())
    return finish(ParetoResult::Optimal);

  ParetoResult smallest = least();
  if (smallest.bytes.total() > budget) {
    smallest.status = ParetoResult::Infeasible;
    smallest.unconstrained = cheapest.cost;
    return smallest;
  }
  // No plan has less additive bytes than that, so none may have more than the
  // rest of the budget as transient ones.
  Messages fewest(*folded, bytesOnly(INT64_MAX));
  const int64_t cap = budget - fewest.optimum();
  Messages allowed(*folded, bytesOnly(cap));
  Messages capped(*folded, charge({}, cap));
  Point cheap = pointOf(capped), small = pointOf(allowed);
  bound = cheap.cost;
  for (size_t v = 0; v < original.size(); ++v)
    for (size_t x = 0; x < original[v].size(); ++x)
      if (original[v][x] == smallest.assignment[v])
        smallest.assignment[v] = int(x);
  offer({smallest.assignment, smallest.cost, smallest.bytes});
  offer(small);
  offer(cheap);
  // The largest multiplier finds a cheap plan among the small ones.
  if (Messages dear(*folded, charge(largest, cap)); dear.optimum() < kIllegal) {
    Point point = pointOf(dear);
    offer(point);
    if (point.bytes.additive <= budget - floorTransient)
      small = std::move(point);
  }
  if (cheap.bytes.additive > budget - floorTransient)
    ascend(cap, cheap, small);

  Messages charged(*folded, charge(best, cap));
  LabelSearch labels(*folded, budget, floorTransient, options.labelLimit);
  labels.addBound(capped, {});
  labels.addBound(charged, best);
  labels.addBytes(allowed);
  int64_t most = 0;
  int passes = 0;
  const Time dual = bound;
  auto pass = [&](Time limit, size_t widest) {
    ++passes;
    LabelSearch::Outcome outcome = labels.run(limit, widest);
    most = std::max(most, labels.count());
    if (outcome == LabelSearch::Found) {
      Point point;
      point.assignment = labels.assignment();
      point.cost = costOf(problem, point.assignment);
      point.bytes = bytesOf(problem, memory, point.assignment);
      offer(point);
    }
    return outcome;
  };
  // Short lists find a good plan, if not the best. The limit starts close to
  // the bound, where few labels are left.
  constexpr int finest = 1024;
  constexpr size_t shortest = 8;
  for (Time distance = (known.cost - dual) / finest + 1;
       distance < known.cost - dual; distance *= 2)
    if (pass(dual + distance, shortest) != LabelSearch::Nothing)
      break;
  // Then whole lists: what is cheaper than a limit arrives, or does not exist.
  ParetoResult::Status status = ParetoResult::Optimal;
  for (int parts : {8, 4, 2, 1}) {
    Time limit = known.cost - (known.cost - dual) / parts * (parts - 1);
    if (bound >= limit)
      continue;
    LabelSearch::Outcome outcome = pass(limit, SIZE_MAX);
    if (outcome == LabelSearch::TooMany)
      status = ParetoResult::Gap;
    if (outcome != LabelSearch::Nothing)
      break;
    bound = limit;
  }
  ParetoResult result = finish(status);
  result.labels = most;
  result.passes = passes;
  return result;
}

ParetoSolver::ParetoSolver(Problem problem, MemoryModel memory, int64_t budget,
                           ParetoOptions options)
    : search(std::make_unique<Search>(std::move(problem), std::move(memory),
                                      budget, options)) {}
ParetoSolver::~ParetoSolver() = default;
ParetoResult ParetoSolver::solve() { return search->solve(); }
ParetoResult ParetoSolver::least() { return search->least(); }
const SolverError &ParetoSolver::error() const { return search->failure; }

} // namespace mtp::plan
