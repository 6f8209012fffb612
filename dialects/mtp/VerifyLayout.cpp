// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- VerifyLayout.cpp - an op is one of the cases of its rule -----------===//
//
// Generic over ShardingOpInterface: this file names no op.
//
//===----------------------------------------------------------------------===//

#include "dialects/mtp/CaseSearch.h"
#include "dialects/mtp/MtpDialect.h"

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
    SmallVector<std::optional<Layout>> required(results.begin(), results.end());
    CaseSearch search(op, rule, mesh, operands, required);
    if (search.run())
      return success();
    if (search.unfitAxis)
      return explain(*search.unfitAxis);
    InFlightDiagnostic diagnostic = op->emitOpError()
                                    << "the layouts do not fit together";
    if (!search.why.empty())
      diagnostic << ": " << search.why;
    return diagnostic;
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
