// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- RaiseMask.cpp - masks of attention scores --------------------------===//

#include "passes/raise/RaiseMask.h"

#include <cmath>

using namespace mlir;
using namespace mtp;
using namespace mtp::raise;

//===----------------------------------------------------------------------===//
// Causal masks
//===----------------------------------------------------------------------===//

namespace {
/// `i_dim + offset`, dimensions counted from the right (last = 0); dim -1: a
/// constant.
struct Counter {
  int dim = -1;
  int64_t offset = 0;
};

/// Follows a counter through added constants and size-1 dimensions.
std::optional<Counter> matchCounter(Value value, int depth = 12) {
  if (depth == 0)
    return std::nullopt;
  if (auto splat = splatValue(value))
    return Counter{-1, static_cast<int64_t>(*splat)};
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  auto type = typeOf(value);
  if (auto iota = dyn_cast<IotaOp>(op))
    return Counter{static_cast<int>(type.getRank() - 1 - iota.getDim()), 0};
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    // A dense row of consecutive integers.
    auto dense = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    if (!dense)
      return std::nullopt;
    int dim = -1;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.getDimSize(d) == type.getNumElements())
        dim = type.getRank() - 1 - d;
    int64_t first = (*dense.value_begin<APInt>()).getSExtValue(), index = 0;
    for (const APInt &element : dense.getValues<APInt>())
      if (element.getSExtValue() != first + index++)
        return std::nullopt;
    return dim < 0 ? std::optional<Counter>() : Counter{dim, first};
  }
  if (isa<ConvertOp, BroadcastOp>(op))
    return matchCounter(op->getOperand(0), depth - 1);
  if (isa<AddOp, SubOp>(op)) {
    auto a = matchCounter(op->getOperand(0), depth - 1),
         b = matchCounter(op->getOperand(1), depth - 1);
    bool sub = isa<SubOp>(op);
    if (!a || !b || (a->dim >= 0 && b->dim >= 0) || (sub && b->dim >= 0))
      return std::nullopt;
    return Counter{std::max(a->dim, b->dim),
                   a->offset + (sub ? -b->offset : b->offset)};
  }
  if (isa<ReshapeOp>(op)) {
    // Only size-1 dimensions move.
    auto inner = matchCounter(op->getOperand(0), depth - 1);
    auto from = typeOf(op->getOperand(0));
    if (!inner || inner->dim < 0 ||
        from.getNumElements() != from.getShape().rbegin()[inner->dim])
      return std::nullopt;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.getDimSize(d) == type.getNumElements())
        return Counter{static_cast<int>(type.getRank() - 1 - d), inner->offset};
  }
  return std::nullopt;
}

/// `j ≤ i + o` out of a comparison of a key counter (dim 0) and a query counter
/// (dim 1).
std::optional<int64_t> matchCausalComparison(CompareOp op) {
  auto lhs = matchCounter(op.getLhs()), rhs = matchCounter(op.getRhs());
  if (!lhs || !rhs)
    return std::nullopt;
  Compare predicate = op.getPredicate();
  if (lhs->dim == 1 && rhs->dim == 0) { // i ? j: turn it around
    std::swap(lhs, rhs);
    predicate = predicate == Compare::ge   ? Compare::le
                : predicate == Compare::gt ? Compare::lt
                                           : Compare::eq;
  }
  if (lhs->dim != 0 || rhs->dim != 1 ||
      (predicate != Compare::le && predicate != Compare::lt))
    return std::nullopt;
  // j + a ≤ i + b  <=>  j ≤ i + b - a
  return rhs->offset - lhs->offset - (predicate == Compare::lt);
}

/// The elements of a constant boolean, stored in line or as an initializer.
DenseElementsAttr constantElements(Value value) {
  if (auto constant = value.getDefiningOp<ConstantOp>())
    return dyn_cast<DenseElementsAttr>(constant.getValue());
  auto parameter = value.getDefiningOp<ParameterOp>();
  if (!parameter || !parameter.getRecipe().empty())
    return {};
  auto initializer = SymbolTable::lookupNearestSymbolFrom<InitializerOp>(
      parameter, parameter.getSourceAttr());
  return initializer && initializer.getValue()
             ? dyn_cast<DenseElementsAttr>(*initializer.getValue())
             : DenseElementsAttr();
}
} // namespace

std::optional<int64_t> raise::matchCausal(Value condition, int64_t queries,
                                          int64_t keys) {
  while (isa_and_nonnull<BroadcastOp, ReshapeOp>(condition.getDefiningOp()) &&
         typeOf(condition).getNumElements() ==
             typeOf(condition.getDefiningOp()->getOperand(0)).getNumElements())
    condition = condition.getDefiningOp()->getOperand(0);
  if (auto compare = condition.getDefiningOp<CompareOp>())
    return matchCausalComparison(compare);
  DenseElementsAttr elements = constantElements(condition);
  if (!elements || !elements.getElementType().isInteger(1) ||
      elements.getNumElements() != queries * keys)
    return std::nullopt;
  SmallVector<bool> values(elements.getValues<bool>());
  int64_t offset = -1;
  while (offset + 1 < keys && values[offset + 1])
    ++offset;
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j)
      if (values[i * keys + j] != (j <= i + offset))
        return std::nullopt;
  return offset;
}

//===----------------------------------------------------------------------===//
// Putting masks together
//===----------------------------------------------------------------------===//

/// Conjuncts of a boolean, through `and` and broadcasts.
static void flattenAnd(Value value, SmallVectorImpl<Value> &conjuncts) {
  if (auto both = value.getDefiningOp<AndOp>()) {
    flattenAnd(both.getLhs(), conjuncts);
    flattenAnd(both.getRhs(), conjuncts);
    return;
  }
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    return flattenAnd(broadcast.getInput(), conjuncts);
  if (splatValue(value) == 1.0)
    return;
  conjuncts.push_back(value);
}

namespace {
class MaskBuilder {
public:
  MaskBuilder(PatternRewriter &rewriter, Location loc, int64_t queries,
              int64_t keys, int64_t rank, Type element)
      : rewriter(rewriter), loc(loc), queries(queries), keys(keys), rank(rank),
        element(element) {}

  std::optional<BuiltMask> build(const MaskParts &parts) {
    SmallVector<SelectedMask> selected(parts.selected.begin(),
                                       parts.selected.end());
    SmallVector<Value> added;
    for (Value value : parts.added)
      if (!asSelected(value, selected))
        added.push_back(value);
    for (const SelectedMask &part : selected)
      if (!part.keeps)
        return std::nullopt;
    BuiltMask built;
    bool sameValue = llvm::all_of(
        selected, [&](auto &m) { return m.masked == selected[0].masked; });
    bool exact = !selected.empty() && sameValue && added.empty() &&
                 selected[0].masked < -1e30 &&
                 (std::isinf(selected[0].masked) || selected.size() == 1);
    if (exact) {
      built.uniformRows = std::isfinite(selected[0].masked);
      built.mask = booleans(selected, built);
    } else {
      // Added masks, and selections whose values differ, as one float mask.
      for (const SelectedMask &part : llvm::reverse(selected))
        built.mask = sum(built.mask, asFloat(part));
      for (Value value : llvm::reverse(added))
        built.mask = sum(built.mask, value);
    }
    if (built.mask && !fit(built.mask))
      return std::nullopt;
    return built;
  }

private:
  /// An added `select(c, 0, m)` is a selection of m.
  static bool asSelected(Value value, SmallVectorImpl<SelectedMask> &selected) {
    while (auto broadcast = value.getDefiningOp<BroadcastOp>())
      value = broadcast.getInput();
    auto select = value.getDefiningOp<SelectOp>();
    if (!select || splatValue(select.getOnTrue()) != 0.0)
      return false;
    auto masked = splatValue(select.getOnFalse());
    // Adding a value so large replaces the score exactly; others do not.
    if (!masked || *masked > -1e30)
      return false;
    selected.push_back({select.getCondition(), true, *masked});
    return true;
  }

  /// Conjunction of all conditions, without the causal ones.
  Value booleans(ArrayRef<SelectedMask> selected, BuiltMask &built) {
    SmallVector<Value> conjuncts;
    for (const SelectedMask &part : selected)
      flattenAnd(part.condition, conjuncts);
    Value mask;
    for (Value conjunct : conjuncts) {
      auto offset = matchCausal(conjunct, queries, keys);
      if (offset && *offset >= 0) {
        built.causalOffset =
            built.causal ? std::min(built.causalOffset, *offset) : *offset;
        built.causal = true;
        continue;
      }
      mask = mask ? broadcastBinary<AndOp>(mask, conjunct) : conjunct;
    }
    // Without another mask every query sees a key: no row is masked throughout.
    if (!mask)
      built.uniformRows = false;
    return mask;
  }

  template <typename Op> Value broadcastBinary(Value a, Value b) {
    SmallVector<int64_t> shape;
    ArrayRef<int64_t> x = typeOf(a).getShape(), y = typeOf(b).getShape();
    for (size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
      int64_t p = i < x.size() ? x.rbegin()[i] : 1,
              q = i < y.size() ? y.rbegin()[i] : 1;
      shape.push_back(p == 1 ? q : p);
    }
    std::reverse(shape.begin(), shape.end());
    return Op::create(rewriter, loc,
                      RankedTensorType::get(shape, typeOf(a).getElementType()),
                      a, b);
  }

  Value sum(Value a, Value b) { return a ? broadcastBinary<AddOp>(a, b) : b; }

  Value scalar(double value) {
    auto type = RankedTensorType::get({}, element);
    return ConstantOp::create(
        rewriter, loc,
        DenseElementsAttr::get(type, rewriter.getFloatAttr(element, value)));
  }

  Value asFloat(const SelectedMask &part) {
    auto type =
        RankedTensorType::get(typeOf(part.condition).getShape(), element);
    return SelectOp::create(rewriter, loc, type, part.condition, scalar(0),
                            scalar(part.masked));
  }

  /// Makes the mask one that broadcasts to (b,h,s,t).
  bool fit(Value &mask) {
    auto type = typeOf(mask);
    if (type.getRank() > rank)
      return false;
    if (rank == 3 && type.getRank() == 3) {
      ArrayRef<int64_t> s = type.getShape();
      mask = ReshapeOp::create(
          rewriter, loc,
          RankedTensorType::get({s[0], 1, s[1], s[2]}, type.getElementType()),
          mask);
    }
    return true;
  }

  PatternRewriter &rewriter;
  Location loc;
  int64_t queries, keys, rank;
  Type element;
};
} // namespace

std::optional<BuiltMask> raise::buildMask(PatternRewriter &rewriter,
                                          Location loc, const MaskParts &parts,
                                          int64_t queries, int64_t keys,
                                          int64_t rank, Type element) {
  return MaskBuilder(rewriter, loc, queries, keys, rank, element).build(parts);
}
