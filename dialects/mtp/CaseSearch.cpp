// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- CaseSearch.cpp - the case of a rule that given layouts are ---------===//
//
// Generic over ShardingOpInterface: this file names no op.
//
//===----------------------------------------------------------------------===//

#include "dialects/mtp/CaseSearch.h"

using namespace mlir;
using namespace mtp;

CaseSearch::CaseSearch(Operation *op, const ShardingRule &rule,
                       const MeshShape &mesh, ArrayRef<Layout> operands,
                       Layouts requiredResults, Layouts wantedResults)
    : op(op), rule(rule), mesh(mesh), operands(operands),
      required(op->getNumResults()), wanted(op->getNumResults()),
      chosen(mesh.size()) {
  llvm::copy(requiredResults, required.begin());
  llvm::copy(wantedResults, wanted.begin());
}

/// All layouts that may say something about order and units.
SmallVector<const Layout *> CaseSearch::known() const {
  SmallVector<const Layout *> layouts;
  for (const Layout &layout : operands)
    layouts.push_back(&layout);
  for (auto *results : {&required, &wanted})
    for (const std::optional<Layout> &layout : *results)
      layouts.push_back(layout ? &*layout : nullptr);
  return layouts;
}

/// Units, in elements of the factor, that the tensors' layouts may mean.
SmallVector<int64_t, 2> CaseSearch::unitsOf(AxisCase c) const {
  if (c.row != AxisCase::Row::Sharded)
    return {1};
  SmallVector<int64_t, 2> units;
  auto collect = [&](const TensorFactors &tensor, const Layout *layout) {
    if (!layout)
      return;
    for (auto [factors, cut] : llvm::zip_equal(tensor, layout->dims)) {
      if (!llvm::is_contained(factors, c.index))
        continue;
      int64_t inner = 1;
      for (int factor : llvm::reverse(factors)) {
        if (factor == c.index)
          break;
        inner *= rule.factors[factor].size;
      }
      if (inner > 0 && cut.unit % inner == 0 &&
          !llvm::is_contained(units, cut.unit / inner))
        units.push_back(cut.unit / inner);
    }
  };
  SmallVector<const TensorFactors *> tensors;
  for (auto *list : {&rule.operands, &rule.results, &rule.results})
    for (const TensorFactors &tensor : *list)
      tensors.push_back(&tensor);
  for (auto [tensor, layout] : llvm::zip_equal(tensors, known()))
    collect(*tensor, layout);
  if (!llvm::is_contained(units, 1))
    units.push_back(1);
  return units;
}

/// States on one axis of all operands or results in a case, without order and
/// units. A factor behind a major one counts as reachable: other axes may cut
/// the major one.
SmallVector<AxisState> CaseSearch::statesOf(AxisCase c, bool results) const {
  SmallVector<AxisState> states;
  for (auto [index, factors] :
       llvm::enumerate(results ? rule.results : rule.operands)) {
    AxisState state{results ? resultKind(rule, c) : operandKind(rule, c, index),
                    -1};
    if (c.row == AxisCase::Row::Sharded)
      for (auto [dim, dimFactors] : llvm::enumerate(factors))
        if (llvm::is_contained(dimFactors, c.index))
          state = {Kind::S, static_cast<int>(dim)};
    states.push_back(state);
  }
  return states;
}

/// Compares the states on one axis only.
static bool acceptsOn(Value value, const Layout &have, AxisState want,
                      int axis) {
  Layout a(have.states.size(), 0), b = a;
  a.states[axis] = have.states[axis];
  b.states[axis] = want;
  return accepts(value, a, b);
}

bool CaseSearch::fitsAxis(AxisCase c, int axis) {
  for (auto [index, want] : llvm::enumerate(statesOf(c, false)))
    if (!acceptsOn(op->getOperand(index), operands[index], want, axis))
      return false;
  for (auto [index, state] : llvm::enumerate(statesOf(c, true)))
    if (required[index] && !(required[index]->states[axis] == state))
      return false;
  return true;
}

bool CaseSearch::givesWanted(AxisCase c, int axis) {
  for (auto [index, state] : llvm::enumerate(statesOf(c, true)))
    if (wanted[index] && !(wanted[index]->states[axis] == state))
      return false;
  return true;
}

SmallVector<AxisCase, 2> CaseSearch::casesOf(int axis) {
  SmallVector<AxisCase, 2> fits;
  for (AxisCase c : enumerateCases(rule))
    if (fitsAxis(c, axis))
      for (int64_t unit : unitsOf(c)) {
        fits.push_back(c);
        fits.back().unit = unit;
      }
  llvm::stable_sort(fits, [&](AxisCase a, AxisCase b) {
    return givesWanted(a, axis) > givesWanted(b, axis);
  });
  return fits;
}

/// Order of axes as the tensors nest them, major first.
SmallVector<int> CaseSearch::nesting() const {
  SmallVector<int> order;
  auto add = [&](int axis) {
    if (!llvm::is_contained(order, axis))
      order.push_back(axis);
  };
  for (const Layout *layout : known())
    if (layout)
      for (const DimCut &cut : layout->dims)
        if (cut.axes.size() > 1)
          llvm::for_each(cut.axes, add);
  for (int axis = 0; axis < mesh.size(); ++axis)
    add(axis);
  return order;
}

std::optional<Strategy> CaseSearch::tryChosen() {
  auto strategy = combine(op, rule, chosen, mesh, &why, nesting());
  if (!strategy)
    return std::nullopt;
  for (auto [index, want] : llvm::enumerate(strategy->operands))
    if (!accepts(op->getOperand(index), operands[index], want)) {
      why = "operand " + std::to_string(index) + " should be <" +
            want.text(mesh) + ">";
      return std::nullopt;
    }
  for (auto [index, want] : llvm::enumerate(strategy->results))
    if (required[index] && *required[index] != want) {
      why = "result " + std::to_string(index) + " should be <" +
            want.text(mesh) + ">";
      return std::nullopt;
    }
  return strategy;
}

std::optional<Strategy> CaseSearch::searchFrom(int axis) {
  if (axis == mesh.size())
    return tryChosen();
  for (AxisCase c : candidates[axis]) {
    chosen[axis] = c;
    if (auto strategy = searchFrom(axis + 1))
      return strategy;
  }
  return std::nullopt;
}

std::optional<Strategy> CaseSearch::run() {
  for (int axis = 0; axis < mesh.size(); ++axis) {
    candidates.push_back(casesOf(axis));
    if (candidates.back().empty()) {
      unfitAxis = axis;
      return std::nullopt;
    }
  }
  return searchFrom(0);
}
