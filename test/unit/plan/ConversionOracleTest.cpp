// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ConversionOracleTest.cpp - every layout, every op, shortest paths --===//
//
// The oracle writes down all layouts of a small tensor, asks of each pair
// whether one op of the table leads from one to the other, and closes that
// under sums (Floyd and Warshall). It shares the costs of collectives with the
// planner, nothing else.
//
//===----------------------------------------------------------------------===//
#include "compiler/plan/Conversions.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace mtp;
using namespace mtp::plan;

namespace {

/// What an op of the table costs its ranks.
enum class Move { Nothing, Reduce, Gather, Scatter, Exchange };

struct Step {
  std::vector<int> axes; ///< major first
  Move forward, backward;
  bool permutes = false;
};

struct Case {
  std::string mesh; ///< "dp=2,tp=2x3"; x: parts of one axis
  TensorInfo tensor;
  int64_t unit = 1;    ///< dimensions are cut in units of 1 and of this
  bool hosts = false;  ///< the first axis crosses hosts
  bool maxima = false; ///< P(max) is a state as well
};

void PrintTo(const Case &of, std::ostream *out) {
  *out << of.mesh;
  for (int64_t extent : of.tensor.shape)
    *out << " " << extent;
}

class ConversionOracle {
public:
  explicit ConversionOracle(const Case &of) : tensor(of.tensor) {
    readMesh(of);
    Layout start(mesh.size(), int(tensor.shape.size()));
    place(start, 0, of);
    size_t count = layouts.size();
    least.assign(count * count, kIllegal);
    for (size_t a = 0; a < count; ++a)
      for (size_t b = 0; b < count; ++b)
        if (a == b)
          least[a * count + b] = 0;
        else if (auto step = stepBetween(layouts[a], layouts[b]))
          least[a * count + b] = cost(*step, layouts[a], layouts[b]);
    direct = least;
    for (size_t via = 0; via < count; ++via)
      for (size_t a = 0; a < count; ++a)
        if (Time first = least[a * count + via]; first < kIllegal)
          for (size_t b = 0; b < count; ++b) {
            Time total = first + least[via * count + b];
            least[a * count + b] = std::min(least[a * count + b], total);
          }
  }

  /// Without a cotangent, invariant serves as replicated.
  Time leastCost(size_t from, size_t to) const {
    Time cost = least[from * layouts.size() + to];
    if (!tensor.cotangent)
      for (size_t other = 0; other < layouts.size(); ++other)
        if (serves(layouts[other], layouts[to]))
          cost = std::min(cost, least[from * layouts.size() + other]);
    return cost;
  }
  /// Of one op; kIllegal if there is none.
  Time directCost(const Layout &from, const Layout &to) const {
    return direct[indexOf(from) * layouts.size() + indexOf(to)];
  }

  MeshShape mesh;
  Machine machine;
  TensorInfo tensor;
  std::vector<Layout> layouts;

private:
  void readMesh(const Case &of) {
    std::vector<std::pair<std::string, int64_t>> links;
    for (llvm::StringRef rest = of.mesh; !rest.empty();) {
      auto [axis, others] = rest.split(',');
      auto [name, sizes] = axis.split('=');
      llvm::SmallVector<llvm::StringRef> parts;
      sizes.split(parts, 'x');
      for (auto [part, text] : llvm::enumerate(parts)) {
        int64_t size = 0;
        EXPECT_FALSE(text.getAsInteger(10, size));
        mesh.axes.push_back(
            {name.str(), parts.size() > 1 ? int(part) : -1, size});
        links.push_back({mesh.axes.back().name(), size});
      }
      rest = others;
    }
    machine = Machine::cpuThreads(links);
    if (of.hosts) {
      machine.axes[0].ranksPerHost = 1;
      machine.axes[0].outer = {9'000'000, 3'000'000};
    }
  }

  /// All layouts in which axes from `axis` on take any state and any place.
  void place(const Layout &layout, int axis, const Case &of) {
    if (axis == mesh.size())
      return addUnits(layout, 0, of.unit);
    std::vector<Kind> kinds{Kind::I, Kind::R, Kind::PSum};
    if (of.maxima)
      kinds.push_back(Kind::PMax);
    for (Kind kind : kinds) {
      Layout next = layout;
      next.states[axis] = {kind, -1};
      if (!mixes(next))
        place(next, axis + 1, of);
    }
    for (size_t dim = 0; dim < tensor.shape.size(); ++dim)
      for (size_t at = 0; at <= layout.dims[dim].axes.size(); ++at) {
        Layout next = layout;
        next.states[axis] = {Kind::S, int(dim)};
        auto &cut = next.dims[dim].axes;
        cut.insert(cut.begin() + long(at), axis);
        place(next, axis + 1, of);
      }
  }
  void addUnits(Layout layout, size_t dim, int64_t unit) {
    if (dim == tensor.shape.size()) {
      places.emplace(layout.text(mesh), layouts.size());
      layouts.push_back(std::move(layout));
      return;
    }
    addUnits(layout, dim + 1, unit);
    if (layout.dims[dim].axes.empty() || unit == 1)
      return;
    std::vector<int64_t> plain = sizes(layout, dim);
    layout.dims[dim].unit = unit;
    if (sizes(layout, dim) != plain)
      addUnits(std::move(layout), dim + 1, unit);
  }

  /// Extents of a dimension's blocks: whole, cut by its first axis, ...
  std::vector<int64_t> sizes(const Layout &layout, size_t dim) const {
    const DimCut &cut = layout.dims[dim];
    std::vector<int64_t> all{tensor.shape[dim]};
    int64_t count = (tensor.shape[dim] + cut.unit - 1) / cut.unit;
    for (int axis : cut.axes) {
      int64_t ranks = mesh.axes[axis].size;
      count = (count + ranks - 1) / ranks;
      all.push_back(count * cut.unit);
    }
    return all;
  }

  static bool mixes(const Layout &layout) {
    bool sums = false, maxima = false;
    for (AxisState state : layout.states) {
      sums |= state.kind == Kind::PSum;
      maxima |= state.kind == Kind::PMax;
    }
    return sums && maxima;
  }
  static bool serves(const Layout &have, const Layout &want) {
    for (auto [mine, other] : llvm::zip_equal(have.states, want.states))
      if (!(mine == other) && !(mine.kind == Kind::I && other.kind == Kind::R))
        return false;
    return have.dims == want.dims;
  }

  static std::optional<Move> moveOf(Kind from, Kind to) {
    using K = Kind;
    static const std::map<std::pair<Kind, Kind>, Move> table{
        {{K::I, K::R}, Move::Nothing},    {{K::I, K::S}, Move::Nothing},
        {{K::I, K::PSum}, Move::Nothing}, {{K::R, K::I}, Move::Nothing},
        {{K::R, K::S}, Move::Nothing},    {{K::R, K::PSum}, Move::Nothing},
        {{K::S, K::I}, Move::Gather},     {{K::S, K::R}, Move::Gather},
        {{K::S, K::S}, Move::Exchange},   {{K::S, K::PSum}, Move::Nothing},
        {{K::PSum, K::I}, Move::Reduce},  {{K::PSum, K::R}, Move::Reduce},
        {{K::PSum, K::S}, Move::Scatter}, {{K::PMax, K::I}, Move::Reduce},
        {{K::PMax, K::R}, Move::Reduce}};
    auto it = table.find({from, to});
    return it == table.end() ? std::nullopt : std::optional(it->second);
  }

  /// The axes that change, if one op can change them: all from one state to one
  /// state, and minor-most in their dimension in one order.
  std::optional<Step> stepBetween(const Layout &from, const Layout &to) const {
    std::vector<int> changed;
    for (int axis = 0; axis < mesh.size(); ++axis)
      if (!(from.states[axis] == to.states[axis]))
        changed.push_back(axis);
    if (changed.empty())
      return permutation(from, to);
    AxisState have = from.states[changed[0]], get = to.states[changed[0]];
    for (int axis : changed)
      if (!(from.states[axis] == have) || !(to.states[axis] == get))
        return std::nullopt;
    auto forward = moveOf(have.kind, get.kind),
         backward = moveOf(dual(get.kind), dual(have.kind));
    if (!forward)
      return std::nullopt;
    Step step{changed, *forward, backward.value_or(Move::Nothing)};
    for (auto [layout, dim] : {std::pair(&to, get.dim), {&from, have.dim}})
      if (dim >= 0) {
        const auto &cut = layout->dims[dim].axes;
        if (cut.size() < changed.size())
          return std::nullopt;
        step.axes.assign(cut.end() - long(changed.size()), cut.end());
      }
    for (size_t dim = 0; dim < tensor.shape.size(); ++dim)
      if (!isCutAlike(from, to, dim, have.dim == int(dim), get.dim == int(dim),
                      step.axes))
        return std::nullopt;
    return step;
  }

  /// `taken` and `given`: `axes` cut the dimension before or afterwards, and
  /// are the minor-most there.
  bool isCutAlike(const Layout &from, const Layout &to, size_t dim, bool taken,
                  bool given, const std::vector<int> &axes) const {
    std::vector<int> before(from.dims[dim].axes.begin(),
                            from.dims[dim].axes.end()),
        after(to.dims[dim].axes.begin(), to.dims[dim].axes.end());
    std::vector<int64_t> old = sizes(from, dim), now = sizes(to, dim);
    for (auto [cut, blocks, isMine] :
         {std::tuple(&before, &old, taken), {&after, &now, given}}) {
      if (!isMine)
        continue;
      if (!std::equal(axes.rbegin(), axes.rend(), cut->rbegin()))
        return false;
      cut->resize(cut->size() - axes.size());
      blocks->resize(blocks->size() - axes.size());
    }
    return before == after && old == now;
  }

  std::optional<Step> permutation(const Layout &from, const Layout &to) const {
    std::optional<Step> step;
    for (size_t dim = 0; dim < tensor.shape.size(); ++dim) {
      const auto &have = from.dims[dim].axes, &want = to.dims[dim].axes;
      if (have == want) {
        if (sizes(from, dim) != sizes(to, dim))
          return std::nullopt;
        continue;
      }
      int64_t ranks = 1;
      for (int axis : have)
        ranks *= mesh.axes[axis].size;
      for (const Layout *layout : {&from, &to})
        if (sizes(*layout, dim).back() * ranks != tensor.shape[dim])
          return std::nullopt;
      if (step)
        return std::nullopt;
      auto first = std::mismatch(have.begin(), have.end(), want.begin()).second;
      step = Step{{first, want.end()},
                  Move::Exchange,
                  Move::Exchange,
                  /*permutes=*/true};
    }
    return step;
  }

  Time cost(const Step &step, const Layout &from, const Layout &to) const {
    Time forward = cost(step, step.forward, from, to);
    return tensor.cotangent && tensor.gradient
               ? add(forward, cost(step, step.backward, to, from))
               : forward;
  }
  Time cost(const Step &step, Move move, const Layout &from,
            const Layout &to) const {
    int64_t ranks = 1, have = tensor.elementBytes, get = have, piece = have;
    for (int axis : step.axes)
      ranks *= mesh.axes[axis].size;
    for (size_t dim = 0; dim < tensor.shape.size(); ++dim) {
      int64_t mine = sizes(from, dim).back(), next = sizes(to, dim).back();
      have *= mine;
      get *= next;
      piece *= std::min(mine, next);
    }
    switch (move) {
    case Move::Nothing:
      return 0;
    case Move::Reduce:
      return allReduce(machine, step.axes, have);
    case Move::Gather:
      return allGather(machine, step.axes, have * ranks);
    case Move::Scatter:
      return reduceScatter(machine, step.axes, get * ranks);
    case Move::Exchange:
      return step.permutes
                 ? permute(machine, step.axes, have * ranks)
                 : allToAll(machine, step.axes, piece * ranks * ranks);
    }
    return kIllegal;
  }

  size_t indexOf(const Layout &layout) const {
    return places.at(layout.text(mesh));
  }

  std::map<std::string, size_t> places;
  std::vector<Time> direct, least;
};

Layout dualOf(const Layout &layout) {
  Layout result = layout;
  for (AxisState &state : result.states)
    state.kind = dual(state.kind);
  return result;
}

const TensorInfo even{{4, 8, 16}, 4}, uneven{{3, 7, 10}, 8},
    wide{{8, 16, 8}, 1 << 16}, table{{8, 12}, 1 << 14}, oddTable{{5, 6}, 4},
    line{{7}, 4}, integers{{4, 6}, 8, false},
    frozen{{4, 6, 4}, 1 << 12, true, false}, batches{{1, 6, 3}, 1 << 10};

class ConversionOracleTest : public testing::TestWithParam<Case> {};

/// Every path, or of very many some: it costs what the oracle says, is made of
/// single ops of the table, and backwards of their conjugates.
TEST_P(ConversionOracleTest, PathsAreTheShortestOfAll) {
  ConversionOracle oracle(GetParam());
  const std::vector<Layout> &layouts = oracle.layouts;
  Conversions conversions(oracle.mesh, oracle.machine);
  auto text = [&](const Layout &layout) {
    return "<" + layout.text(oracle.mesh) + ">";
  };
  bool hasConjugates =
      !GetParam().maxima && oracle.tensor.cotangent && oracle.tensor.gradient;
  constexpr size_t mostPairs = 6000;
  size_t pairs = layouts.size() * layouts.size(),
         every = std::max<size_t>(1, pairs / mostPairs | 1);
  size_t dearer = 0;
  for (size_t pair = 0; pair < pairs; pair += every) {
    size_t a = pair / layouts.size(), b = pair % layouts.size();
    const Layout &from = layouts[a], &to = layouts[b];
    SCOPED_TRACE(text(from) + " to " + text(to));
    ConversionPath path = conversions.pathBetween(oracle.tensor, from, to);
    Time least = oracle.leastCost(a, b);
    ASSERT_GE(path.cost, least);
    if (path.cost != least && ++dearer <= 5)
      ADD_FAILURE() << path.cost << " instead of " << least;
    ASSERT_EQ(conversions.cost(oracle.tensor, from, to), path.cost);
    if (path.cost >= kIllegal)
      continue;
    Layout at = from;
    Time sum = 0;
    for (const ConversionStep &step : path.steps) {
      Time mine = add(step.forward.time, step.backward.time);
      ASSERT_EQ(mine, oracle.directCost(at, step.result));
      if (hasConjugates)
        ASSERT_EQ(mine, oracle.directCost(dualOf(step.result), dualOf(at)));
      at = step.result;
      sum = add(sum, mine);
    }
    EXPECT_EQ(sum, path.cost);
    if (oracle.tensor.cotangent)
      EXPECT_EQ(at, to);
  }
  EXPECT_EQ(dearer, 0u) << "of " << pairs / every;
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, ConversionOracleTest,
    testing::Values(
        Case{"tp=8", even}, Case{"tp=8", uneven, 2},
        Case{"tp=8", oddTable, 1, false, true}, Case{"dp=2,tp=2", even},
        Case{"dp=2,tp=2", uneven, 2}, Case{"dp=2,tp=2", wide, 1, true},
        Case{"dp=2,tp=3", uneven}, Case{"dp=2,tp=3", table, 4},
        Case{"dp=2,tp=3", frozen, 1, false, true},
        Case{"dp=2,tp=3", batches, 3, true}, Case{"dp=2,tp=2", integers},
        Case{"tp=2x2", even}, Case{"tp=2x2", oddTable, 3},
        Case{"tp=2x2", wide, 1, true}, Case{"a=2,b=2,c=2", line, 2},
        Case{"a=2,b=2,c=2", table}, Case{"a=2,b=2,c=2", oddTable, 2, true},
        Case{"a=2,b=2,c=2", even}, Case{"a=2,b=2,c=2", uneven},
        Case{"dp=2,tp=2x2", wide}, Case{"dp=3,tp=2x2", batches, 1, true},
        Case{"dp=2,tp=2x2", frozen}, Case{"tp=2x2x2", table},
        Case{"a=2,b=3,c=2", integers}, Case{"dp=2,tp=2x2,ep=2", line}));

} // namespace
