// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/BudgetRegret.h"
#include "compiler/plan/LabelMarginals.h"

namespace mtp::plan {

bool Marginal::isBefore(const Marginal &other) const {
  if (cost != other.cost)
    return cost < other.cost;
  // What has no assignment at all is last.
  if ((neededBytes == 0) != (other.neededBytes == 0) && !fits())
    return neededBytes != 0;
  return std::tie(neededBytes, isBound) <
         std::tie(other.neededBytes, other.isBound);
}

Marginals exactMarginals(const std::vector<std::vector<Time>> &costs) {
  Marginals marginals;
  for (const std::vector<Time> &mine : costs) {
    marginals.emplace_back();
    for (Time cost : mine)
      marginals.back().push_back({cost, false, 0});
  }
  return marginals;
}

/// Lower bounds of all marginals, from messages up and down one tree.
struct BudgetRegret::Bounds {
  Bounds(Problem given, MemoryModel bytes, int64_t budget,
         const ParetoResult &chosen, const SolverOptions &options,
         SolverError &error)
      : budget(budget), chosen(chosen), problem(std::move(given)),
        memory(std::move(bytes)) {
    for (const Variable &variable : problem.variables)
      marginals.emplace_back(variable.unary.size());
    original = dropIllegal(problem, memory);
    auto tree = eliminate(problem, options, error);
    if (!tree)
      return;
    folded = std::make_unique<FoldedProblem>(problem, memory, std::move(*tree));
    for (const std::vector<FoldedProblem::Table> *tables :
         {&folded->unary, &folded->pairs})
      for (const FoldedProblem::Table &table : *tables)
        if (const auto &list = table.footprint.transient; !list.empty())
          floorTransient = std::max(
              floorTransient, *std::min_element(list.begin(), list.end()));
  }

  /// False if nothing is legal or fits.
  bool run() {
    const Multiplier multiplier{chosen.multiplier};
    smallest.emplace(*folded, bytesOnly(*folded, INT64_MAX));
    if (smallest->deadEnd() >= 0)
      return false;
    bucketOf.resize(problem.variables.size());
    for (int bucket = 0; bucket < folded->root(); ++bucket)
      bucketOf[folded->tree.buckets[bucket].variable] = bucket;
    // Nothing that fits has more transient bytes.
    const int64_t cap = budget - smallest->optimum();
    Messages free(*folded, charge(*folded, {}, INT64_MAX));
    least.emplace(*folded, charge(*folded, multiplier, cap));
    std::vector<std::vector<Time>> fewest = all(*smallest),
                                   cheapest = all(free);
    if (least->deadEnd() >= 0)
      return false;
    dual = all(*least);
    for (int bucket = 0; bucket < folded->root(); ++bucket) {
      int v = folded->tree.buckets[bucket].variable;
      const FoldedProblem::Table &own = folded->unary[folded->unaryOf[v]];
      for (size_t x = 0; x < original[v].size(); ++x) {
        if (cheapest[bucket][x] >= kIllegal)
          continue;
        int64_t transient = floorTransient;
        if (!own.footprint.transient.empty())
          transient = std::max(transient, own.footprint.transient[x]);
        Marginal &mine = marginals[v][original[v][x]];
        mine.isBound = true;
        int64_t needed = fewest[bucket][x] + transient;
        bool isOut = dual[bucket][x] >= kIllegal;
        if (isOut) // more transient bytes than `cap`
          needed = std::max(needed, fewest[bucket][x] + cap + 1);
        if (isOut || needed > budget) {
          mine.neededBytes = needed;
          continue;
        }
        mine.cost =
            std::max({cheapest[bucket][x], chosen.bound,
                      dual[bucket][x] - multiplier.of(budget - transient)});
      }
    }
    return true;
  }

  /// Min-marginals by bucket.
  std::vector<std::vector<Time>> all(Messages &messages) const {
    messages.sendDown();
    std::vector<std::vector<Time>> result(size_t(folded->root()));
    std::map<std::pair<int, int>, size_t> first; // of equal buckets
    for (size_t bucket = 0; bucket < result.size(); ++bucket) {
      auto [it, isNew] = first.try_emplace(
          {messages.kindOf(int(bucket)), messages.restOf(int(bucket))}, bucket);
      result[bucket] =
          isNew ? messages.marginal(int(bucket)) : result[it->second];
    }
    return result;
  }

  int64_t budget;
  const ParetoResult &chosen;
  Problem problem;
  MemoryModel memory;
  std::vector<std::vector<int>> original;
  std::unique_ptr<FoldedProblem> folded;
  int64_t floorTransient = 0;
  Marginals marginals;
  std::optional<Messages> smallest, least; ///< of bytes; of charged costs
  std::vector<std::vector<Time>> dual;     ///< min-marginals of `least`
  std::vector<int> bucketOf;               ///< by variable
  std::optional<LabelMarginals> lists;     ///< once they are needed
};

BudgetRegret::BudgetRegret(Problem problem, MemoryModel memory, int64_t budget,
                           ParetoResult chosen, BudgetRegretOptions options)
    : problem(std::move(problem)), memory(std::move(memory)), limit(budget),
      chosen(std::move(chosen)), options(options) {}
BudgetRegret::~BudgetRegret() = default;

bool BudgetRegret::bound() {
  bounds = std::make_unique<Bounds>(problem, memory, limit, chosen,
                                    options.bounds, failure);
  if (!bounds->folded || !bounds->run())
    return false;
  known = bounds->marginals;
  upper.clear();
  searched.clear();
  for (const std::vector<Marginal> &mine : known) {
    upper.emplace_back(mine.size(), kIllegal);
    searched.emplace_back(mine.size(), false);
  }
  offer(chosen.assignment, chosen.cost);
  return true;
}

/// An assignment that fits.
void BudgetRegret::offer(const std::vector<int> &assignment, Time cost) {
  for (size_t v = 0; v < assignment.size(); ++v) {
    Time &most = upper[v][assignment[v]];
    most = std::min(most, cost);
    settle(int(v), assignment[v]);
  }
}

void BudgetRegret::settle(int variable, int strategy) {
  Marginal &mine = known[variable][strategy];
  if (mine.isBound && mine.fits() && upper[variable][strategy] <= mine.cost)
    mine = {upper[variable][strategy], false, 0};
}

void BudgetRegret::search(int variable, int strategy) {
  searched[variable][strategy] = true;
  ++count;
  Problem pinned = problem;
  std::vector<Time> &unary = pinned.variables[variable].unary;
  for (size_t x = 0; x < unary.size(); ++x)
    if (int(x) != strategy)
      unary[x] = kIllegal;
  ParetoOptions pareto = options.search;
  pareto.labelLimit = std::min(pareto.labelLimit, options.workLimit - spent);
  ParetoResult result =
      ParetoSolver(std::move(pinned), memory, limit, pareto).solve();
  spent += int64_t(problem.variables.size()) + result.labels * result.passes;
  Marginal &mine = known[variable][strategy];
  switch (result.status) {
  case ParetoResult::Optimal:
    mine = {result.cost, false, 0};
    break;
  case ParetoResult::Gap:
    mine.cost = std::max(mine.cost, result.bound);
    break;
  case ParetoResult::Infeasible:
    mine = {kIllegal, false, result.bytes.total()};
    return;
  case ParetoResult::Failed: // too large: the bound stays
    return;
  }
  offer(result.assignment, result.cost);
}

/// The strategy that answers a question, as far as is known; -1: there is none.
int BudgetRegret::cheapest(const Question &question) const {
  const std::vector<Marginal> &mine = known[question.variable];
  int best = -1;
  for (size_t x = 0; x < mine.size(); ++x)
    if (question.among[x] && (best < 0 || mine[x].isBefore(mine[best])))
      best = int(x);
  return best;
}

/// True if the answer is a lower bound and more is wanted.
bool BudgetRegret::isOpen(const Question &question) const {
  int best = cheapest(question);
  if (best < 0)
    return false;
  const Marginal &mine = known[question.variable][best];
  return mine.isBound &&
         !(mine.fits() && mine.cost - chosen.cost >= options.beyond);
}

/// Lists of labels within `window` of what the questions' answers cost at
/// least. False if that is too much work.
bool BudgetRegret::take(const std::vector<const Question *> &questions,
                        Time window) {
  const Multiplier multiplier{chosen.multiplier};
  const Time room = multiplier.of(limit - bounds->floorTransient);
  Time reach = 0;
  std::map<int, std::vector<bool>> wanted; // by bucket
  for (const Question *question : questions) {
    int v = question->variable, bucket = bounds->bucketOf[v],
        best = cheapest(*question);
    const std::vector<int> &original = bounds->original[v];
    std::vector<bool> &mine = wanted[bucket];
    mine.resize(original.size());
    for (size_t x = 0; x < original.size(); ++x) {
      const Marginal &other = known[v][original[x]];
      mine[x] = mine[x] ||
                (question->among[original[x]] && other.isBound && other.fits());
      if (original[x] == best)
        reach = std::max(reach, add(bounds->dual[bucket][x], window));
    }
  }
  if (!bounds->lists)
    bounds->lists.emplace(*bounds->folded, *bounds->least, multiplier,
                          *bounds->smallest, limit, bounds->floorTransient);
  LabelMarginals &lists = *bounds->lists;
  ++count;
  // If that is too much, there is work left for fewer questions.
  bool complete = lists.run(window, reach, (options.workLimit - spent) / 2);
  if (complete)
    for (const auto &[bucket, flags] : wanted) {
      int v = bounds->folded->tree.buckets[bucket].variable;
      std::vector<Time> found = lists.marginal(bucket, flags);
      for (size_t i = 0; i < found.size(); ++i) {
        Time least = bounds->dual[bucket][i];
        if (!flags[i] || least > reach)
          continue;
        // All assignments that fit and cost no more were looked at.
        Time proven = std::min(add(least, window), reach) - room;
        int x = bounds->original[v][i];
        upper[v][x] = std::min(upper[v][x], found[i]);
        known[v][x].cost = std::max(known[v][x].cost,
                                    found[i] <= proven ? found[i] : proven + 1);
        settle(v, x);
      }
    }
  spent += lists.work();
  return complete;
}

/// Windows that grow from a part of the gap between the chosen assignment and
/// its bound.
void BudgetRegret::widen(const std::vector<Question> &questions) {
  const Time dual =
      bounds->least->optimum() -
      Multiplier{chosen.multiplier}.of(limit - bounds->floorTransient);
  constexpr int finest = 4, mostSteps = 6;
  Time window = std::max<Time>(chosen.cost - dual, 0) / finest + 1;
  for (int step = 0; step < mostSteps; ++step, window *= 2) {
    std::vector<const Question *> left;
    for (const Question &question : questions)
      if (isOpen(question) &&
          known[question.variable][cheapest(question)].fits())
        left.push_back(&question);
    std::stable_sort(left.begin(), left.end(),
                     [&](const Question *a, const Question *b) {
                       return known[a->variable][cheapest(*a)].cost <
                              known[b->variable][cheapest(*b)].cost;
                     });
    // Dear answers need longer lists: without them if that is too much.
    while (!left.empty() && spent < options.workLimit && !take(left, window))
      left.resize(left.size() / 2);
    if (left.empty() || spent >= options.workLimit)
      return;
  }
}

/// False if the answer is a lower bound.
bool BudgetRegret::answer(const Question &question) {
  while (isOpen(question)) {
    int best = cheapest(question);
    if (searched[question.variable][best] || spent >= options.workLimit)
      return false;
    search(question.variable, best);
  }
  return true;
}

void BudgetRegret::answer(const std::vector<Question> &questions) {
  widen(questions);
  using Kind = std::tuple<int, int, std::vector<bool>>;
  std::map<Kind, int> seen;
  std::vector<std::pair<int, size_t>> order;
  for (size_t i = 0; i < questions.size(); ++i) {
    int bucket = bounds->bucketOf[questions[i].variable];
    Kind kind{bounds->least->kindOf(bucket), bounds->least->restOf(bucket),
              questions[i].among};
    order.push_back({seen[kind]++, i});
  }
  std::sort(order.begin(), order.end());
  for (auto [turn, index] : order)
    open += !answer(questions[index]);
}

} // namespace mtp::plan
