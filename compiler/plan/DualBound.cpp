// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/DualBound.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace mtp::plan {
namespace {

/// What is moved for a strategy that has no partner. An illegal entry with two
/// of these is still no overflow.
constexpr Time kNever = Time(1) << 60;
/// Sums of what is legal stay below, whatever was moved.
constexpr Time kLegal = Time(1) << 58;

Time sum(Time a, Time b) { return std::min(a + b, kNever); }

Time leastOf(const std::vector<Time> &costs) {
  Time least = kNever;
  for (Time cost : costs)
    least = std::min(least, cost);
  return least;
}

/// Invariant: moving changes no assignment's cost.
class Ascent {
public:
  Ascent(const StarProblem &problem, const std::vector<int> &sequence,
         Price price);
  DualBound run();

private:
  /// One end of a star. `best` is by layout, the rest by strategy.
  struct Side {
    int star = 0, variable = 0;
    size_t place = 0; ///< 0: the maker; i + 1: reader i
    std::vector<int> layoutOf;
    std::vector<Time> moved, best;
  };
  struct Body {
    std::vector<int> sides;  ///< the maker, then the readers
    std::vector<int> copies; ///< by column, as the caller counts
    size_t rows = 0, columns = 0;
    SharedTable made, copied;
    std::vector<Time> madeReturn, copiedReturn;
    /// By reader: least ways from each row and each column to what it reads.
    struct Reach {
      std::vector<Time> made, copied;
      bool stale = true;
    };
    std::vector<Reach> reach;
  };
  struct Var {
    std::vector<int> strategies; ///< as the caller counts; the cheaper ones
    std::vector<Time> cost, left;
    std::vector<int> sides;
  };

  void setBest(Side &side);
  void choose(int v, int x);
  void refresh(Body &body);
  void addReaders(const Body &body, size_t p, size_t except,
                  std::vector<Time> &row) const;
  Time alone(const Body &body, size_t p, size_t except) const;
  std::vector<Time> least(const Side &side);
  std::vector<Time> totals(int v);
  void visit(int v, bool forth);
  bool isLater(const Side &side, bool forth) const;
  void round();
  void compress();
  void findCopies(size_t star);

  const std::vector<int> &sequence;
  Price price;
  std::vector<int> rank;
  std::vector<Var> variables;
  std::vector<Side> sides;
  std::vector<Body> bodies;
  Time total = 0; ///< the bound
  bool dead = false;
  size_t dropped = 0, alive = 0;
  DualBound result;
};

Ascent::Ascent(const StarProblem &problem, const std::vector<int> &sequence,
               Price given)
    : sequence(sequence), price(std::move(given)), rank(problem.unary.size()) {
  if (!price)
    price = [&problem](const std::vector<int> &assignment) {
      return costOf(problem, assignment);
    };
  for (size_t i = 0; i < sequence.size(); ++i)
    rank[sequence[i]] = int(i);
  for (const std::vector<Time> &unary : problem.unary) {
    Var &var = variables.emplace_back();
    var.strategies.resize(unary.size());
    std::iota(var.strategies.begin(), var.strategies.end(), 0);
    var.cost = unary;
    for (Time &cost : var.cost)
      cost = std::min(cost, kNever);
    var.left = var.cost;
    alive += unary.size();
    total = sum(total, leastOf(var.left));
    result.marginals.emplace_back(unary.size(), 0);
  }
  for (const Star &star : problem.stars) {
    Body &body = bodies.emplace_back();
    body.rows = size_t(star.rows);
    body.columns = size_t(star.columns);
    body.made = star.made;
    body.copied = star.copied;
    body.madeReturn = star.madeReturn;
    body.copiedReturn = star.copiedReturn;
    body.reach.resize(star.readers.size());
    body.copies.resize(star.copied ? body.columns : 0);
    std::iota(body.copies.begin(), body.copies.end(), 0);
    result.copies.emplace_back(body.copies.size(), 0);
    auto add = [&](const Star::End &end, size_t place) {
      body.sides.push_back(int(sides.size()));
      variables[end.variable].sides.push_back(int(sides.size()));
      Side side{int(bodies.size()) - 1,
                end.variable,
                place,
                end.layoutOf,
                std::vector<Time>(end.layoutOf.size(), 0),
                {}};
      setBest(side);
      sides.push_back(std::move(side));
    };
    add(star.maker, 0);
    for (size_t i = 0; i < star.readers.size(); ++i)
      add(star.readers[i], i + 1);
    total = sum(total, leastOf(least(sides[body.sides[0]])));
  }
}

void Ascent::setBest(Side &side) {
  Body &body = bodies[side.star];
  const std::vector<Time> &cost = variables[side.variable].cost;
  side.best.assign(side.place ? body.columns : body.rows, kNever);
  for (size_t x = 0; x < side.layoutOf.size(); ++x)
    if (cost[x] < kLegal) {
      Time &best = side.best[side.layoutOf[x]];
      best = std::min(best, side.moved[x]);
    }
  if (side.place)
    body.reach[side.place - 1].stale = true;
}

/// As if `v` had this strategy alone.
void Ascent::choose(int v, int x) {
  for (int index : variables[v].sides) {
    Side &side = sides[index];
    side.best.assign(side.best.size(), kNever);
    side.best[side.layoutOf[x]] = 0;
    if (side.place)
      bodies[side.star].reach[side.place - 1].stale = true;
  }
}

/// For each row of a table the least sum with `best`.
static std::vector<Time> reachOf(const std::vector<Time> &table, size_t rows,
                                 const std::vector<Time> &best) {
  std::vector<Time> result(rows, kNever);
  const size_t columns = best.size();
  for (size_t p = 0; p < rows; ++p) {
    const Time *row = table.data() + p * columns;
    Time least = kNever;
    for (size_t r = 0; r < columns; ++r)
      least = std::min(least, row[r] + best[r]);
    result[p] = least;
  }
  return result;
}

void Ascent::refresh(Body &body) {
  for (size_t i = 0; i < body.reach.size(); ++i) {
    Body::Reach &reach = body.reach[i];
    if (!reach.stale)
      continue;
    const std::vector<Time> &best = sides[body.sides[i + 1]].best;
    reach.made = reachOf(*body.made, body.rows, best);
    if (body.copied)
      reach.copied = reachOf(*body.copied, body.columns, best);
    reach.stale = false;
  }
}

/// Adds, to a row over the copies, what the readers but one cost from row p.
void Ascent::addReaders(const Body &body, size_t p, size_t except,
                        std::vector<Time> &row) const {
  auto add = [&](Time own, const std::vector<Time> &copied) {
    for (size_t c = 0; c < row.size(); ++c)
      row[c] = std::min(row[c] + std::min(own, copied[c]), kNever);
  };
  for (size_t i = 0; i < body.reach.size(); ++i)
    if (i + 1 != except)
      add(body.reach[i].made[p], body.reach[i].copied);
  if (!body.madeReturn.empty())
    add(std::min(body.madeReturn[p], kNever), body.copiedReturn);
}

/// The same without a copy.
Time Ascent::alone(const Body &body, size_t p, size_t except) const {
  Time total = body.madeReturn.empty() ? 0 : body.madeReturn[p];
  for (size_t i = 0; i < body.reach.size(); ++i)
    if (i + 1 != except)
      total = sum(total, body.reach[i].made[p]);
  return std::min(total, kNever);
}

/// For each layout of one end the least of the star, with what its other ends
/// moved.
std::vector<Time> Ascent::least(const Side &side) {
  Body &body = bodies[side.star];
  refresh(body);
  const size_t columns = body.columns, place = side.place;
  const std::vector<Time> &making = sides[body.sides[0]].best;
  const Time *made = body.made->data();
  std::vector<Time> result(side.best.size(), kNever), row(columns),
      viaCopy(columns, kNever);
  auto spread = [&](Time have, const Time *ways) {
    for (size_t r = 0; r < columns; ++r)
      result[r] = std::min(result[r], have + ways[r]);
  };
  for (size_t p = 0; p < body.rows; ++p) {
    if (place && making[p] >= kLegal)
      continue;
    Time own = alone(body, p, place);
    if (body.copied) {
      const Time *ways = made + p * columns;
      row.assign(ways, ways + columns);
      addReaders(body, p, place, row);
      own = std::min(own, leastOf(row));
      if (place)
        for (size_t c = 0; c < columns; ++c)
          viaCopy[c] = std::min(viaCopy[c], making[p] + row[c]);
    }
    if (!place)
      result[p] = own;
    else if (own < kLegal)
      spread(making[p] + own, made + p * columns);
  }
  if (place && body.copied)
    for (size_t c = 0; c < columns; ++c)
      if (viaCopy[c] < kLegal)
        spread(viaCopy[c], body.copied->data() + c * columns);
  return result;
}

/// Costs of all strategies with the least of every star beside them.
std::vector<Time> Ascent::totals(int v) {
  std::vector<Time> all = variables[v].cost;
  for (int index : variables[v].sides) {
    const Side &side = sides[index];
    std::vector<Time> byLayout = least(side);
    for (size_t x = 0; x < all.size(); ++x)
      all[x] = sum(all[x], byLayout[side.layoutOf[x]]);
  }
  return all;
}

/// Whether the variable hands on to the star. A variable at two ends of a star
/// does so at one.
bool Ascent::isLater(const Side &side, bool forth) const {
  int mine = rank[side.variable];
  bool later = false;
  for (int index : bodies[side.star].sides) {
    const Side &other = sides[index];
    if (other.variable == side.variable && other.place < side.place)
      return false;
    later |= forth ? rank[other.variable] > mine : rank[other.variable] < mine;
  }
  return later;
}

void Ascent::visit(int v, bool forth) {
  Var &var = variables[v];
  std::vector<std::vector<Time>> parts;
  std::vector<Time> all = var.cost;
  Time before = leastOf(var.left); // what of the bound was in here
  size_t later = 0, earlier = 0;
  for (int index : var.sides) {
    Side &side = sides[index];
    later += isLater(side, forth);
    earlier += isLater(side, !forth);
    std::vector<Time> byLayout = least(side);
    std::vector<Time> &mine = parts.emplace_back(all.size());
    Time spare = kNever;
    for (size_t x = 0; x < all.size(); ++x) {
      mine[x] = byLayout[side.layoutOf[x]];
      bool legal = mine[x] < kLegal && all[x] < kLegal;
      if (legal)
        spare = std::min(spare, mine[x] + side.moved[x]);
      all[x] = legal ? all[x] + mine[x] : kNever;
      side.moved[x] = legal ? -mine[x] : kNever;
    }
    if (spare >= kLegal) {
      dead = true;
      return;
    }
    before += spare;
    setBest(side);
  }
  Time mine = leastOf(all);
  if (mine >= kLegal) {
    dead = true;
    return;
  }
  total += mine - before;
  std::vector<Time> &marginals = result.marginals[v];
  for (size_t x = 0; x < all.size(); ++x) {
    if (var.cost[x] >= kLegal)
      continue;
    Time &marginal = marginals[var.strategies[x]];
    marginal =
        all[x] < kLegal ? std::max(marginal, total - mine + all[x]) : kIllegal;
    if (marginal < result.cost)
      continue;
    if (marginal > result.cost || all[x] >= kLegal) {
      marginal = kIllegal;
      var.cost[x] = all[x] = kNever;
      ++dropped;
    }
  }
  mine = leastOf(all);
  if (mine >= kLegal) {
    dead = true;
    return;
  }
  const Time count = Time(std::max({later, earlier, size_t(1)}));
  var.left = all;
  Time after = 0;
  for (size_t e = 0; e < parts.size(); ++e) {
    Side &side = sides[var.sides[e]];
    bool given = isLater(side, forth);
    for (size_t x = 0; x < all.size(); ++x) {
      if (all[x] >= kLegal) {
        side.moved[x] = kNever;
        continue;
      }
      Time part = given ? all[x] / count : 0;
      side.moved[x] = part - parts[e][x];
      var.left[x] -= part;
    }
    after += given ? mine / count : 0;
    setBest(side);
  }
  total += after + leastOf(var.left) - mine;
}

/// Each variable in turn takes what is cheapest beside those before it, then
/// what is cheapest beside all others.
void Ascent::round() {
  std::vector<int> chosen(variables.size(), -1);
  constexpr int passes = 3;
  for (int pass = 0; pass < passes; ++pass) {
    bool changed = false;
    for (int v : sequence) {
      std::vector<Time> costs = totals(v);
      auto least = std::min_element(costs.begin(), costs.end());
      if (chosen[v] >= 0 && *least >= costs[chosen[v]])
        continue;
      chosen[v] = int(least - costs.begin());
      choose(v, chosen[v]);
      changed = true;
    }
    if (!changed)
      break;
  }
  for (Side &side : sides)
    setBest(side);
  std::vector<int> assignment;
  for (size_t v = 0; v < variables.size(); ++v)
    assignment.push_back(variables[v].strategies[chosen[v]]);
  Time cost = price(assignment);
  if (cost < result.cost) {
    result.cost = cost;
    result.assignment = std::move(assignment);
  }
}

namespace {
/// Positions of what is used, and the number of each among them or -1.
struct Kept {
  explicit Kept(size_t size) : place(size, -1) {}
  void use(int index) { place[index] = 0; }
  void number() {
    for (size_t i = 0; i < place.size(); ++i)
      if (place[i] >= 0) {
        place[i] = int(all.size());
        all.push_back(int(i));
      }
  }
  std::vector<int> all, place;
};

std::vector<Time> pick(const std::vector<Time> &from, const Kept &kept) {
  std::vector<Time> result;
  for (int i : kept.all)
    result.push_back(from[i]);
  return result;
}

SharedTable pick(const std::vector<Time> &table, const Kept &rows,
                 const Kept &columns) {
  std::vector<Time> result;
  result.reserve(rows.all.size() * columns.all.size());
  for (int p : rows.all)
    for (int r : columns.all)
      result.push_back(table[size_t(p) * columns.place.size() + size_t(r)]);
  return std::make_shared<const std::vector<Time>>(std::move(result));
}
} // namespace

/// Least totals with each copy.
void Ascent::findCopies(size_t star) {
  Body &body = bodies[star];
  std::vector<Time> &marginals = result.copies[star];
  if (!body.copied)
    return;
  refresh(body);
  const std::vector<Time> &making = sides[body.sides[0]].best;
  constexpr size_t none = SIZE_MAX;
  std::vector<Time> viaCopy(body.columns, kNever), row;
  Time all = kNever;
  for (size_t p = 0; p < body.rows; ++p) {
    if (making[p] >= kLegal)
      continue;
    const Time *ways = body.made->data() + p * body.columns;
    row.assign(ways, ways + body.columns);
    addReaders(body, p, none, row);
    all = std::min(all, making[p] + alone(body, p, none));
    for (size_t c = 0; c < row.size(); ++c)
      viaCopy[c] = std::min(viaCopy[c], making[p] + row[c]);
  }
  all = std::min(all, leastOf(viaCopy));
  for (size_t c = 0; c < body.copies.size(); ++c) {
    Time &marginal = marginals[body.copies[c]];
    if (viaCopy[c] < kLegal)
      marginal = std::max(marginal, total - all + viaCopy[c]);
    if (viaCopy[c] >= kLegal || marginal > result.cost)
      marginal = kIllegal;
  }
}

/// Forgets what was dropped, and the layouts that nothing else needs.
void Ascent::compress() {
  for (size_t star = 0; star < bodies.size(); ++star)
    findCopies(star);
  dropped = 0;
  for (size_t v = 0; v < variables.size(); ++v) {
    Var &var = variables[v];
    std::vector<int> kept;
    for (size_t x = 0; x < var.cost.size(); ++x)
      if (var.cost[x] < kLegal)
        kept.push_back(int(x));
    if (kept.size() == var.cost.size())
      continue;
    auto keep = [&](auto &list) {
      for (size_t i = 0; i < kept.size(); ++i)
        list[i] = list[kept[i]];
      list.resize(kept.size());
    };
    alive -= var.cost.size() - kept.size();
    keep(var.strategies);
    keep(var.cost);
    keep(var.left);
    for (int index : var.sides) {
      keep(sides[index].layoutOf);
      keep(sides[index].moved);
    }
  }
  using Key = std::tuple<SharedTable, std::vector<int>, std::vector<int>>;
  std::map<Key, SharedTable> tables; // equal stars
  for (size_t star = 0; star < bodies.size(); ++star) {
    Body &body = bodies[star];
    Kept rows(body.rows), columns(body.columns);
    for (int index : body.sides)
      for (int layout : sides[index].layoutOf)
        (sides[index].place ? columns : rows).use(layout);
    for (size_t c = 0; c < body.copies.size(); ++c)
      if (result.copies[star][body.copies[c]] < kIllegal)
        columns.use(int(c));
    rows.number();
    columns.number();
    auto take = [&](SharedTable &table, const Kept &kept) {
      SharedTable &mine = tables[{table, kept.all, columns.all}];
      if (!mine)
        mine = pick(*table, kept, columns);
      table = mine;
    };
    take(body.made, rows);
    if (body.copied)
      take(body.copied, columns);
    if (!body.madeReturn.empty())
      body.madeReturn = pick(body.madeReturn, rows);
    if (!body.copiedReturn.empty())
      body.copiedReturn = pick(body.copiedReturn, columns);
    for (size_t c = 0; c < columns.all.size() && body.copied; ++c)
      body.copies[c] = body.copies[columns.all[c]];
    body.copies.resize(body.copied ? columns.all.size() : 0);
    body.rows = rows.all.size();
    body.columns = columns.all.size();
    for (int index : body.sides) {
      for (int &layout : sides[index].layoutOf)
        layout = (sides[index].place ? columns : rows).place[layout];
      setBest(sides[index]);
    }
  }
}

DualBound Ascent::run() {
  constexpr int mostRounds = 48;
  // A round that closes less than this part of the gap is the last.
  constexpr Time finest = 64;
  for (int turn = 0; turn < mostRounds && !dead; ++turn) {
    Time before = total;
    for (size_t i = 0; i < sequence.size() && !dead; ++i)
      visit(sequence[i], /*forth=*/true);
    for (size_t i = sequence.size(); i-- > 0 && !dead;)
      visit(sequence[i], /*forth=*/false);
    if (dead)
      break;
    round();
    Time gap = result.cost < kIllegal ? result.cost - total : total;
    if (gap <= 0 || (turn > 0 && total - before <= gap / finest))
      break;
    if (dropped * 8 > alive)
      compress();
  }
  for (size_t star = 0; star < bodies.size() && !dead; ++star)
    findCopies(star);
  // Whatever was dropped costs more than what is known.
  result.bound = dead ? result.cost : std::min(total, result.cost);
  if (result.bound >= kIllegal)
    for (std::vector<Time> &costs : result.marginals)
      costs.assign(costs.size(), kIllegal);
  return std::move(result);
}

} // namespace

StarProblem starsOf(const Problem &problem) {
  StarProblem result;
  std::vector<std::vector<int>> identity;
  for (const Variable &variable : problem.variables) {
    result.unary.push_back(variable.unary);
    std::vector<int> &own = identity.emplace_back(variable.unary.size());
    std::iota(own.begin(), own.end(), 0);
  }
  for (const Pair &pair : problem.pairs) {
    Star star;
    star.maker = {pair.a, identity[pair.a]};
    star.readers.push_back({pair.b, identity[pair.b]});
    star.rows = int(identity[pair.a].size());
    star.columns = int(identity[pair.b].size());
    star.made = std::make_shared<const std::vector<Time>>(pair.table);
    result.stars.push_back(std::move(star));
  }
  return result;
}

Time costOf(const StarProblem &problem, const std::vector<int> &assignment) {
  Time total = 0;
  for (size_t v = 0; v < assignment.size(); ++v)
    total = add(total, problem.unary[v][assignment[v]]);
  for (const Star &star : problem.stars) {
    auto layout = [&](const Star::End &end) {
      return size_t(end.layoutOf[assignment[end.variable]]);
    };
    const size_t columns = size_t(star.columns), p = layout(star.maker);
    const Time *made = star.made->data() + p * columns;
    Time least = star.madeReturn.empty() ? 0 : star.madeReturn[p];
    for (const Star::End &reader : star.readers)
      least = add(least, made[layout(reader)]);
    for (size_t c = 0; star.copied && c < columns; ++c) {
      Time cost = made[c];
      for (const Star::End &reader : star.readers)
        cost =
            add(cost, std::min(made[layout(reader)],
                               (*star.copied)[c * columns + layout(reader)]));
      if (!star.madeReturn.empty())
        cost = add(cost, std::min(star.madeReturn[p], star.copiedReturn[c]));
      least = std::min(least, cost);
    }
    total = add(total, least);
  }
  return total;
}

DualBound dualBound(const StarProblem &problem,
                    const std::vector<int> &sequence, const Price &price) {
  return Ascent(problem, sequence, price).run();
}

} // namespace mtp::plan
