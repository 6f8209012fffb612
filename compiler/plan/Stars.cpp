// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Stars.cpp - the model with copies that are no variables ------------===//
#include "compiler/plan/DualBound.h"
#include "compiler/plan/Model.h"

#include <set>

using namespace mlir;

namespace mtp::plan {
namespace {

/// Layouts at one end of a star.
struct Ends {
  std::vector<int> ids; ///< those that are legal, each once
  /// By strategy a position in `ids`; of illegal ones 0.
  std::vector<int> places(const std::vector<int> &byStrategy) const {
    std::vector<int> result;
    for (int id : byStrategy) {
      auto it = std::lower_bound(ids.begin(), ids.end(), id);
      result.push_back(it != ids.end() && *it == id ? int(it - ids.begin())
                                                    : 0);
    }
    return result;
  }
  void sort() {
    llvm::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }
};

} // namespace

/// Tables of equal layers are made once.
class Model::StarTables {
public:
  /// A dry run counts entries alone.
  StarTables(Model &model, bool exact, int64_t mostEntries, bool dry)
      : model(model), exact(exact), dry(dry), left(mostEntries) {}

  std::optional<Model::Stars> build() {
    for (auto [index, value] : llvm::enumerate(model.values))
      if (left >= 0 && model.addSource(value) && !value.uses.empty())
        addValue(value, int(index));
    if (left < 0)
      return std::nullopt;
    for (const Variable &variable : model.tables.variables)
      result.problem.unary.push_back(variable.unary);
    return std::move(result);
  }

private:
  SharedTable share(const ValueModel &value, const std::vector<int> &from,
                    const std::vector<int> &to, bool isPenalty = false) {
    std::vector<int> key{value.infoId, isPenalty, value.isWeight,
                         value.holdsClasses, int(from.size())};
    key.insert(key.end(), from.begin(), from.end());
    key.insert(key.end(), to.begin(), to.end());
    SharedTable &table = known[std::move(key)];
    if (table)
      return table;
    std::vector<Time> costs;
    left -= int64_t(from.size() * to.size());
    if (dry)
      return table = std::make_shared<const std::vector<Time>>();
    if (!exact && !isPenalty) {
      auto layoutsOf = [&](const std::vector<int> &ids) {
        std::vector<const Layout *> layouts;
        for (int id : ids)
          layouts.push_back(&model.layouts[id]);
        return layouts;
      };
      costs = model.conversions.leastCosts(value.info, layoutsOf(from),
                                           layoutsOf(to));
      return table =
                 std::make_shared<const std::vector<Time>>(std::move(costs));
    }
    costs.reserve(from.size() * to.size());
    for (int a : from)
      for (int b : to)
        costs.push_back(isPenalty ? model.usePenalty(value, model.layouts[a],
                                                     model.layouts[b])
                                  : model.pathCost(value, a, b));
    return table = std::make_shared<const std::vector<Time>>(std::move(costs));
  }

  bool isLegal(int variable, size_t strategy) const {
    return model.tables.variables[variable].unary[strategy] < kIllegal;
  }

  void add(Star star, int value, std::vector<int> columns) {
    result.problem.stars.push_back(std::move(star));
    result.values.push_back(value);
    result.columns.push_back(std::move(columns));
  }

  void addValue(const ValueModel &value, int index) {
    Star star;
    star.maker.variable = model.units[value.unit].variable;
    Ends rows, columns{value.copies};
    std::vector<int> made;
    for (size_t x = 0; x < value.producedOf.size(); ++x) {
      made.push_back(value.produced[value.producedOf[x]]);
      if (isLegal(star.maker.variable, x))
        rows.ids.push_back(made.back());
    }
    rows.sort();
    star.maker.layoutOf = rows.places(made);
    std::vector<std::vector<int>> read;
    Time returns = 0;
    for (const Use &use : value.uses) {
      if (use.unit < 0) {
        ++returns;
        continue;
      }
      const Unit &user = model.units[use.unit];
      star.readers.push_back({user.variable, {}});
      std::vector<int> &mine = read.emplace_back();
      for (size_t y = 0; y < user.space.strategies.size(); ++y) {
        mine.push_back(user.operandId(int(y), use.operand->getOperandNumber()));
        if (isLegal(user.variable, y))
          columns.ids.push_back(mine.back());
      }
    }
    columns.sort();
    for (auto [reader, mine] : llvm::zip_equal(star.readers, read))
      reader.layoutOf = columns.places(mine);
    star.rows = int(rows.ids.size());
    star.columns = int(columns.ids.size());
    if (returns) {
      for (int id : rows.ids)
        star.madeReturn.push_back(times(returns, model.outputCost(value, id)));
      for (int id : columns.ids)
        star.copiedReturn.push_back(
            times(returns, model.outputCost(value, id)));
    }
    star.made = share(value, rows.ids, columns.ids);
    if (value.uses.size() > 1)
      star.copied = share(value, columns.ids, columns.ids);
    if (value.isWeight || value.holdsClasses)
      addPenalties(value, star, rows.ids, columns.ids);
    add(std::move(star), index, std::move(columns.ids));
  }

  static Time times(Time count, Time cost) {
    return cost >= kIllegal ? kIllegal : count * cost;
  }

  /// What the layouts that a value is made and read in cost, whatever the way.
  void addPenalties(const ValueModel &value, const Star &whole,
                    const std::vector<int> &rows,
                    const std::vector<int> &columns) {
    for (const Star::End &reader : whole.readers) {
      Star star;
      star.maker = whole.maker;
      star.readers.push_back(reader);
      star.rows = whole.rows;
      star.columns = whole.columns;
      star.made = share(value, rows, columns, /*isPenalty=*/true);
      add(std::move(star), -1, {});
    }
  }

  Model &model;
  const bool exact, dry;
  int64_t left; ///< entries
  Model::Stars result;
  std::map<std::vector<int>, SharedTable> known;
};

std::optional<Model::Stars> Model::stars(bool exact, int64_t mostEntries) {
  const std::vector<Variable> unbuilt = tables.variables;
  std::optional<Stars> result;
  for (bool dry : {true, false}) {
    result = StarTables(*this, exact, mostEntries, dry).build();
    tables.variables = unbuilt;
    if (!result)
      break;
  }
  return result;
}

void Model::keepCopies(const Stars &stars,
                       const std::vector<std::vector<Time>> &marginals,
                       Time limit) {
  std::map<std::vector<int>, std::set<int>> kept; // by variable to be
  for (size_t star = 0; star < marginals.size(); ++star)
    if (stars.values[star] >= 0)
      for (auto [column, least] : llvm::enumerate(marginals[star]))
        if (least <= limit)
          kept[copyKey(values[stars.values[star]])].insert(
              stars.columns[star][column]);
  for (ValueModel &value : values) {
    const std::set<int> &copies = kept[copyKey(value)];
    value.copies.assign(copies.begin(), copies.end());
  }
}

Time Model::priceOf(const StarProblem &problem,
                    const std::vector<int> &assignment) {
  Time total = 0;
  for (auto [costs, chosen] : llvm::zip_equal(problem.unary, assignment))
    total = add(total, costs[chosen]);
  for (const ValueModel &value : values) {
    if (value.unit < 0)
      continue;
    int from =
        value
            .produced[value.producedOf[assignment[units[value.unit].variable]]];
    // Layouts that it is read in; -1: returned.
    std::vector<int> read;
    for (const Use &use : value.uses) {
      read.push_back(-1);
      if (use.unit < 0)
        continue;
      const Unit &user = units[use.unit];
      read.back() = user.operandId(assignment[user.variable],
                                   use.operand->getOperandNumber());
      total =
          add(total, usePenalty(value, layouts[from], layouts[read.back()]));
    }
    auto way = [&](int have, int want) {
      return want < 0 ? outputCost(value, have) : pathCost(value, have, want);
    };
    Time least = 0;
    for (int want : read)
      least = add(least, way(from, want));
    for (int copy : read) {
      Time cost = copy < 0 ? 0 : pathCost(value, from, copy);
      if (cost == 0)
        continue; // none, or free: it need not be shared
      for (int want : read)
        cost = add(cost, std::min(way(from, want), way(copy, want)));
      least = std::min(least, cost);
    }
    total = add(total, least);
  }
  return total;
}

std::vector<int> Model::dropIllegal(std::vector<int> assignment) {
  for (Unit &unit : units) {
    std::vector<Time> &unary = tables.variables[unit.variable].unary;
    size_t count = unary.size(), kept = 0;
    if (llvm::none_of(unary, [](Time cost) { return cost < kIllegal; }))
      continue;
    if (!assignment.empty()) {
      int &chosen = assignment[unit.variable];
      chosen = int(std::count_if(unary.begin(), unary.begin() + chosen,
                                 [](Time cost) { return cost < kIllegal; }));
    }
    size_t operands = unit.operands.size() / count,
           results = unit.results.size() / count;
    auto move = [&](auto &list, size_t width, size_t from) {
      for (size_t i = 0; from != kept && i < width; ++i)
        list[kept * width + i] = std::move(list[from * width + i]);
    };
    for (size_t x = 0; x < count; ++x) {
      if (unary[x] >= kIllegal)
        continue;
      move(unary, 1, x);
      move(unit.space.strategies, 1, x);
      move(unit.operands, operands, x);
      move(unit.results, results, x);
      ++kept;
    }
    unary.resize(kept);
    unit.space.strategies.resize(kept);
    unit.operands.resize(kept * operands);
    unit.results.resize(kept * results);
  }
  for (ValueModel &value : values)
    if (value.unit >= 0)
      findProduced(value);
  return assignment;
}

} // namespace mtp::plan
