// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/InPlace.h"
#include "compiler/codegen/emit/EmitterTable.h"
#include "compiler/codegen/emit/Scalars.h"

using namespace mlir;
using namespace mtp;

bool mtp::mayOverwrite(spmd::FusedOp op, unsigned operand, unsigned result) {
  mlir::Block &body = op.getBody().front();
  auto from = cast<RankedTensorType>(op.getInputs()[operand].getType()),
       to = cast<RankedTensorType>(op.getOutputs()[result].getType());
  if (from.getElementType() != to.getElementType() ||
      from.getNumElements() != to.getNumElements())
    return false;
  llvm::DenseSet<Value> reached{body.getArgument(operand)};
  for (Operation &inner : body.without_terminator()) {
    const OpEmitter *emitter = emitterOf(&inner);
    // Kernels that sweep over rows don't go element by element.
    if (!emitter || emitter->kind == FusionKind::Row ||
        emitter->kind == FusionKind::Reduce)
      return false;
    for (Value value : inner.getOperands()) {
      if (!reached.contains(value))
        continue;
      if (emitter->kind != FusionKind::Elementwise ||
          inner.getNumResults() != 1 ||
          shapeOf(value) != shapeOf(inner.getResult(0)))
        return false;
      reached.insert(inner.getResult(0));
    }
  }
  return true;
}

void mtp::setInPlace(spmd::FusedOp op, unsigned operand, unsigned result) {
  SmallVector<int64_t> pairs;
  if (auto before = op->getAttrOfType<DenseI64ArrayAttr>(kInPlace))
    llvm::append_range(pairs, before.asArrayRef());
  pairs.append({operand, result});
  op->setAttr(kInPlace, DenseI64ArrayAttr::get(op.getContext(), pairs));
}
