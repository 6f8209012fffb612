// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- SpmdVerifiers.cpp - constraints of the spmd ops --------------------===//

#include "dialects/spmd/SpmdDialect.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::spmd;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult CutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              int64_t extent, ArrayAttr, int64_t unit) {
  if (extent < 0)
    return emitError() << "a cut dimension has extent " << extent;
  if (unit < 1)
    return emitError() << "a cut has unit " << unit
                       << ", which is not positive";
  return success();
}

//===----------------------------------------------------------------------===//
// Rank data and blocks
//===----------------------------------------------------------------------===//

LogicalResult
spmd::ParameterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<InitializerOp>(*this, getSourceAttr()))
    return emitOpError() << "there is no mtp.initializer " << getSourceAttr();
  MeshOp mesh = lookupMesh(*this, getLayout().getMesh());
  if (!mesh)
    return emitOpError() << "there is no mtp.mesh " << getLayout().getMesh();
  auto global = cast<RankedTensorType>(getGlobalType());
  MeshShape shape = mesh.getShape();
  auto layout = toLayout(*this, withLayout(global, getLayout()), shape);
  if (failed(layout))
    return failure();
  auto local =
      RankedTensorType::get(layout->localShape(global.getShape(), shape),
                            typeOf(getResult()).getElementType());
  if (getType() != local)
    return emitOpError() << "its layout gives blocks of type " << local
                         << ", the result is " << getType();
  return success();
}

LogicalResult spmd::StoreOp::verify() {
  if (!getStored().getDefiningOp<spmd::ParameterOp>())
    return emitOpError() << "writes a block that no spmd.parameter gave";
  for (Operation *user : getStored().getUsers())
    if (auto other = dyn_cast<spmd::StoreOp>(user))
      if (other != *this && other.getStored() == getStored())
        return emitOpError() << "writes a block that is written already";
  return success();
}

static LogicalResult verifyAxes(Operation *op, ArrayAttr names,
                                const MeshShape &mesh, StringRef what) {
  if (!findAxes(names, mesh).empty())
    return success();
  return op->emitOpError() << what << " " << names
                           << " are not distinct axes of mesh @" << mesh.symbol;
}

LogicalResult RankValueOp::verify() {
  MeshOp mesh = findMesh(*this);
  if (!mesh || failed(verifyAxes(*this, getCut().getAxes(), mesh.getShape(),
                                 "the axes")))
    return failure();
  if (getKind() == RankValueKind::coordinate &&
      findAxes(getCut().getAxes(), mesh.getShape()).size() != 1)
    return emitOpError() << "a coordinate is of one axis, not of "
                         << getCut().getAxes();
  return success();
}

static LogicalResult verifyDim(Operation *op, int64_t dim) {
  int64_t rank = typeOf(op->getOperand(0)).getRank();
  if (dim >= 0 && dim < rank)
    return success();
  return op->emitOpError() << "has no dimension " << dim
                           << " in a tensor of rank " << rank;
}

LogicalResult MaskTailOp::verify() {
  if (failed(verifyDim(*this, getDim())))
    return failure();
  if (getNeutral().getType() != typeOf(getInput()).getElementType())
    return emitOpError() << "neutral element of type " << getNeutral().getType()
                         << " in " << getType();
  return success();
}

static LogicalResult verifyBlock(Operation *op, int64_t dim) {
  if (failed(verifyDim(op, dim)))
    return failure();
  auto from = typeOf(op->getOperand(0)), to = typeOf(op->getResult(0));
  SmallVector<int64_t> shape(from.getShape());
  if (to.getRank() == from.getRank())
    shape[dim] = to.getDimSize(dim);
  if (to != RankedTensorType::get(shape, from.getElementType()))
    return op->emitOpError()
           << from << " and " << to << " differ not only in dimension " << dim;
  return success();
}
LogicalResult TakeBlockOp::verify() { return verifyBlock(*this, getDim()); }
LogicalResult PlaceBlockOp::verify() { return verifyBlock(*this, getDim()); }

LogicalResult MatmulOp::verify() {
  auto lhs = typeOf(getLhs()), rhs = typeOf(getRhs()),
       result = typeOf(getResult());
  if (lhs.getRank() < 2 || rhs.getRank() < 2 || result.getRank() < 2)
    return emitOpError() << "operands have rank " << lhs.getRank() << " and "
                         << rhs.getRank() << ", expected 2 or more";
  auto last = [](RankedTensorType type, bool second) {
    return type.getShape().rbegin()[second];
  };
  if (last(lhs, getTransposeLhs()) != last(rhs, !getTransposeRhs()))
    return emitOpError() << "contracted sizes are "
                         << last(lhs, getTransposeLhs()) << " and "
                         << last(rhs, !getTransposeRhs());
  if (last(result, true) != last(lhs, !getTransposeLhs()) ||
      last(result, false) != last(rhs, getTransposeRhs()))
    return emitOpError() << "a product of " << lhs << " and " << rhs
                         << " does not end as " << result;
  if (getBias() &&
      getBias().getType() !=
          RankedTensorType::get({last(result, false)}, result.getElementType()))
    return emitOpError() << "bias of type " << getBias().getType() << " for "
                         << result;
  return success();
}

LogicalResult FusedOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getInputs().getTypes())
    return emitOpError()
           << "block arguments do not have the types of the operands";
  if (block.getTerminator()->getOperandTypes() != getOutputs().getTypes())
    return emitOpError()
           << "yielded values do not have the types of the results";
  for (Operation &op : block)
    if (isa<CollectiveOpInterface>(op))
      return op.emitOpError() << "a collective stands in a fused region";
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {
/// Checks that `dim` has the sizes its cut gives, and notes it in `changed`.
class CutVerifier {
public:
  CutVerifier(Operation *op, const MeshShape &mesh, ArrayRef<int> axes)
      : op(op), mesh(mesh), axes(axes) {}

  LogicalResult verify(int64_t dim, CutAttr attr, Type whole, Type sharded) {
    if (failed(verifyDim(op, dim)))
      return failure();
    changed.push_back(dim);
    DimCut cut = toCut(attr, mesh);
    if (cut.axes.size() < axes.size() ||
        !std::equal(axes.begin(), axes.end(), cut.axes.end() - axes.size()))
      return op->emitOpError()
             << "the axes of the collective are not the minor-most of cut "
             << attr;
    int64_t inner = blockCapacity(attr.getExtent(), cut, mesh);
    cut.axes.resize(cut.axes.size() - axes.size());
    int64_t outer = blockCapacity(attr.getExtent(), cut, mesh);
    int64_t haveOuter = sizeOf(whole, dim), haveInner = sizeOf(sharded, dim);
    if (haveOuter != outer || haveInner != inner)
      return op->emitOpError()
             << "cut " << attr << " gives sizes " << outer << " and " << inner
             << " in dimension " << dim << ", the types have " << haveOuter
             << " and " << haveInner;
    return success();
  }

  /// All other sizes and the element type stay.
  LogicalResult verifyRest() {
    auto from = typeOf(op->getOperand(0)), to = typeOf(op->getResult(0));
    SmallVector<int64_t> shape(from.getShape());
    for (int64_t dim : changed)
      shape[dim] = sizeOf(to, dim);
    if (to != RankedTensorType::get(shape, from.getElementType()))
      return op->emitOpError() << "changes " << from << " to " << to
                               << " besides the cut dimensions";
    return success();
  }

private:
  static int64_t sizeOf(Type type, int64_t dim) {
    auto tensor = cast<RankedTensorType>(type);
    return dim < tensor.getRank() ? tensor.getDimSize(dim) : -1;
  }
  Operation *op;
  const MeshShape &mesh;
  ArrayRef<int> axes;
  SmallVector<int64_t, 2> changed;
};
} // namespace

/// Axes of a collective; for those that cut one dimension also its sizes.
LogicalResult spmd::detail::verifyCollective(Operation *op) {
  auto collective = cast<CollectiveOpInterface>(op);
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return op->emitOpError() << "a collective has one operand and one result";
  MeshOp meshOp = findMesh(op);
  if (!meshOp)
    return failure();
  MeshShape mesh = meshOp.getShape();
  if (failed(verifyAxes(op, collective.getAxes(), mesh, "the axes")))
    return failure();
  CutAttr cut = collective.getChangedCut();
  if (!cut || isa<spmd::AllToAllOp>(op))
    return success();
  SmallVector<int, 2> axes = findAxes(collective.getAxes(), mesh);
  CutVerifier verifier(op, mesh, axes);
  Type whole = op->getOperand(0).getType(),
       sharded = op->getResult(0).getType();
  if (isa<spmd::AllGatherOp>(op))
    std::swap(whole, sharded);
  if (failed(verifier.verify(collective.getChangedDim(), cut, whole, sharded)))
    return failure();
  return verifier.verifyRest();
}

static LogicalResult verifySameType(Operation *op) {
  if (op->getOperand(0).getType() == op->getResult(0).getType())
    return success();
  return op->emitOpError() << "changes " << op->getOperand(0).getType()
                           << " to " << op->getResult(0).getType();
}

LogicalResult spmd::AllReduceOp::verify() { return verifySameType(*this); }

LogicalResult spmd::AllToAllOp::verify() {
  MeshOp meshOp = findMesh(*this);
  if (!meshOp)
    return failure();
  if (getDim() == getSplitDim())
    return emitOpError() << "cuts and concatenates the same dimension "
                         << getDim();
  MeshShape mesh = meshOp.getShape();
  SmallVector<int, 2> axes = findAxes(getAxes(), mesh);
  if (axes.empty())
    return verifyAxes(*this, getAxes(), mesh, "the axes");
  CutVerifier verifier(*this, mesh, axes);
  Type from = getInput().getType(), to = getType();
  if (failed(verifier.verify(getDim(), getCut(), to, from)) ||
      failed(verifier.verify(getSplitDim(), getSplitCut(), from, to)))
    return failure();
  return verifier.verifyRest();
}

LogicalResult spmd::PermuteOp::verify() {
  MeshOp mesh = findMesh(*this);
  if (!mesh)
    return failure();
  MeshShape shape = mesh.getShape();
  int64_t members = 1;
  for (int axis : findAxes(getAxes(), shape))
    members *= shape.axes[axis].size;
  SmallVector<int64_t> sorted(getSourceOf());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, members)))
    return emitOpError() << "source_of is not a permutation of the " << members
                         << " ranks of a group";
  return verifySameType(*this);
}
