// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Layout.cpp - how a tensor lies on a mesh ---------------------------===//

#include "dialects/mtp/Layout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mtp;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// MeshShape
//===----------------------------------------------------------------------===//

int64_t MeshShape::ranks() const {
  int64_t ranks = 1;
  for (const Axis &axis : axes)
    ranks *= axis.size;
  return ranks;
}

SmallVector<int, 2> MeshShape::find(StringRef name) const {
  SmallVector<int, 2> found;
  for (auto [index, axis] : llvm::enumerate(axes))
    if (axis.parent == name || axis.name() == name)
      found.push_back(index);
  return found;
}

SmallVector<std::string, 2> MeshShape::names(ArrayRef<int> indices) const {
  SmallVector<std::string, 2> result;
  for (size_t i = 0; i < indices.size();) {
    const Axis &axis = axes[indices[i]];
    SmallVector<int, 2> all = find(axis.parent);
    if (axis.part >= 0 && i + all.size() <= indices.size() &&
        ArrayRef<int>(all) == indices.slice(i, all.size())) {
      result.push_back(axis.parent);
      i += all.size();
      continue;
    }
    result.push_back(axis.name());
    ++i;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

bool Layout::isInvariant() const {
  return llvm::all_of(states, [](AxisState s) { return s.kind == Kind::I; });
}

void Layout::shard(int axis, int dim) {
  states[axis] = {Kind::S, dim};
  dims[dim].axes.push_back(axis);
}

void Layout::unshard(int axis, Kind kind) {
  DimCut &cut = dims[states[axis].dim];
  llvm::erase(cut.axes, axis);
  if (cut.axes.empty())
    cut.unit = 1;
  states[axis] = {kind, -1};
}

void Layout::setKind(int axis, Kind kind) {
  if (states[axis].kind == Kind::S)
    return unshard(axis, kind);
  states[axis] = {kind, -1};
}

/// Capacities in elements after each axis of the cut, the first before any.
static SmallVector<int64_t> capacities(int64_t extent, int64_t unit,
                                       ArrayRef<int> axes,
                                       const MeshShape &mesh) {
  SmallVector<int64_t> result;
  int64_t units = llvm::divideCeil(extent, unit);
  for (int axis : axes) {
    units = llvm::divideCeil(units, mesh.axes[axis].size);
    result.push_back(units * unit);
  }
  return result;
}

int64_t mtp::blockCapacity(int64_t extent, const DimCut &cut,
                           const MeshShape &mesh) {
  if (cut.axes.empty())
    return extent;
  return capacities(extent, cut.unit, cut.axes, mesh).back();
}

void Layout::canonicalize(ArrayRef<int64_t> shape, const MeshShape &mesh) {
  for (auto [cut, extent] : llvm::zip_equal(dims, shape)) {
    if (cut.axes.empty() || cut.unit == 1) {
      cut.unit = 1;
      continue;
    }
    if (capacities(extent, cut.unit, cut.axes, mesh) ==
        capacities(extent, 1, cut.axes, mesh))
      cut.unit = 1;
  }
}

SmallVector<int64_t> Layout::localShape(ArrayRef<int64_t> shape,
                                        const MeshShape &mesh) const {
  SmallVector<int64_t> local;
  for (auto [cut, extent] : llvm::zip_equal(dims, shape))
    local.push_back(blockCapacity(extent, cut, mesh));
  return local;
}

bool Layout::isPadded(int dim, int64_t extent, const MeshShape &mesh) const {
  int64_t total = blockCapacity(extent, dims[dim], mesh);
  for (int axis : dims[dim].axes)
    total *= mesh.axes[axis].size;
  return total != extent;
}

BlockExtent Layout::block(int dim, int64_t extent, const MeshShape &mesh,
                          ArrayRef<int64_t> coordinates) const {
  const DimCut &cut = dims[dim];
  BlockExtent block{0, extent, extent};
  int64_t units = llvm::divideCeil(extent, cut.unit);
  for (int axis : cut.axes) {
    units = llvm::divideCeil(units, mesh.axes[axis].size);
    block.capacity = units * cut.unit;
    int64_t start = block.capacity * coordinates[axis];
    block.offset += start;
    block.valid = std::clamp<int64_t>(block.valid - start, 0, block.capacity);
  }
  return block;
}

static std::string kindText(Kind kind) {
  switch (kind) {
  case Kind::I:
    return "I";
  case Kind::R:
    return "R";
  case Kind::S:
    return "S";
  case Kind::PSum:
    return "P(sum)";
  case Kind::PMax:
    return "P(max)";
  case Kind::PMin:
    return "P(min)";
  }
  return "";
}

std::string Layout::text(const MeshShape &mesh) const {
  std::string result;
  auto add = [&](const std::string &axis, const std::string &state) {
    result += (result.empty() ? "" : ", ") + axis + " = " + state;
  };
  for (auto [dim, cut] : llvm::enumerate(dims)) {
    std::string state = "S(" + std::to_string(dim);
    if (cut.unit != 1)
      state += ", unit " + std::to_string(cut.unit);
    for (const std::string &name : mesh.names(cut.axes))
      add(name, state + ")");
  }
  for (Kind kind : {Kind::R, Kind::PSum, Kind::PMax, Kind::PMin}) {
    SmallVector<int> axes;
    for (auto [axis, state] : llvm::enumerate(states))
      if (state.kind == kind)
        axes.push_back(axis);
    for (const std::string &name : mesh.names(axes))
      add(name, kindText(kind));
  }
  return result;
}

llvm::hash_code mtp::hash_value(const Layout &layout) {
  llvm::hash_code code = llvm::hash_value(layout.states.size());
  for (AxisState s : layout.states)
    code = llvm::hash_combine(code, static_cast<int>(s.kind),
                              s.kind == Kind::S ? s.dim : -1);
  for (const DimCut &cut : layout.dims)
    code = llvm::hash_combine(
        code, llvm::hash_combine_range(cut.axes.begin(), cut.axes.end()),
        cut.unit);
  return code;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
/// Splits "tp = S(2, unit 64), dp = R" at commas outside of parentheses.
SmallVector<StringRef> splitEntries(StringRef text) {
  SmallVector<StringRef> entries;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(')
      ++depth;
    else if (text[i] == ')')
      --depth;
    else if (text[i] == ',' && depth == 0) {
      entries.push_back(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  if (!text.substr(start).trim().empty() || !entries.empty())
    entries.push_back(text.substr(start).trim());
  return entries;
}

/// Parses "S(2, unit 64)", "R", "P(max)".
bool parseState(StringRef text, Kind &kind, int &dim, int64_t &unit) {
  unit = 1;
  if (text == "I" || text == "R") {
    kind = text == "R" ? Kind::R : Kind::I;
    return true;
  }
  if (text == "P(sum)" || text == "P(max)" || text == "P(min)") {
    kind = text == "P(sum)"   ? Kind::PSum
           : text == "P(max)" ? Kind::PMax
                              : Kind::PMin;
    return true;
  }
  if (!text.consume_front("S(") || !text.consume_back(")"))
    return false;
  auto [dimText, unitText] = text.split(',');
  kind = Kind::S;
  if (dimText.trim().getAsInteger(10, dim) || dim < 0)
    return false;
  unitText = unitText.trim();
  if (unitText.empty())
    return true;
  return unitText.consume_front("unit") &&
         !unitText.trim().getAsInteger(10, unit) && unit > 0;
}
} // namespace

std::optional<Layout> mtp::parseLayout(StringRef text, ArrayRef<int64_t> shape,
                                       const MeshShape &mesh,
                                       std::string &error) {
  Layout layout(mesh.size(), shape.size());
  SmallVector<bool> seen(mesh.size(), false);
  for (StringRef entry : splitEntries(text)) {
    auto [name, stateText] = entry.split('=');
    name = name.trim();
    Kind kind;
    int dim = -1;
    int64_t unit;
    if (!parseState(stateText.trim(), kind, dim, unit)) {
      error = ("'" + entry +
               "' is not a state; write e.g. tp = S(1), tp = R or tp = P(sum)")
                  .str();
      return std::nullopt;
    }
    SmallVector<int, 2> axes = mesh.find(name);
    if (axes.empty()) {
      error = ("the mesh has no axis '" + name + "'").str();
      return std::nullopt;
    }
    if (kind == Kind::S && dim >= static_cast<int>(shape.size())) {
      error = "axis " + name.str() + " shards dimension " +
              std::to_string(dim) + " of a tensor of rank " +
              std::to_string(shape.size());
      return std::nullopt;
    }
    for (int axis : axes) {
      if (seen[axis]) {
        error = "axis " + mesh.axes[axis].name() + " is given twice";
        return std::nullopt;
      }
      seen[axis] = true;
      if (kind == Kind::S) {
        if (!layout.dims[dim].axes.empty() && layout.dims[dim].unit != unit) {
          error = "dimension " + std::to_string(dim) + " has two units";
          return std::nullopt;
        }
        layout.shard(axis, dim);
        layout.dims[dim].unit = unit;
      } else {
        layout.setKind(axis, kind);
      }
    }
  }
  layout.canonicalize(shape, mesh);
  return layout;
}
