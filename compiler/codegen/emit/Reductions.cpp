// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/RowOps.h"
#include "compiler/codegen/emit/Scalars.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

Value mtp::neutralOf(Scalars &s, Operation *op) {
  return isa<ReduceMaxOp>(op)    ? s.lowest()
         : isa<ReduceMinOp>(op)  ? s.highest()
         : isa<ReduceProdOp>(op) ? s.one()
                                 : s.zero();
}

Value mtp::combine(Scalars &s, Operation *op, Value value, Value element) {
  return isa<ReduceMaxOp>(op)    ? s.max(value, element)
         : isa<ReduceMinOp>(op)  ? s.min(value, element)
         : isa<ReduceProdOp>(op) ? s.accumulateProduct(value, element)
                                 : s.accumulate(value, element);
}

Indices mtp::operandIndices(Operation *op, ArrayRef<IndexExpr> indices) {
  auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dims").asArrayRef();
  bool keep = op->hasAttr("keep");
  Indices result(shapeOf(op->getOperand(0)).size());
  size_t next = 0;
  for (size_t dim = 0; dim < result.size(); ++dim) {
    bool isSwept = llvm::is_contained(dims, static_cast<int64_t>(dim));
    if (!isSwept)
      result[dim] = indices[keep ? dim : next];
    if (!isSwept || keep)
      ++next;
  }
  return result;
}

static Value reduce(RegionEmitter &emit, Operation *op, unsigned,
                    ArrayRef<IndexExpr> indices) {
  Value input = op->getOperand(0);
  Indices at = operandIndices(op, indices);
  return emit.once(op, 0, at, [&] {
    Scalars s(emit, elementTypeOf(input));
    return emit.sweep(op, 0, input, at, *sweptDims(op), {neutralOf(s, op)},
                      /*severalSweeps=*/false,
                      [&](Value x, ArrayRef<IndexExpr>, ValueRange carried) {
                        return SmallVector<Value>{
                            combine(s, op, carried[0], x)};
                      });
  })[0];
}

std::optional<SmallVector<unsigned>> mtp::sweptDims(Operation *op) {
  const OpEmitter *emitter = emitterOf(op);
  if (!emitter ||
      (emitter->kind != FusionKind::Row && emitter->kind != FusionKind::Reduce))
    return std::nullopt;
  size_t rank = shapeOf(op->getOperand(0)).size();
  SmallVector<unsigned> dims;
  if (auto reduced = op->getAttrOfType<DenseI64ArrayAttr>("dims")) {
    for (int64_t dim : reduced.asArrayRef())
      dims.push_back(dim);
  } else if (auto dim = op->getAttrOfType<IntegerAttr>("dim")) {
    dims.push_back(dim.getInt());
  } else { // norms: as many as the scale has
    for (size_t dim = rank - shapeOf(op->getOperand(1)).size(); dim < rank;
         ++dim)
      dims.push_back(dim);
  }
  return dims;
}

bool mtp::sweepsTrailingDims(Operation *op) {
  auto swept = sweptDims(op);
  bool seen = false;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
    bool isSwept = llvm::is_contained(*swept, static_cast<unsigned>(dim));
    if (seen && !isSwept && size != 1)
      return false;
    seen |= isSwept;
  }
  return true;
}

void mtp::registerReductionEmitters(EmitterTable &table) {
  for (const char *name :
       {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"})
    table["mtp." + std::string(name)] = {reduce, FusionKind::Reduce, 1};
}
