// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- VerifyLayout.cpp - an op is one of the cases of its rule
//------------===//
//
// Generic over ShardingOpInterface: this file names no op.
//
//===----------------------------------------------------------------------===//

#include "dialects/mtp/MtpDialect.h"
#include "dialects/mtp/Strategy.h"

using namespace mlir;
using namespace mtp;

namespace {
/// Checks the layouts of one op.
class LayoutVerifier {
public:
  LayoutVerifier(Operation *op, const ShardingRule &rule, MeshShape mesh)
      : op(op), rule(rule), mesh(std::move(mesh)) {}

  LogicalResult run() {
    for (Value operand : op->getOperands()) {
      auto layout =
          toLayout(op, cast<RankedTensorType>(operand.getType()), mesh);
      if (failed(layout))
        return failure();
      operands.push_back(*layout);
    }
    for (Value result : op->getResults()) {
      auto layout =
          toLayout(op, cast<RankedTensorType>(result.getType()), mesh);
      if (failed(layout))
        return failure();
      results.push_back(*layout);
    }
    return rule.anyState ? verifySource() : verifyCases();
  }

private:
  InFlightDiagnostic error(int axis) {
    return op->emitOpError() << "axis " << mesh.axes[axis].name() << ": ";
  }

  /// Constants and parameters: any state but partial; whole dimensions stay
  /// whole.
  LogicalResult verifySource() {
    for (int axis = 0; axis < mesh.size(); ++axis) {
      AxisState state = results[0].states[axis];
      if (isPartial(state.kind) && !rule.mayBePartial)
        return error(axis) << "a source is never partial";
      if (state.kind != Kind::S)
        continue;
      for (int factor : rule.results[0][state.dim])
        if (rule.factors[factor].kind == FactorKind::Whole)
          return error(axis)
                 << "dimension " << state.dim << " is never sharded";
    }
    return success();
  }

  /// One legal case per axis, then all axes together.
  LogicalResult verifyCases() {
    SmallVector<SmallVector<AxisCase, 2>> candidates;
    SmallVector<AxisCase, 8> all = enumerateCases(rule);
    for (int axis = 0; axis < mesh.size(); ++axis) {
      auto &fits = candidates.emplace_back();
      for (AxisCase c : all)
        if (fitsAxis(c, axis))
          for (int64_t unit : unitsOf(c)) {
            fits.push_back(c);
            fits.back().unit = unit;
          }
      if (fits.empty())
        return explain(axis);
    }
    SmallVector<AxisCase> chosen(mesh.size());
    std::string why;
    if (anyCombinationFits(candidates, 0, chosen, why))
      return success();
    InFlightDiagnostic diagnostic = op->emitOpError()
                                    << "the layouts do not fit together";
    if (!why.empty())
      diagnostic << ": " << why;
    return diagnostic;
  }

  /// Units, in elements of the factor, that the tensors' layouts may mean.
  SmallVector<int64_t, 2> unitsOf(AxisCase c) {
    SmallVector<int64_t, 2> units{1};
    if (c.row != AxisCase::Row::Sharded)
      return units;
    auto collect = [&](const TensorFactors &tensor, const Layout &layout) {
      for (auto [factors, cut] : llvm::zip_equal(tensor, layout.dims)) {
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
    for (auto [factors, layout] : llvm::zip_equal(rule.operands, operands))
      collect(factors, layout);
    for (auto [factors, layout] : llvm::zip_equal(rule.results, results))
      collect(factors, layout);
    return units;
  }

  /// The states on one axis, without order and units.
  bool fitsAxis(AxisCase c, int axis) {
    SmallVector<AxisCase> cases(mesh.size(),
                                AxisCase{AxisCase::Row::Replicated, 0});
    cases[axis] = c;
    auto strategy = combineLoose(cases, axis);
    if (!strategy)
      return false;
    for (auto [index, want] : llvm::enumerate(strategy->operands))
      if (!acceptsOn(op->getOperand(index), operands[index], want, axis))
        return false;
    for (auto [index, want] : llvm::enumerate(strategy->results))
      if (results[index].states[axis] != want.states[axis])
        return false;
    return true;
  }

  /// Like combine, but a factor behind a major one counts as reachable: other
  /// axes may cut the major one.
  std::optional<Strategy> combineLoose(ArrayRef<AxisCase> cases, int axis) {
    Strategy strategy;
    AxisCase c = cases[axis];
    auto state = [&](const TensorFactors &factors, Kind rest) {
      Layout layout(mesh.size(), factors.size());
      layout.states[axis] = {rest, -1};
      if (c.row == AxisCase::Row::Sharded)
        for (auto [dim, dimFactors] : llvm::enumerate(factors))
          if (llvm::is_contained(dimFactors, c.index)) {
            layout.states[axis] = {Kind::I, -1};
            layout.shard(axis, dim);
          }
      return layout;
    };
    for (auto [index, factors] : llvm::enumerate(rule.operands))
      strategy.operands.push_back(state(factors, operandKind(rule, c, index)));
    for (const TensorFactors &factors : rule.results)
      strategy.results.push_back(state(factors, resultKind(rule, c)));
    return strategy;
  }

  static bool acceptsOn(Value value, const Layout &have, const Layout &want,
                        int axis) {
    Layout a = want, b = want;
    a.states[axis] = have.states[axis];
    a.dims = b.dims; // compare the state only
    return accepts(value, a, b);
  }

  bool anyCombinationFits(ArrayRef<SmallVector<AxisCase, 2>> candidates,
                          int axis, SmallVectorImpl<AxisCase> &chosen,
                          std::string &why) {
    if (axis < mesh.size()) {
      for (AxisCase c : candidates[axis]) {
        chosen[axis] = c;
        if (anyCombinationFits(candidates, axis + 1, chosen, why))
          return true;
      }
      return false;
    }
    auto strategy = combine(op, rule, chosen, mesh, &why, nesting());
    if (!strategy)
      return false;
    for (auto [index, want] : llvm::enumerate(strategy->operands))
      if (!accepts(op->getOperand(index), operands[index], want)) {
        why = "operand " + std::to_string(index) + " should be <" +
              want.text(mesh) + ">";
        return false;
      }
    for (auto [index, want] : llvm::enumerate(strategy->results))
      if (results[index] != want) {
        why = "result " + std::to_string(index) + " should be <" +
              want.text(mesh) + ">";
        return false;
      }
    return true;
  }

  /// Order of axes as the tensors nest them, major first.
  SmallVector<int> nesting() {
    SmallVector<int> order;
    auto add = [&](int axis) {
      if (!llvm::is_contained(order, axis))
        order.push_back(axis);
    };
    for (auto *layouts : {&operands, &results})
      for (const Layout &layout : *layouts)
        for (const DimCut &cut : layout.dims)
          if (cut.axes.size() > 1)
            llvm::for_each(cut.axes, add);
    for (int axis = 0; axis < mesh.size(); ++axis)
      add(axis);
    return order;
  }

  /// Says which rule an axis breaks.
  LogicalResult explain(int axis) {
    int invariant = 0, varying = 0, partial = 0, replicated = 0, others = 0;
    SmallVector<int> factors;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      AxisState state = operands[index].states[axis];
      bool free = state.kind == Kind::I && hasNoCotangent(operand);
      invariant += state.kind == Kind::I && !free;
      varying += state.kind != Kind::I;
      partial += state.kind == Kind::PSum;
      replicated += state.kind == Kind::R || free;
      others += state.kind == Kind::PMax || state.kind == Kind::PMin;
      if (state.kind != Kind::S)
        continue;
      if (rule.operands[index][state.dim].empty())
        return error(axis) << "operand " << index << " is sharded in dimension "
                           << state.dim << ", which is broadcast from size 1";
      for (int factor : rule.operands[index][state.dim])
        if (rule.factors[factor].kind == FactorKind::Whole)
          return error(axis)
                 << "operand " << index << " is sharded in dimension "
                 << state.dim << ", which is never sharded here";
      factors.push_back(rule.operands[index][state.dim].front());
    }
    if (invariant && varying)
      return error(axis) << "an invariant operand meets a varying one; convert "
                            "it with copy_to";
    if (others)
      return error(axis) << "a partial maximum or minimum reaches an op that "
                            "is neither data movement nor max or min";
    if (partial && !factors.empty())
      return error(axis) << "a partial operand meets a sharded one";
    if (partial && rule.linear.empty())
      return error(axis) << "a partial value reaches a non-linear op";
    if (partial && jointlyLinear() && replicated)
      return error(axis)
             << "partial + replicated adds the replicated term once per rank";
    if (partial > 1 && !jointlyLinear())
      return error(axis) << "product of two partials";
    for (size_t i = 1; i < factors.size(); ++i)
      if (factors[i] != factors[0])
        return error(axis) << "operands are sharded in different factors";
    return error(axis)
           << "the result's state does not follow from the operands";
  }

  bool jointlyLinear() const {
    return llvm::any_of(rule.linear,
                        [](uint32_t set) { return llvm::popcount(set) > 1; });
  }

  Operation *op;
  const ShardingRule &rule;
  MeshShape mesh;
  SmallVector<Layout> operands, results;
};
} // namespace

LogicalResult mtp::detail::verifySharding(Operation *op) {
  for (Value value : llvm::concat<Value>(SmallVector<Value>(op->getOperands()),
                                         SmallVector<Value>(op->getResults())))
    if (!isa<RankedTensorType>(value.getType()) ||
        !cast<RankedTensorType>(value.getType()).hasStaticShape())
      return op->emitOpError()
             << "needs tensors of static shape, has " << value.getType();
  auto rule = cast<ShardingOpInterface>(op).getShardingRule();
  if (failed(rule))
    return failure();
  FlatSymbolRefAttr symbol;
  for (Type type : llvm::concat<Type>(SmallVector<Type>(op->getOperandTypes()),
                                      SmallVector<Type>(op->getResultTypes())))
    if (LayoutAttr layout = layoutOf(type)) {
      if (symbol && symbol != layout.getMesh())
        return op->emitOpError() << "has layouts on two meshes, " << symbol
                                 << " and " << layout.getMesh();
      symbol = layout.getMesh();
    }
  if (!symbol)
    return success();
  MeshOp mesh = lookupMesh(op, symbol);
  if (!mesh)
    return op->emitOpError() << "there is no mtp.mesh " << symbol;
  return LayoutVerifier(op, *rule, mesh.getShape()).run();
}
