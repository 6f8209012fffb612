// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Strategy.cpp - the well-typed ways to run an op --------------------===//

#include "dialects/mtp/Strategy.h"

#include "dialects/mtp/MtpDialect.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mtp;

//===----------------------------------------------------------------------===//
// Cases of one axis
//===----------------------------------------------------------------------===//

std::string AxisCase::text(const ShardingRule &rule) const {
  switch (row) {
  case Row::Invariant:
    return "invariant";
  case Row::Replicated:
    return "replicated";
  case Row::Sharded:
    return "sharded " + rule.factors[index].name;
  case Row::Max:
    return "partial max";
  case Row::Min:
    return "partial min";
  case Row::Linear:
    break;
  }
  std::string members;
  for (int operand = 0; operand < 32; ++operand)
    if (rule.linear[index] >> operand & 1)
      members += (members.empty() ? "" : "&") + std::to_string(operand);
  return "linear " + members;
}

SmallVector<AxisCase, 8> mtp::enumerateCases(const ShardingRule &rule) {
  using Row = AxisCase::Row;
  SmallVector<AxisCase, 8> cases{{Row::Invariant, 0}, {Row::Replicated, 0}};
  for (auto [index, factor] : llvm::enumerate(rule.factors))
    if (factor.kind == FactorKind::Parallel)
      cases.push_back({Row::Sharded, static_cast<int>(index)});
  for (size_t index = 0; index < rule.linear.size(); ++index)
    cases.push_back({Row::Linear, static_cast<int>(index)});
  if (rule.passesMax)
    cases.push_back({Row::Max, 0});
  if (rule.passesMin)
    cases.push_back({Row::Min, 0});
  return cases;
}

//===----------------------------------------------------------------------===//
// Several axes
//===----------------------------------------------------------------------===//

namespace {
/// Builds the layout of one tensor from one case per axis.
class Combiner {
public:
  Combiner(const ShardingRule &rule, ArrayRef<AxisCase> cases,
           const MeshShape &mesh, std::string *why, ArrayRef<int> order)
      : rule(rule), cases(cases), mesh(mesh), why(why) {
    if (order.empty())
      for (int axis = 0; axis < mesh.size(); ++axis)
        this->order.push_back(axis);
    else
      this->order.assign(order.begin(), order.end());
  }

  /// `rest` gives the state of a tensor that does not carry what the axis
  /// shards.
  std::optional<Layout> layout(ArrayRef<int64_t> shape,
                               const TensorFactors &factors,
                               llvm::function_ref<Kind(int axis)> rest) {
    Layout layout(mesh.size(), shape.size());
    for (auto [dim, dimFactors] : llvm::enumerate(factors))
      if (!cutDim(layout, dim, dimFactors))
        return std::nullopt;
    Kind partial = Kind::I;
    for (int axis = 0; axis < mesh.size(); ++axis) {
      if (layout.states[axis].kind == Kind::S)
        continue;
      Kind kind = rest(axis);
      if (isPartial(kind)) {
        if (partial != Kind::I && partial != kind)
          return fail("a tensor has at most one kind of reduction");
        partial = kind;
      }
      layout.states[axis] = {kind, -1};
    }
    layout.canonicalize(shape, mesh);
    return layout;
  }

private:
  std::nullopt_t fail(const Twine &reason) {
    if (why)
      *why = reason.str();
    return std::nullopt;
  }

  /// Cuts one dimension by the axes that shard its factors, major factor first.
  bool cutDim(Layout &layout, unsigned dim, ArrayRef<int> dimFactors) {
    bool mayCut = true;
    int64_t inner = 1;
    for (int factor : dimFactors)
      inner *= rule.factors[factor].size;
    for (int factor : dimFactors) {
      int64_t size = rule.factors[factor].size;
      inner = size == 0 ? 0 : inner / size;
      int64_t parts = 1, unit = 0;
      for (int axis : order) {
        AxisCase c = cases[axis];
        if (c.row != AxisCase::Row::Sharded || c.index != factor)
          continue;
        if (unit && unit != c.unit) {
          fail("axis " + mesh.axes[axis].name() + ": factor " +
               rule.factors[factor].name + " is cut in units of " +
               Twine(unit) + " and of " + Twine(c.unit));
          return false;
        }
        unit = c.unit;
        if (!mayCut) {
          fail("axis " + mesh.axes[axis].name() + ": factor " +
               rule.factors[factor].name +
               " lies behind a factor that is not cut to size 1");
          return false;
        }
        layout.shard(axis, dim);
        layout.dims[dim].unit = std::max<int64_t>(inner * unit, 1);
        parts *= mesh.axes[axis].size;
      }
      mayCut &= parts == size && unit <= 1;
    }
    return true;
  }

  const ShardingRule &rule;
  ArrayRef<AxisCase> cases;
  const MeshShape &mesh;
  std::string *why;
  SmallVector<int, 4> order;
};
} // namespace

static bool carries(const TensorFactors &factors, int factor) {
  return llvm::any_of(
      factors, [&](auto &dim) { return llvm::is_contained(dim, factor); });
}

/// State of operand `index` on an axis whose case does not shard it.
Kind mtp::operandKind(const ShardingRule &rule, AxisCase c, unsigned index) {
  switch (c.row) {
  case AxisCase::Row::Invariant:
    return Kind::I;
  case AxisCase::Row::Replicated:
  case AxisCase::Row::Sharded:
    return Kind::R;
  case AxisCase::Row::Linear:
    return rule.linear[c.index] >> index & 1 ? Kind::PSum : Kind::R;
  case AxisCase::Row::Max:
    return Kind::PMax;
  case AxisCase::Row::Min:
    return Kind::PMin;
  }
  return Kind::I;
}

/// State of a result that does not carry what the axis shards: partial if the
/// factor is contracted; if another result carries it, this one does not depend
/// on it and every rank has it whole, unless each result contracts.
Kind mtp::resultKind(const ShardingRule &rule, AxisCase c) {
  switch (c.row) {
  case AxisCase::Row::Sharded:
    return !rule.eachContracts &&
                   llvm::any_of(rule.results,
                                [&](auto &r) { return carries(r, c.index); })
               ? Kind::R
               : rule.factors[c.index].reduction;
  case AxisCase::Row::Linear:
    return Kind::PSum;
  default:
    return operandKind(rule, c, 0);
  }
}

std::optional<Strategy> mtp::combine(Operation *op, const ShardingRule &rule,
                                     ArrayRef<AxisCase> cases,
                                     const MeshShape &mesh, std::string *why,
                                     ArrayRef<int> order) {
  for (AxisCase c : cases)
    if (c.row == AxisCase::Row::Sharded &&
        rule.factors[c.index].kind == FactorKind::Whole) {
      if (why)
        *why = "factor " + rule.factors[c.index].name + " is never sharded";
      return std::nullopt;
    }
  Combiner combiner(rule, cases, mesh, why, order);
  Strategy strategy;
  strategy.cases.assign(cases.begin(), cases.end());
  auto shapeOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  };
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    auto layout = combiner.layout(
        shapeOf(operand), rule.operands[index],
        [&, i = index](int axis) { return operandKind(rule, cases[axis], i); });
    if (!layout)
      return std::nullopt;
    strategy.operands.push_back(std::move(*layout));
  }
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    auto layout =
        combiner.layout(shapeOf(result), rule.results[index], [&](int axis) {
          return resultKind(rule, cases[axis]);
        });
    if (!layout)
      return std::nullopt;
    strategy.results.push_back(std::move(*layout));
  }
  return strategy;
}

//===----------------------------------------------------------------------===//
// Values without cotangent
//===----------------------------------------------------------------------===//

static bool isFloat(Value value) {
  return isa<FloatType>(
      cast<RankedTensorType>(value.getType()).getElementType());
}

/// A value has a cotangent if it depends, through floats, on an argument or a
/// parameter. Each op is looked at once, however often it is used.
bool mtp::hasNoCotangent(Value value) {
  SmallVector<Value> open{value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!isFloat(next))
      continue;
    Operation *op = next.getDefiningOp();
    if (!op)
      return false;
    if (op->hasTrait<NoCotangentTrait>() || !seen.insert(op).second)
      continue;
    if (op->getNumOperands() == 0)
      return false;
    llvm::append_range(open, op->getOperands());
  }
  return true;
}

static bool isLiteralZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

bool mtp::accepts(Value value, const Layout &actual, const Layout &required) {
  if (actual == required)
    return true;
  if (actual.dims != required.dims)
    return false;
  std::optional<bool> free;
  bool zero = isLiteralZero(value);
  for (auto [have, want] : llvm::zip_equal(actual.states, required.states)) {
    if (have == want)
      continue;
    if (have.kind == Kind::I && want.kind == Kind::R) {
      if (!free)
        free = hasNoCotangent(value);
      if (*free)
        continue;
    }
    if (zero && !isPartial(have.kind) && have.kind != Kind::S &&
        want.kind == Kind::PSum)
      continue;
    return false;
  }
  return true;
}
