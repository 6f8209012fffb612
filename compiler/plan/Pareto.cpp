// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/ParetoLabels.h"

namespace mtp::plan {

/// What was found and proven for one budget is kept for the next.
class ParetoSolver::Search {
public:
  Search(Problem given, MemoryModel bytes, int64_t budget,
         ParetoOptions options)
      : problem(std::move(given)), memory(std::move(bytes)), budget(budget),
        options(options) {}

  void setBudget(int64_t bytes) { budget = bytes; }
  ParetoResult solve();
  ParetoResult least();
  SolverError failure;
  int64_t work = 0;

private:
  struct Point {
    std::vector<int> assignment;
    Time cost = kIllegal;
    ByteCount bytes;
  };
  using Marginals = std::vector<std::vector<Time>>; ///< by variable
  /// Messages that allow so many transient bytes.
  struct Capped {
    int64_t cap = -1;
    std::unique_ptr<Messages> messages;
    Marginals marginals; ///< once they are asked for
  };
  /// What a label is dropped by.
  struct Bounds {
    Messages &costs, &charged, &bytes;
    int64_t cap;
    int64_t room; ///< most additive bytes
  };
  /// The strategies that a limit leaves.
  struct Part {
    Problem problem;
    MemoryModel memory;
    std::vector<std::vector<int>> kept; ///< by variable
    std::unique_ptr<FoldedProblem> folded;
  };

  bool prepare();
  bool checkMemory();
  bool findEnds();
  void collectTransients();
  Point pointOf(std::vector<int> assignment) const;
  Point pointOf(const Messages &messages) const {
    return pointOf(messages.assignment());
  }
  std::unique_ptr<Messages> send(Weights weights);
  Messages &costsWithin(int64_t cap);
  Messages &bytesWithin(int64_t cap);
  const Point &smallest();
  int64_t transientCap();
  void note(Point point);
  std::pair<Point, Point> edgeOver(int64_t room, int64_t cap) const;
  void ascend(int64_t room, int64_t cap);
  Marginals marginalsOf(Messages &messages);
  bool leaveOut(const Bounds &bounds, Time limit, Part &part) const;
  LabelSearch::Outcome listPart(const Bounds &bounds, Time limit,
                                size_t widest);
  LabelSearch::Outcome list(LabelSearch &labels, Time limit, size_t widest,
                            const std::vector<std::vector<int>> *kept);
  ParetoResult::Status listAll(const Bounds &bounds);
  ParetoResult resultOf(const Point &point, ParetoResult::Status status) const;
  ParetoResult finish(ParetoResult::Status status);

  Problem problem;
  MemoryModel memory;
  int64_t budget;
  ParetoOptions options;
  std::vector<std::vector<int>> original;
  std::unique_ptr<FoldedProblem> folded;
  bool isWide = false;             ///< too large for lists
  std::vector<int64_t> transients; ///< that occur, increasing
  int64_t floorTransient = 0;      ///< no assignment has less
  Multiplier largest;              ///< no sum of charges overflows
  Capped costs, bytes;
  std::optional<Point> cheapest, fewest; ///< whatever the budget
  int64_t fewestAdditive = 0;            ///< no assignment has less

  std::vector<Point> found; ///< different ones
  Time nearest = 0; ///< least distance of a plan of any budget to its dual
  struct Proof {
    int64_t budget;
    Time bound;
    Multiplier multiplier;
  };
  std::vector<Proof> proofs;
  /// Of the budget that is asked for:
  Time bound = 0;         ///< no assignment that fits costs less
  Multiplier best;        ///< whose bound that is
  Point known;            ///< cheapest that fits, so far
  Marginals leastCharged; ///< if the tables are wide
  int64_t labels = 0;
  int passes = 0;
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
  isWide = tree->largestTable > options.listTable ||
           tree->entries > options.listWork;
  folded = std::make_unique<FoldedProblem>(problem, memory, std::move(*tree));
  collectTransients();
  return true;
}

/// An assignment has an entry of every table.
void ParetoSolver::Search::collectTransients() {
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
}

ParetoSolver::Search::Point
ParetoSolver::Search::pointOf(std::vector<int> assignment) const {
  Point point;
  point.cost = costOf(problem, assignment);
  point.bytes = bytesOf(problem, memory, assignment);
  point.assignment = std::move(assignment);
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

/// Remembers what was found.
void ParetoSolver::Search::note(Point point) {
  auto same = [&](const Point &other) {
    return other.cost == point.cost &&
           other.bytes.additive == point.bytes.additive &&
           other.bytes.transient == point.bytes.transient;
  };
  if (point.bytes.total() <= budget &&
      (point.cost < known.cost ||
       (point.cost == known.cost && point.bytes.total() < known.bytes.total())))
    known = point;
  if (std::none_of(found.begin(), found.end(), same))
    found.push_back(std::move(point));
}

std::unique_ptr<Messages> ParetoSolver::Search::send(Weights weights) {
  work += folded->tree.entries;
  return std::make_unique<Messages>(*folded, std::move(weights));
}

Messages &ParetoSolver::Search::costsWithin(int64_t cap) {
  if (costs.cap != cap)
    costs = {cap, send(charge(*folded, {}, cap)), {}};
  return *costs.messages;
}

Messages &ParetoSolver::Search::bytesWithin(int64_t cap) {
  if (bytes.cap != cap)
    bytes = {cap, send(bytesOnly(*folded, cap)), {}};
  return *bytes.messages;
}

/// The cheapest assignment, and the fewest additive bytes of any. False if
/// there is none.
bool ParetoSolver::Search::findEnds() {
  if (cheapest)
    return true;
  if (!prepare())
    return false;
  Messages &free = costsWithin(transients.back());
  if (free.deadEnd() >= 0) {
    failure = infeasible(problem, folded->tree, free.deadEnd());
    return false;
  }
  cheapest = pointOf(free);
  fewestAdditive = bytesWithin(transients.back()).optimum();
  return true;
}

/// Additive bytes fall as more transient bytes are allowed, so an interval
/// (low, high) of allowed transients needs at least additive(high) + low. The
/// interval with the least such bound is halved until it is one value.
const ParetoSolver::Search::Point &ParetoSolver::Search::smallest() {
  if (fewest)
    return *fewest;
  struct Interval {
    int64_t bound;
    size_t low, high; ///< into transients
    bool operator<(const Interval &other) const {
      return std::tie(bound, low) < std::tie(other.bound, other.low);
    }
  };
  std::set<Interval> open;
  auto push = [&](size_t low, size_t high) {
    const Messages &messages = bytesWithin(transients[high]);
    if (messages.deadEnd() >= 0)
      return;
    Point point = pointOf(messages);
    if (!fewest || point.bytes.total() < fewest->bytes.total())
      fewest = std::move(point);
    open.insert({messages.optimum() + transients[low], low, high});
  };
  push(0, transients.size() - 1);
  while (!open.empty()) {
    Interval interval = *open.begin();
    open.erase(open.begin());
    if (interval.bound >= fewest->bytes.total() ||
        interval.low == interval.high)
      continue;
    size_t middle = (interval.low + interval.high) / 2;
    push(interval.low, middle);
    push(middle + 1, interval.high);
  }
  return *fewest;
}

ParetoResult ParetoSolver::Search::least() {
  if (!findEnds())
    return {};
  return resultOf(smallest(), ParetoResult::Optimal);
}

/// Of the plans found with at most `cap` transient bytes, one with more
/// additive bytes than `room` and one with at most as many, so that the line
/// between them is lowest there: an edge of their hull.
std::pair<ParetoSolver::Search::Point, ParetoSolver::Search::Point>
ParetoSolver::Search::edgeOver(int64_t room, int64_t cap) const {
  const Point *above = nullptr, *below = nullptr;
  double lowest = 0;
  for (const Point &a : found)
    for (const Point &b : found) {
      if (a.bytes.additive <= room || b.bytes.additive > room ||
          a.bytes.transient > cap || b.bytes.transient > cap)
        continue;
      double share = double(room - b.bytes.additive) /
                     double(a.bytes.additive - b.bytes.additive);
      double cost = double(b.cost) + share * double(a.cost - b.cost);
      if (above && cost >= lowest)
        continue;
      above = &a;
      below = &b;
      lowest = cost;
    }
  return above ? std::pair(*above, *below) : std::pair<Point, Point>();
}

/// The Lagrangian dual by secants: the multiplier at which the cheapest plan
/// found and the smallest one cost the same; either becomes the plan that is
/// least there.
void ParetoSolver::Search::ascend(int64_t room, int64_t cap) {
  auto [above, below] = edgeOver(room, cap);
  Time highest = costsWithin(cap).optimum(); // without a charge
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
    auto messages = send(charge(*folded, multiplier, cap));
    if (messages->optimum() >= kIllegal)
      return;
    Time dual = messages->optimum() - multiplier.of(room);
    if (dual > highest) {
      highest = dual;
      best = multiplier;
    }
    bound = std::max(bound, dual);
    Point point = pointOf(*messages);
    note(point);
    (point.bytes.additive > room ? above : below) = std::move(point);
  }
}

/// The least of every strategy, by variable.
ParetoSolver::Search::Marginals
ParetoSolver::Search::marginalsOf(Messages &messages) {
  messages.sendDown();
  work += 2 * folded->tree.entries;
  Marginals marginals(problem.variables.size());
  std::map<std::pair<int, int>, std::vector<Time>> known; // equal buckets
  for (int bucket = 0; bucket < folded->root(); ++bucket) {
    std::vector<Time> &mine =
        known[{messages.kindOf(bucket), messages.restOf(bucket)}];
    if (mine.empty())
      mine = messages.marginal(bucket);
    marginals[folded->tree.buckets[bucket].variable] = mine;
  }
  return marginals;
}

/// Leaves out the strategies that no assignment has that fits and costs less
/// than `limit`. False if nothing is left.
bool ParetoSolver::Search::leaveOut(const Bounds &bounds, Time limit,
                                    Part &part) const {
  part.problem = problem;
  part.memory = memory;
  const Time mostCharged = limit - 1 + best.of(bounds.room);
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    std::vector<Time> &unary = part.problem.variables[v].unary;
    bool any = false;
    for (size_t x = 0; x < unary.size(); ++x) {
      bool isLeft = costs.marginals[v][x] < limit &&
                    leastCharged[v][x] <= mostCharged &&
                    bytes.marginals[v][x] <= bounds.room;
      any |= isLeft;
      if (!isLeft)
        unary[x] = kIllegal;
    }
    if (!any)
      return false;
  }
  if (options.tables.prune)
    removeDominated(part.problem, part.memory);
  part.kept = dropIllegal(part.problem, part.memory);
  return true;
}

LabelSearch::Outcome
ParetoSolver::Search::list(LabelSearch &search, Time limit, size_t widest,
                           const std::vector<std::vector<int>> *kept) {
  LabelSearch::Outcome outcome = search.run(limit, widest);
  labels = std::max(labels, search.count());
  work += search.sumsMade();
  if (outcome == LabelSearch::Found) {
    std::vector<int> assignment = search.assignment();
    for (size_t v = 0; kept && v < assignment.size(); ++v)
      assignment[v] = (*kept)[v][assignment[v]];
    note(pointOf(std::move(assignment)));
  }
  return outcome;
}

LabelSearch::Outcome ParetoSolver::Search::listPart(const Bounds &bounds,
                                                    Time limit, size_t widest) {
  Part part;
  if (!leaveOut(bounds, limit, part))
    return LabelSearch::Nothing;
  SolverOptions narrow = options.tables;
  narrow.tableLimit = options.listTable;
  narrow.workLimit = options.listWork;
  SolverError tooWide;
  auto tree = eliminate(part.problem, narrow, tooWide);
  if (!tree)
    return LabelSearch::TooMany;
  FoldedProblem tables(part.problem, part.memory, std::move(*tree));
  Messages costs(tables, charge(tables, {}, bounds.cap)),
      charged(tables, charge(tables, best, bounds.cap)),
      bytes(tables, bytesOnly(tables, bounds.cap));
  if (costs.deadEnd() >= 0)
    return LabelSearch::Nothing;
  LabelSearch search(tables, budget, floorTransient, options.labelLimit);
  search.addBound(costs, {});
  search.addBound(charged, best);
  search.addBytes(bytes);
  return list(search, limit, widest, &part.kept);
}

ParetoResult::Status ParetoSolver::Search::listAll(const Bounds &bounds) {
  const Time dual = bound;
  LabelSearch search(*folded, budget, floorTransient, options.labelLimit);
  if (isWide) {
    leastCharged = marginalsOf(bounds.charged);
    for (Capped *capped : {&costs, &bytes})
      if (capped->marginals.empty())
        capped->marginals = marginalsOf(*capped->messages);
  } else {
    search.addBound(bounds.costs, {});
    search.addBound(bounds.charged, best);
    search.addBytes(bounds.bytes);
  }
  auto pass = [&](Time limit, size_t widest) {
    ++passes;
    return isWide ? listPart(bounds, limit, widest)
                  : list(search, limit, widest, nullptr);
  };
  // What is cheaper than a limit arrives at the root, or does not exist. Labels
  // grow with the limit, so it starts close to the bound, but not much closer
  // than a plan of another budget was to its bound; where they are too many,
  // limits between that and what is proven follow.
  constexpr int finest = 1024, mostHalvings = 4;
  Time distance = std::max((known.cost - dual) / finest, nearest) + 1;
  std::optional<Time> tooFar; // a limit
  for (int halvings = 0; bound < known.cost && halvings < mostHalvings;) {
    Time limit = std::min(dual + distance, known.cost);
    distance *= 2;
    if (tooFar) {
      limit = bound + (*tooFar - bound) / 2;
      ++halvings;
    }
    if (limit <= bound)
      continue;
    LabelSearch::Outcome outcome = pass(limit, SIZE_MAX);
    if (outcome == LabelSearch::TooMany)
      tooFar = limit;
    else
      bound = outcome == LabelSearch::Found ? known.cost : limit;
  }
  if (bound < known.cost) {
    // Short lists find a good plan, if not the best.
    constexpr size_t shortest = 8;
    for (distance = bound - dual + 1; distance < known.cost - dual;)
      if (pass(dual + distance, shortest) == LabelSearch::Nothing)
        distance *= 2;
      else
        break;
    return ParetoResult::Gap;
  }
  distance = known.cost - dual;
  nearest = nearest ? std::min(nearest, distance) : distance;
  return ParetoResult::Optimal;
}

ParetoResult ParetoSolver::Search::finish(ParetoResult::Status status) {
  if (status == ParetoResult::Optimal)
    bound = known.cost;
  proofs.push_back({budget, bound, best});
  ParetoResult result = resultOf(known, status);
  result.bound = bound;
  result.multiplier = best.parts;
  result.unconstrained = cheapest->cost;
  result.labels = labels;
  result.passes = passes;
  return result;
}

/// No plan has less additive bytes than the fewest, so none may have more than
/// the rest of the budget as transient ones; and with those, again.
int64_t ParetoSolver::Search::transientCap() {
  auto allowedBeside = [&](int64_t additive) {
    return size_t(std::upper_bound(transients.begin(), transients.end(),
                                   budget - additive) -
                  transients.begin());
  };
  size_t allows = allowedBeside(fewestAdditive);
  if (isWide) {
    // One of a few caps that allow those, so that budgets share messages.
    constexpr size_t caps = 16;
    const size_t width = transients.size() / caps + 1;
    allows = std::min((allows + width - 1) / width * width, transients.size());
    return transients[allows - 1];
  }
  for (size_t fewer = allows;; allows = fewer) {
    fewer = allowedBeside(bytesWithin(transients[allows - 1]).optimum());
    if (fewer >= allows)
      return transients[allows - 1];
  }
}

ParetoResult ParetoSolver::Search::solve() {
  if (!findEnds())
    return {};
  known = {};
  best = {};
  labels = passes = 0;
  bound = cheapest->cost;
  for (const Proof &proof : proofs)
    if (proof.budget >= budget && proof.bound > bound) {
      bound = proof.bound;
      best = proof.multiplier;
    }
  note(*cheapest);
  for (size_t i = 0; i < found.size(); ++i)
    note(found[i]);
  if (known.cost <= bound)
    return finish(ParetoResult::Optimal);
  if (smallest().bytes.total() > budget) {
    ParetoResult result = resultOf(*fewest, ParetoResult::Infeasible);
    result.unconstrained = cheapest->cost;
    return result;
  }
  const int64_t cap = transientCap(), room = budget - floorTransient;
  Messages &capped = costsWithin(cap), &allowed = bytesWithin(cap);
  bound = std::max(bound, capped.optimum());
  bool isFirst = proofs.empty();
  note(*fewest);
  note(pointOf(allowed));
  note(pointOf(capped));
  // The largest multiplier finds a cheap plan among the small ones.
  if (isFirst)
    if (auto dear = send(charge(*folded, largest, cap));
        dear->optimum() < kIllegal)
      note(pointOf(*dear));
  ascend(room, cap);
  if (known.cost <= bound)
    return finish(ParetoResult::Optimal);
  auto charged = send(charge(*folded, best, cap));
  return finish(listAll({capped, *charged, allowed, cap, room}));
}

ParetoSolver::ParetoSolver(Problem problem, MemoryModel memory, int64_t budget,
                           ParetoOptions options)
    : search(std::make_unique<Search>(std::move(problem), std::move(memory),
                                      budget, options)) {}
ParetoSolver::~ParetoSolver() = default;
void ParetoSolver::setBudget(int64_t budget) { search->setBudget(budget); }
ParetoResult ParetoSolver::solve() { return search->solve(); }
ParetoResult ParetoSolver::least() { return search->least(); }
int64_t ParetoSolver::work() const { return search->work; }
const SolverError &ParetoSolver::error() const { return search->failure; }

} // namespace mtp::plan
