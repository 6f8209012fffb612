// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Conversions.h"

#include <queue>

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
    return from == Kind::PSum && to == Kind::S ? std::optional(Transfer::ReduceScatter)
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
  case Transfer::AllReduce: return "all_reduce";
  case Transfer::AllGather: return "all_gather";
  case Transfer::ReduceScatter: return "reduce_scatter";
  case Transfer::AllToAll: return "all_to_all";
  case Transfer::Permute: return "permute";
  case Transfer::None:
  case Transfer::Slice:
  case Transfer::Pad:
  case Transfer::Root: break;
  }
  return "";
}

/// Saturating product of the local extents and the element size.
static int64_t localBytes(const TensorInfo &tensor, const Layout &layout, const MeshShape &mesh) {
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

Traffic Conversions::traffic(const TensorInfo &tensor, Transfer transfer, ArrayRef<int> axes,
                             const Layout &from, const Layout &to) const {
  Traffic result;
  result.transfer = transfer;
  int64_t ranks = 1;
  for (int axis : axes)
    ranks *= mesh.axes[axis].size;
  std::vector<int> group(axes.begin(), axes.end());
  int64_t local = localBytes(tensor, from, mesh), after = localBytes(tensor, to, mesh);
  auto share = [&](int64_t full) { // (n-1)/n of it
    return static_cast<int64_t>(static_cast<__int128>(full) * (ranks - 1) / ranks);
  };
  switch (transfer) {
  case Transfer::None:
  case Transfer::Slice:
  case Transfer::Pad:
  case Transfer::Root:
    break;
  case Transfer::AllReduce:
    result.bytes = local;
    result.wireBytes = share(times(2, local));
    result.time = allReduce(machine, group, local);
    break;
  case Transfer::AllGather: {
    int64_t full = times(local, ranks);
    result.bytes = local;
    result.wireBytes = share(full);
    result.time = allGather(machine, group, full);
    break;
  }
  case Transfer::ReduceScatter: {
    int64_t full = times(after, ranks);
    result.bytes = full;
    result.wireBytes = share(full);
    result.time = reduceScatter(machine, group, full);
    break;
  }
  case Transfer::AllToAll: {
    // A rank sends `ranks` pieces, cut like the result in the new dimension and
    // like the operand in the old one.
    SmallVector<int64_t> in = from.localShape(tensor.shape, mesh);
    SmallVector<int64_t> out = to.localShape(tensor.shape, mesh);
    int64_t piece = tensor.elementBytes;
    for (auto [a, b] : llvm::zip_equal(in, out))
      piece = times(piece, std::min(a, b));
    result.bytes = times(piece, ranks);
    result.wireBytes = share(result.bytes);
    result.time = allToAll(machine, group, times(result.bytes, ranks));
    break;
  }
  case Transfer::Permute:
    result.bytes = result.wireBytes = local;
    result.time = permute(machine, group, times(local, ranks));
    break;
  }
  return result;
}

/// Takes `axes` off the minor end of their dimension; false if they don't stand
/// there in this order.
static bool takeOff(Layout &layout, ArrayRef<int> axes) {
  int dim = layout.states[axes[0]].dim;
  ArrayRef<int> cut = layout.dims[dim].axes;
  if (cut.size() < axes.size() || cut.take_back(axes.size()) != axes)
    return false;
  for (int axis : axes) {
    int64_t unit = layout.dims[dim].unit;
    layout.unshard(axis, Kind::I);
    if (!layout.dims[dim].axes.empty())
      layout.dims[dim].unit = unit;
  }
  return true;
}

void Conversions::addMove(const Key &key, const Layout &at, ArrayRef<int> axes, AxisState state,
                          SmallVectorImpl<ConversionStep> &moves) const {
  AxisState have = at.states[axes[0]];
  if (have == state)
    return;
  auto transfer = transferBetween(have.kind, state.kind);
  StringRef name = conversionName(have.kind, state.kind);
  if (!transfer || name.empty())
    return;
  // Joint collectives that move blocks need the group's order to be that of the
  // blocks: only the parts of one refined axis have it.
  bool movesBlocks = have.kind == Kind::S || state.kind == Kind::S || state.kind == Kind::PSum;
  for (size_t i = 1; i < axes.size() && movesBlocks; ++i) {
    const MeshShape::Axis &a = mesh.axes[axes[i - 1]], &b = mesh.axes[axes[i]];
    if (a.parent != b.parent || a.part + 1 != b.part)
      return;
  }
  Layout base = at;
  if (have.kind == Kind::S && !takeOff(base, axes))
    return;
  base.canonicalize(key.tensor.shape, mesh);
  SmallVector<Layout, 2> results;
  if (state.kind != Kind::S) {
    for (int axis : axes)
      base.setKind(axis, state.kind);
    results.push_back(base);
  } else {
    // The unit is that of the dimension, or the one that the target wants, if the
    // blocks that are already there are the same with it.
    SmallVector<int64_t, 2> units{base.dims[state.dim].unit};
    int64_t wanted = key.to.dims[state.dim].unit;
    if (wanted != units[0])
      units.push_back(wanted);
    for (int64_t unit : units) {
      Layout cut = base;
      cut.dims[state.dim].unit = unit;
      cut.canonicalize(key.tensor.shape, mesh);
      if (cut != base)
        continue;
      for (int axis : axes)
        cut.shard(axis, state.dim);
      cut.dims[state.dim].unit = unit;
      cut.canonicalize(key.tensor.shape, mesh);
      results.push_back(cut);
    }
  }
  auto back = transferBetween(dual(state.kind), dual(have.kind));
  for (Layout &result : results) {
    Kind reduction = Kind::I;
    bool mixed = false;
    for (AxisState s : result.states)
      if (isPartial(s.kind)) {
        mixed |= reduction != Kind::I && reduction != s.kind;
        reduction = s.kind;
      }
    if (mixed)
      continue;
    ConversionStep step;
    step.name = name;
    step.axes.assign(axes.begin(), axes.end());
    step.forward = traffic(key.tensor, *transfer, axes, at, result);
    if (key.tensor.cotangent && back)
      step.backward = traffic(key.tensor, *back, axes, result, at);
    step.result = std::move(result);
    moves.push_back(std::move(step));
  }
}

void Conversions::addMoves(const Key &key, const Layout &at, ArrayRef<int> axes,
                           SmallVectorImpl<ConversionStep> &moves) const {
  for (int axis : axes)
    if (!(at.states[axis] == at.states[axes[0]]))
      return;
  SmallVector<AxisState, 4> targets;
  auto add = [&](AxisState state) {
    if (!llvm::is_contained(targets, state))
      targets.push_back(state);
  };
  for (int axis : axes)
    add(key.to.states[axis]);
  add({Kind::I, -1});
  add({Kind::R, -1});
  for (int axis : axes)
    add(key.from.states[axis]);
  for (AxisState state : targets)
    addMove(key, at, axes, state, moves);
}

/// Another order of the axes of a dimension, the one that the target wants.
void Conversions::addPermutes(const Key &key, const Layout &at,
                              SmallVectorImpl<ConversionStep> &moves) const {
  for (size_t dim = 0; dim < at.dims.size(); ++dim) {
    ArrayRef<int> have = at.dims[dim].axes, want = key.to.dims[dim].axes;
    if (have == want || have.size() != want.size() ||
        !std::is_permutation(have.begin(), have.end(), want.begin()))
      continue;
    size_t kept = 0;
    while (have[kept] == want[kept])
      ++kept;
    Layout result = at;
    result.dims[dim].axes.assign(want.begin(), want.end());
    int64_t extent = key.tensor.shape[dim];
    if (at.isPadded(dim, extent, mesh) || result.isPadded(dim, extent, mesh))
      continue;
    result.canonicalize(key.tensor.shape, mesh);
    ConversionStep step;
    step.name = "mtp.permute";
    step.axes.assign(want.begin() + kept, want.end());
    step.forward = traffic(key.tensor, Transfer::Permute, step.axes, at, result);
    if (key.tensor.cotangent)
      step.backward = traffic(key.tensor, Transfer::Permute, step.axes, result, at);
    step.result = std::move(result);
    moves.push_back(std::move(step));
  }
}

/// True if a value of layout `have` may be used as `want`.
static bool serves(const TensorInfo &tensor, const Layout &have, const Layout &want) {
  if (have == want)
    return true;
  if (tensor.cotangent || have.dims != want.dims)
    return false;
  for (auto [a, b] : llvm::zip_equal(have.states, want.states))
    if (!(a == b) && !(a.kind == Kind::I && b.kind == Kind::R))
      return false;
  return true;
}

ConversionPath Conversions::search(const Key &key) const {
  if (serves(key.tensor, key.from, key.to))
    return {};
  struct Node {
    Layout layout;
    Time cost;
    int steps, before = -1;
    ConversionStep by;
    bool done = false;
  };
  std::vector<Node> nodes;
  std::unordered_multimap<size_t, int> byHash;
  // Cheapest first; among equals fewest steps, then the one found first.
  using Entry = std::tuple<Time, int, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  auto visit = [&](const Layout &layout, Time cost, int steps, int before, ConversionStep by) {
    size_t hash = hash_value(layout);
    auto [first, last] = byHash.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      Node &node = nodes[it->second];
      if (node.layout != layout)
        continue;
      if (std::pair(cost, steps) < std::pair(node.cost, node.steps)) {
        node.cost = cost;
        node.steps = steps;
        node.before = before;
        node.by = std::move(by);
        queue.push({cost, steps, it->second});
      }
      return;
    }
    byHash.emplace(hash, int(nodes.size()));
    queue.push({cost, steps, int(nodes.size())});
    nodes.push_back({layout, cost, steps, before, std::move(by)});
  };
  visit(key.from, 0, 0, -1, {});
  while (!queue.empty()) {
    auto [cost, steps, index] = queue.top();
    queue.pop();
    if (nodes[index].done)
      continue;
    nodes[index].done = true;
    if (serves(key.tensor, nodes[index].layout, key.to)) {
      ConversionPath path;
      path.cost = cost;
      for (int i = index; nodes[i].before >= 0; i = nodes[i].before)
        path.steps.push_back(nodes[i].by);
      std::reverse(path.steps.begin(), path.steps.end());
      return path;
    }
    SmallVector<ConversionStep, 16> moves;
    for (unsigned set = 1; set < (1u << mesh.size()); ++set) {
      SmallVector<int, 3> axes;
      for (int axis = 0; axis < mesh.size(); ++axis)
        if (set >> axis & 1)
          axes.push_back(axis);
      addMoves(key, nodes[index].layout, axes, moves);
    }
    addPermutes(key, nodes[index].layout, moves);
    for (ConversionStep &move : moves) {
      Layout layout = move.result;
      Time total = add(cost, add(move.forward.time, move.backward.time));
      visit(layout, total, steps + 1, index, std::move(move));
    }
  }
  ConversionPath none;
  none.cost = kIllegal;
  return none;
}

size_t Conversions::KeyHash::operator()(const Key &key) const {
  return llvm::hash_combine(
      llvm::hash_combine_range(key.tensor.shape.begin(), key.tensor.shape.end()),
      key.tensor.elementBytes, key.tensor.cotangent, hash_value(key.from), hash_value(key.to));
}

const ConversionPath &Conversions::pathBetween(const TensorInfo &tensor, const Layout &from,
                                               const Layout &to) {
  Key key{tensor, from, to};
  auto it = known.find(key);
  if (it == known.end()) {
    ConversionPath path = search(key);
    it = known.emplace(std::move(key), std::move(path)).first;
  }
  return it->second;
}

} // namespace mtp::plan
