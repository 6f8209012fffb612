// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/RowOps.h"
#include "compiler/codegen/emit/Scalars.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {

/// Positions in the operand of a reduction from those in its result; swept
/// dimensions are 0.
Indices operandIndices(ArrayRef<IndexExpr> indices, size_t rank,
                       ArrayRef<int64_t> dims, bool keep) {
  Indices result(rank);
  size_t next = 0;
  for (size_t dim = 0; dim < rank; ++dim) {
    bool isSwept = llvm::is_contained(dims, static_cast<int64_t>(dim));
    if (!isSwept)
      result[dim] = indices[keep ? dim : next];
    if (!isSwept || keep)
      ++next;
  }
  return result;
}

template <typename Op, auto Neutral, auto Combine>
Value reduce(RegionEmitter &emit, Operation *op, unsigned,
             ArrayRef<IndexExpr> indices) {
  auto reduction = cast<Op>(op);
  Indices at = operandIndices(indices, shapeOf(reduction.getInput()).size(),
                              reduction.getDims(), reduction.getKeep());
  return emit.once(op, 0, at, [&] {
    Scalars s(emit, elementTypeOf(reduction.getInput()));
    SmallVector<unsigned> swept(reduction.getDims().begin(),
                                reduction.getDims().end());
    return emit.sweep(op, 0, reduction.getInput(), at, swept, {Neutral(s)},
                      /*severalSweeps=*/false,
                      [&](Value x, ArrayRef<IndexExpr>, ValueRange carried) {
                        return SmallVector<Value>{Combine(s, carried[0], x)};
                      });
  })[0];
}

} // namespace

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
  using S = Scalars &;
  table["mtp.reduce_sum"] = {
      reduce<ReduceSumOp, [](S s) { return s.zero(); },
             [](S s, Value a, Value b) { return s.accumulate(a, b); }>,
      FusionKind::Reduce, 1};
  table["mtp.reduce_prod"] = {
      reduce<ReduceProdOp, [](S s) { return s.one(); },
             [](S s, Value a, Value b) { return s.accumulateProduct(a, b); }>,
      FusionKind::Reduce, 1};
  table["mtp.reduce_max"] = {
      reduce<ReduceMaxOp, [](S s) { return s.lowest(); },
             [](S s, Value a, Value b) { return s.max(a, b); }>,
      FusionKind::Reduce, 1};
  table["mtp.reduce_min"] = {
      reduce<ReduceMinOp, [](S s) { return s.highest(); },
             [](S s, Value a, Value b) { return s.min(a, b); }>,
      FusionKind::Reduce, 1};
}
