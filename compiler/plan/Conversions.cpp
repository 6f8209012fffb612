// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Conversions.h"

#include <map>
#include <queue>
#include <unordered_map>

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using llvm::StringRef;

namespace mtp::plan {

std::optional<Transfer> transferBetween(Kind from, Kind to) {
  if (from == Kind::S) {
    if (to == Kind::S)
      return Transfer::AllToAll;
    if (to == Kind::PSum)
      return Transfer::Pad;
    return isPartial(to) ? std::nullopt : std::optional(Transfer::AllGather);
  }
  if (isPartial(from)) {
    if (to == Kind::I || to == Kind::R)
      return Transfer::AllReduce;
    return from == Kind::PSum && to == Kind::S
               ? std::optional(Transfer::ReduceScatter)
               : std::nullopt;
  }
  if (from == to)
    return std::nullopt;
  if (to == Kind::S)
    return Transfer::Slice;
  if (to == Kind::PSum)
    return Transfer::Root;
  return isPartial(to) ? std::nullopt : std::optional(Transfer::None);
}

StringRef collectiveName(Transfer transfer) {
  switch (transfer) {
  case Transfer::AllReduce:
    return "all_reduce";
  case Transfer::AllGather:
    return "all_gather";
  case Transfer::ReduceScatter:
    return "reduce_scatter";
  case Transfer::AllToAll:
    return "all_to_all";
  case Transfer::Permute:
    return "permute";
  case Transfer::None:
  case Transfer::Slice:
  case Transfer::Pad:
  case Transfer::Root:
    break;
  }
  return "";
}

int64_t localBytes(const TensorInfo &tensor, const Layout &layout,
                   const MeshShape &mesh) {
  int64_t bytes = tensor.elementBytes;
  for (int64_t extent : layout.localShape(tensor.shape, mesh))
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return INT64_MAX;
  return bytes;
}

static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

Traffic trafficOf(const TensorInfo &tensor, Transfer transfer,
                  ArrayRef<int> axes, const Layout &from, const Layout &to,
                  const MeshShape &mesh, const Machine &machine) {
  Traffic result;
  int64_t ranks = 1;
  for (int axis : axes)
    ranks *= mesh.axes[axis].size;
  if (ranks == 1)
    return result;
  result.transfer = transfer;
  if (collectiveName(transfer).empty())
    return result;
  std::vector<int> group(axes.begin(), axes.end());
  int64_t local = localBytes(tensor, from, mesh), full = times(local, ranks);
  auto share = [&](int64_t bytes) { // (n-1)/n of it
    return static_cast<int64_t>(
        (static_cast<__int128>(bytes) * (ranks - 1) + ranks - 1) / ranks);
  };
  result.bytes = local;
  switch (transfer) {
  case Transfer::AllReduce:
    result.wireBytes = share(times(2, local));
    result.time = allReduce(machine, group, local);
    break;
  case Transfer::AllGather:
    result.wireBytes = share(full);
    result.time = allGather(machine, group, full);
    break;
  case Transfer::ReduceScatter:
    result.wireBytes = share(local);
    result.time = reduceScatter(machine, group,
                                times(localBytes(tensor, to, mesh), ranks));
    break;
  case Transfer::AllToAll: {
    // A rank sends `ranks` pieces, cut like the result in the new dimension and
    // like the operand in the old one.
    SmallVector<int64_t> in = from.localShape(tensor.shape, mesh);
    SmallVector<int64_t> out = to.localShape(tensor.shape, mesh);
    int64_t piece = tensor.elementBytes;
    for (auto [a, b] : llvm::zip_equal(in, out))
      piece = times(piece, std::min(a, b));
    result.wireBytes = share(local);
    result.time = allToAll(machine, group, times(times(piece, ranks), ranks));
    break;
  }
  case Transfer::Permute:
    result.wireBytes = local;
    result.time = permute(machine, group, full);
    break;
  default:
    break;
  }
  return result;
}

/// Nodes are layouts, edges single conversions.
class ConversionGraph {
public:
  ConversionGraph(TensorInfo tensor, ConversionUnits units,
                  const MeshShape &mesh, const Machine &machine)
      : tensor(std::move(tensor)), units(std::move(units)), mesh(mesh),
        machine(machine) {}

  const ConversionPath &path(const Layout &from, const Layout &to);
  Time cost(const Layout &from, const Layout &to);
  /// From each to each, row-major.
  std::vector<Time> costs(ArrayRef<const Layout *> from,
                          ArrayRef<const Layout *> to);

private:
  /// Where one op leads, and what else stepOf() needs of it.
  struct Edge {
    int to;
    Time cost;
  };
  struct EdgeOp {
    Transfer forward;
    std::optional<Transfer> backward;
    SmallVector<uint8_t, 8> axes;
    StringRef name;
  };
  struct Node {
    Layout layout;
    bool expanded = false;
    std::vector<Edge> edges;
    std::vector<EdgeOp> ops; ///< by edge
  };
  /// Cheapest first; among equals fewest steps, then the node found first.
  using Entry = std::tuple<Time, int, int>;
  /// Dijkstra from one node, stopped when the last question was answered.
  struct Search {
    struct Label {
      Time cost = kIllegal;
      int steps = 0, before = -1, edge = -1;
      bool settled = false;
    };
    std::vector<Label> labels;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  };

  int nodeOf(const Layout &layout);
  void expand(int node);
  void addMove(int node, ArrayRef<int> axes, AxisState state);
  void addPermutes(int node);
  void addEdge(int node, StringRef name, ArrayRef<int> axes, Transfer forward,
               std::optional<Transfer> backward, Layout result);
  ConversionStep stepOf(int node, int to, const EdgeOp &op) const;
  SmallVector<int, 4> targetsOf(const Layout &to);
  const std::vector<Time> &costsFrom(int source);
  Search &settle(int from, int to);
  int endOf(int source, const Layout &to);

  TensorInfo tensor;
  ConversionUnits units;
  const MeshShape &mesh;
  const Machine &machine;
  std::vector<Node> nodes;
  std::unordered_multimap<size_t, int> byHash;
  std::unordered_map<int, Search> searches;
  std::unordered_map<int, std::vector<Time>> reached; ///< by source
  std::map<std::pair<int, int>, ConversionPath> paths;
};

int ConversionGraph::nodeOf(const Layout &layout) {
  size_t hash = hash_value(layout);
  auto [first, last] = byHash.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (nodes[it->second].layout == layout)
      return it->second;
  byHash.emplace(hash, int(nodes.size()));
  nodes.push_back({layout, false, {}, {}});
  return int(nodes.size()) - 1;
}

void ConversionGraph::addEdge(int node, StringRef name, ArrayRef<int> axes,
                              Transfer forward,
                              std::optional<Transfer> backward, Layout result) {
  if (!tensor.cotangent || !tensor.gradient)
    backward.reset();
  EdgeOp op{forward, backward, {}, name};
  op.axes.assign(axes.begin(), axes.end());
  int to = nodeOf(result);
  ConversionStep step = stepOf(node, to, op);
  nodes[node].edges.push_back({to, add(step.forward.time, step.backward.time)});
  nodes[node].ops.push_back(std::move(op));
}

ConversionStep ConversionGraph::stepOf(int node, int end,
                                       const EdgeOp &op) const {
  const Layout &from = nodes[node].layout, &to = nodes[end].layout;
  ConversionStep step;
  step.name = op.name;
  step.axes.assign(op.axes.begin(), op.axes.end());
  step.result = to;
  step.forward =
      trafficOf(tensor, op.forward, step.axes, from, to, mesh, machine);
  if (op.backward)
    step.backward =
        trafficOf(tensor, *op.backward, step.axes, to, from, mesh, machine);
  return step;
}

/// Takes `axes` off the minor end of their dimension.
static void takeOff(Layout &layout, ArrayRef<int> axes) {
  DimCut &cut = layout.dims[layout.states[axes[0]].dim];
  int64_t unit = cut.unit;
  for (int axis : axes)
    layout.unshard(axis, Kind::I);
  if (!cut.axes.empty())
    cut.unit = unit;
}

static bool mixesReductions(const Layout &layout) {
  Kind reduction = Kind::I;
  for (AxisState state : layout.states)
    if (isPartial(state.kind)) {
      if (reduction != Kind::I && reduction != state.kind)
        return true;
      reduction = state.kind;
    }
  return false;
}

/// Moves `axes`, major first, which have one state, to another. Those that cut
/// a dimension are its minor-most.
void ConversionGraph::addMove(int node, ArrayRef<int> axes, AxisState state) {
  Layout base = nodes[node].layout;
  AxisState have = base.states[axes[0]];
  auto forward = transferBetween(have.kind, state.kind);
  StringRef name = conversionName(have.kind, state.kind);
  if (have == state || !forward || name.empty())
    return;
  if (have.kind == Kind::S)
    takeOff(base, axes);
  base.canonicalize(tensor.shape, mesh);
  auto backward = transferBetween(dual(state.kind), dual(have.kind));
  if (state.kind != Kind::S) {
    for (int axis : axes)
      base.setKind(axis, state.kind);
    if (!mixesReductions(base))
      addEdge(node, name, axes, *forward, backward, std::move(base));
    return;
  }
  // A unit of either end with which the blocks that are already there are the
  // same.
  SmallVector<Layout, 2> results;
  for (int64_t unit : units[state.dim]) {
    Layout cut = base;
    cut.dims[state.dim].unit = cut.dims[state.dim].axes.empty() ? 1 : unit;
    cut.canonicalize(tensor.shape, mesh);
    if (cut != base)
      continue;
    for (int axis : axes)
      cut.shard(axis, state.dim);
    cut.dims[state.dim].unit = unit;
    cut.canonicalize(tensor.shape, mesh);
    if (llvm::is_contained(results, cut))
      continue;
    results.push_back(cut);
    addEdge(node, name, axes, *forward, backward, std::move(cut));
  }
}

/// Any other order of the axes of a dimension; padded blocks cannot be
/// permuted.
void ConversionGraph::addPermutes(int node) {
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    Layout at = nodes[node].layout;
    if (at.dims[dim].axes.size() < 2 ||
        at.isPadded(int(dim), tensor.shape[dim], mesh))
      continue;
    SmallVector<int, 4> have(at.dims[dim].axes.begin(),
                             at.dims[dim].axes.end()),
        want = have;
    llvm::sort(want);
    do {
      size_t kept =
          std::mismatch(have.begin(), have.end(), want.begin()).first -
          have.begin();
      if (kept == have.size())
        continue;
      Layout result = at;
      result.dims[dim].axes.assign(want.begin(), want.end());
      result.canonicalize(tensor.shape, mesh);
      addEdge(node, "mtp.permute", ArrayRef<int>(want).drop_front(kept),
              Transfer::Permute, Transfer::Permute, std::move(result));
    } while (std::next_permutation(want.begin(), want.end()));
  }
}

/// Axes move together that have one state. The order of their ranks is that of
/// the blocks: axes of a dimension are its minor-most as they stand there, and
/// those that are going to cut one may do so in any order.
void ConversionGraph::expand(int node) {
  nodes[node].expanded = true;
  const Layout layout = nodes[node].layout; // nodes may move
  auto addMoves = [&](ArrayRef<int> axes) {
    for (Kind kind : {Kind::I, Kind::R, Kind::PSum})
      addMove(node, axes, {kind, -1});
  };
  auto addCuts = [&](ArrayRef<int> axes) {
    for (size_t dim = 0; dim < layout.dims.size(); ++dim)
      addMove(node, axes, {Kind::S, int(dim)});
  };
  for (const DimCut &cut : layout.dims)
    for (size_t count = 1; count <= cut.axes.size(); ++count) {
      addMoves(ArrayRef(cut.axes).take_back(count));
      addCuts(ArrayRef(cut.axes).take_back(count));
    }
  for (unsigned set = 1; set < (1u << mesh.size()); ++set) {
    SmallVector<int, 4> axes;
    for (int axis = 0; axis < mesh.size(); ++axis)
      if (set >> axis & 1)
        axes.push_back(axis);
    AxisState have = layout.states[axes[0]];
    if (have.kind == Kind::S || llvm::any_of(axes, [&](int axis) {
          return !(layout.states[axis] == have);
        }))
      continue;
    addMoves(axes);
    do
      addCuts(axes);
    while (std::next_permutation(axes.begin(), axes.end()));
  }
  addPermutes(node);
}

/// A total order of layouts of one tensor.
static bool isBefore(const Layout &a, const Layout &b) {
  for (auto [x, y] : llvm::zip_equal(a.states, b.states))
    if (!(x == y))
      return std::pair(x.kind, x.dim) < std::pair(y.kind, y.dim);
  for (auto [x, y] : llvm::zip_equal(a.dims, b.dims)) {
    if (x.axes != y.axes)
      return std::lexicographical_compare(x.axes.begin(), x.axes.end(),
                                          y.axes.begin(), y.axes.end());
    if (x.unit != y.unit)
      return x.unit < y.unit;
  }
  return false;
}

ConversionGraph::Search &ConversionGraph::settle(int from, int to) {
  Search &search = searches[from];
  if (search.labels.empty()) {
    search.labels.resize(nodes.size());
    search.labels[from].cost = 0;
    search.queue.push({0, 0, from});
  }
  search.labels.resize(std::max(search.labels.size(), nodes.size()));
  while (!search.labels[to].settled && !search.queue.empty()) {
    auto [cost, steps, node] = search.queue.top();
    search.queue.pop();
    if (search.labels[node].settled)
      continue;
    search.labels[node].settled = true;
    if (!nodes[node].expanded)
      expand(node);
    search.labels.resize(nodes.size());
    for (auto [index, edge] : llvm::enumerate(nodes[node].edges)) {
      Search::Label &label = search.labels[edge.to];
      Time total = add(cost, edge.cost);
      if (label.settled || total >= kIllegal || total > label.cost)
        continue;
      auto mine = std::pair(total, steps + 1),
           known = std::pair(label.cost, label.steps);
      // Among equals the step comes from the layout that is first in a fixed
      // order, so that the path does not depend on earlier questions.
      bool better = label.before < 0 || mine < known ||
                    (mine == known && label.before != node &&
                     isBefore(nodes[node].layout, nodes[label.before].layout));
      if (!better)
        continue;
      label = {total, steps + 1, node, int(index), false};
      search.queue.push({total, steps + 1, edge.to});
    }
  }
  return search;
}

/// The nodes that serve as `to`: without a cotangent, invariant serves as
/// replicated.
SmallVector<int, 4> ConversionGraph::targetsOf(const Layout &to) {
  SmallVector<int, 4> targets{nodeOf(to)};
  for (size_t axis = 0; axis < to.states.size() && !tensor.cotangent; ++axis)
    if (to.states[axis].kind == Kind::R)
      for (size_t i = 0, count = targets.size(); i < count; ++i) {
        Layout other = nodes[targets[i]].layout;
        other.setKind(int(axis), Kind::I);
        targets.push_back(nodeOf(other));
      }
  return targets;
}

/// The node in which the cheapest way to `to` ends, or -1.
int ConversionGraph::endOf(int source, const Layout &to) {
  int best = -1;
  std::pair<Time, int> least;
  for (int candidate : targetsOf(to)) {
    Search::Label label = settle(source, candidate).labels[candidate];
    if (label.settled &&
        (best < 0 || std::pair(label.cost, label.steps) < least)) {
      least = {label.cost, label.steps};
      best = candidate;
    }
  }
  return best;
}

/// The least cost of any of the nodes; those behind the end were not reached.
static Time leastOf(ArrayRef<Time> costs, ArrayRef<int> nodes) {
  Time least = kIllegal;
  for (int node : nodes)
    if (size_t(node) < costs.size())
      least = std::min(least, costs[node]);
  return least;
}

Time ConversionGraph::cost(const Layout &from, const Layout &to) {
  const std::vector<Time> &least = costsFrom(nodeOf(from));
  return leastOf(least, targetsOf(to));
}

/// Of the cheapest ways to all nodes that can be reached.
const std::vector<Time> &ConversionGraph::costsFrom(int source) {
  auto [it, isNew] = reached.try_emplace(source);
  std::vector<Time> &least = it->second;
  if (!isNew)
    return least;
  least.resize(nodes.size(), kIllegal);
  using Reached = std::pair<Time, int>;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<Reached>>
      queue;
  least[source] = 0;
  queue.push({0, source});
  while (!queue.empty()) {
    auto [cost, node] = queue.top();
    queue.pop();
    if (cost > least[node])
      continue;
    if (!nodes[node].expanded) {
      expand(node);
      least.resize(nodes.size(), kIllegal);
    }
    for (const Edge &edge : nodes[node].edges)
      if (Time total = add(cost, edge.cost); total < least[edge.to]) {
        least[edge.to] = total;
        queue.push({total, edge.to});
      }
  }
  return least;
}

std::vector<Time> ConversionGraph::costs(ArrayRef<const Layout *> from,
                                         ArrayRef<const Layout *> to) {
  std::vector<SmallVector<int, 4>> targets;
  for (const Layout *layout : to)
    targets.push_back(targetsOf(*layout));
  std::vector<Time> result;
  result.reserve(from.size() * to.size());
  for (const Layout *layout : from) {
    const std::vector<Time> &least = costsFrom(nodeOf(*layout));
    for (const SmallVector<int, 4> &ends : targets)
      result.push_back(leastOf(least, ends));
  }
  return result;
}

const ConversionPath &ConversionGraph::path(const Layout &from,
                                            const Layout &to) {
  int source = nodeOf(from);
  auto [it, isNew] = paths.try_emplace({source, nodeOf(to)});
  ConversionPath &path = it->second;
  if (!isNew)
    return path;
  path.cost = kIllegal;
  int end = endOf(source, to);
  if (end < 0)
    return path;
  Search &search = searches[source];
  path.cost = search.labels[end].cost;
  for (int at = end; at != source; at = search.labels[at].before) {
    int before = search.labels[at].before;
    path.steps.push_back(
        stepOf(before, at, nodes[before].ops[search.labels[at].edge]));
  }
  std::reverse(path.steps.begin(), path.steps.end());
  return path;
}

Conversions::Conversions(MeshShape mesh, Machine machine)
    : mesh(std::move(mesh)), machine(std::move(machine)) {}
Conversions::~Conversions() = default;

static void addUnit(SmallVector<int64_t, 2> &units, int64_t unit) {
  if (!llvm::is_contained(units, unit))
    units.push_back(unit);
}

ConversionGraph &Conversions::graphOf(const TensorInfo &tensor,
                                      const Layout &from, const Layout &to) {
  ConversionUnits units(tensor.shape.size(), {1});
  for (auto [mine, a, b] : llvm::zip_equal(units, from.dims, to.dims)) {
    if (a.axes.empty() && b.axes.empty())
      continue;
    for (int64_t unit :
         {int64_t(1), std::min(a.unit, b.unit), std::max(a.unit, b.unit)})
      addUnit(mine, unit);
  }
  return graphOf(tensor, std::move(units));
}

ConversionGraph &Conversions::graphOf(const TensorInfo &tensor,
                                      ConversionUnits units) {
  for (Entry &entry : llvm::reverse(graphs)) // neighbouring questions are alike
    if (entry.tensor == tensor && entry.units == units)
      return *entry.graph;
  graphs.push_back(
      {tensor, units,
       std::make_unique<ConversionGraph>(tensor, units, mesh, machine)});
  return *graphs.back().graph;
}

ConversionPath Conversions::pathBetween(const TensorInfo &tensor,
                                        const Layout &from, const Layout &to) {
  return graphOf(tensor, from, to).path(from, to);
}

Time Conversions::cost(const TensorInfo &tensor, const Layout &from,
                       const Layout &to) {
  return from == to ? 0 : graphOf(tensor, from, to).cost(from, to);
}

std::vector<Time> Conversions::leastCosts(const TensorInfo &tensor,
                                          ArrayRef<const Layout *> from,
                                          ArrayRef<const Layout *> to) {
  ConversionUnits units(tensor.shape.size(), {1});
  for (ArrayRef<const Layout *> layouts : {from, to})
    for (const Layout *layout : layouts)
      for (auto [mine, cut] : llvm::zip_equal(units, layout->dims))
        if (!cut.axes.empty()) {
          addUnit(mine, 1);
          addUnit(mine, cut.unit);
        }
  for (SmallVector<int64_t, 2> &mine : units)
    llvm::sort(mine);
  return graphOf(tensor, std::move(units)).costs(from, to);
}

} // namespace mtp::plan
