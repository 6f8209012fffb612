// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-partition-conversions.cpp - changes of layout, on local blocks -===//
//
// Generic over ConversionOpInterface: this file names no op of the graph.
//
//===----------------------------------------------------------------------===//

#include "passes/mtp-partition.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::partition;

//===----------------------------------------------------------------------===//
// RankScalars
//===----------------------------------------------------------------------===//

Value RankScalars::get(Location loc, spmd::RankValueKind kind, int64_t extent,
                       const DimCut &cut) {
  spmd::CutAttr attr = spmd::toCutAttr(builder.getContext(), extent, cut, mesh);
  Value &value = made[{kind, attr.getAsOpaquePointer()}];
  if (!value)
    value = spmd::RankValueOp::create(
        builder, loc, RankedTensorType::get({}, builder.getI64Type()), kind,
        attr);
  return value;
}

Value RankScalars::offset(Location loc, int64_t extent, const DimCut &cut) {
  return get(loc, spmd::RankValueKind::offset, extent, cut);
}
Value RankScalars::valid(Location loc, int64_t extent, const DimCut &cut) {
  return get(loc, spmd::RankValueKind::valid, extent, cut);
}
Value RankScalars::coordinate(Location loc, int axis) {
  return get(loc, spmd::RankValueKind::coordinate, 0, DimCut{{axis}, 1});
}

//===----------------------------------------------------------------------===//
// ConversionEmitter
//===----------------------------------------------------------------------===//

ConversionEmitter::ConversionEmitter(ConversionOpInterface op,
                                     const Layout &from, const Layout &to,
                                     const MeshShape &mesh, OpBuilder &builder,
                                     RankScalars &scalars)
    : op(op), from(from), to(to), mesh(mesh), builder(builder),
      scalars(scalars), axes(spmd::findAxes(op.getAxes(), mesh)) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  shape = type.getShape();
  local =
      RankedTensorType::get(to.localShape(shape, mesh), type.getElementType());
}

spmd::CutAttr ConversionEmitter::cutOf(const Layout &layout, int dim) const {
  return spmd::toCutAttr(builder.getContext(), extent(dim), layout.dims[dim],
                         mesh);
}

/// `cut` without `axes`.
static DimCut without(DimCut cut, ArrayRef<int> axes) {
  llvm::erase_if(cut.axes,
                 [&](int axis) { return llvm::is_contained(axes, axis); });
  return cut;
}

/// With the listed axes taken away, both sides have the same blocks: units may
/// be written differently, but must not make a difference.
LogicalResult ConversionEmitter::checkNesting() {
  if (op.getTransfer() == Transfer::Permute)
    return success();
  for (auto [dim, cuts] :
       llvm::enumerate(llvm::zip_equal(from.dims, to.dims))) {
    DimCut a = without(std::get<0>(cuts), axes),
           b = without(std::get<1>(cuts), axes);
    bool same = a.axes == b.axes;
    for (size_t n = 1; same && n <= a.axes.size(); ++n) {
      DimCut outerA{{a.axes.begin(), a.axes.begin() + n}, a.unit},
          outerB = outerA;
      outerB.unit = b.unit;
      same = blockCapacity(shape[dim], outerA, mesh) ==
             blockCapacity(shape[dim], outerB, mesh);
    }
    if (!same)
      return op->emitOpError()
             << "dimension " << dim << " of size " << shape[dim]
             << " is cut in units of " << a.unit << " and of " << b.unit
             << ", whose blocks do not nest";
  }
  return success();
}

Value ConversionEmitter::emit(Value input) {
  if (failed(checkNesting()))
    return {};
  int64_t members = 1;
  for (int axis : axes)
    members *= mesh.axes[axis].size;
  if (op.getTransfer() == Transfer::None ||
      (members == 1 && input.getType() == local))
    return input;
  switch (op.getTransfer()) {
  case Transfer::None:
    return input;
  case Transfer::Slice:
    return emitSlice(input);
  case Transfer::Pad:
    return emitPad(input);
  case Transfer::Root:
    return emitRoot(input);
  default:
    return emitCollective(input);
  }
}

Value ConversionEmitter::emitSlice(Value input) {
  int dim = to.states[axes[0]].dim;
  int64_t outer = cast<RankedTensorType>(input.getType()).getDimSize(dim);
  Value offset =
      scalars.offset(op->getLoc(), outer, DimCut{axes, to.dims[dim].unit});
  return spmd::TakeBlockOp::create(builder, op->getLoc(), local, input, offset,
                                   dim);
}

Value ConversionEmitter::emitPad(Value input) {
  int dim = from.states[axes[0]].dim;
  Value offset = scalars.offset(op->getLoc(), local.getDimSize(dim),
                                DimCut{axes, from.dims[dim].unit});
  Value valid = scalars.valid(op->getLoc(), extent(dim), from.dims[dim]);
  return spmd::PlaceBlockOp::create(builder, op->getLoc(), local, input, offset,
                                    valid, dim);
}

Value ConversionEmitter::emitRoot(Value input) {
  for (int axis : axes)
    if (mesh.axes[axis].size > 1)
      input =
          spmd::KeepOnRootOp::create(builder, op->getLoc(), local, input,
                                     scalars.coordinate(op->getLoc(), axis));
  return input;
}

static spmd::Reduction reductionOf(Kind kind) {
  return kind == Kind::PMax   ? spmd::Reduction::max
         : kind == Kind::PMin ? spmd::Reduction::min
                              : spmd::Reduction::sum;
}

Value ConversionEmitter::emitCollective(Value input) {
  Location loc = op->getLoc();
  ArrayAttr names = op.getAxes();
  auto phaseAttr = op->getAttrOfType<StringAttr>(spmd::names::phase);
  StringAttr phase = phaseAttr ? phaseAttr : builder.getStringAttr("forward");
  StringAttr name = builder.getStringAttr(op->getName().stripDialect());
  int fromDim = from.states[axes[0]].dim, toDim = to.states[axes[0]].dim;
  Operation *made = nullptr;
  switch (op.getTransfer()) {
  case Transfer::AllReduce:
    made = spmd::AllReduceOp::create(
        builder, loc, local, input, names, name, phase,
        spmd::ReductionAttr::get(builder.getContext(),
                                 reductionOf(op.fromKind())));
    break;
  case Transfer::AllGather:
    made = spmd::AllGatherOp::create(builder, loc, local, input, names, name,
                                     phase, builder.getI64IntegerAttr(fromDim),
                                     cutOf(from, fromDim));
    break;
  case Transfer::ReduceScatter:
    made = spmd::ReduceScatterOp::create(
        builder, loc, local, input, names, name, phase,
        builder.getI64IntegerAttr(toDim), cutOf(to, toDim));
    break;
  case Transfer::AllToAll:
    made = spmd::AllToAllOp::create(
        builder, loc, local, input, names, name, phase,
        builder.getI64IntegerAttr(fromDim), cutOf(from, fromDim),
        builder.getI64IntegerAttr(toDim), cutOf(to, toDim));
    break;
  default:
    made =
        spmd::PermuteOp::create(builder, loc, local, input, names, name, phase,
                                builder.getDenseI64ArrayAttr(sources()));
  }
  // What the plan says about the conversion goes along.
  for (NamedAttribute attr : op->getDiscardableAttrs())
    if (attr.getName() != spmd::names::phase)
      made->setDiscardableAttr(attr.getName(), attr.getValue());
  return made->getResult(0);
}

/// Digits of `number` in mixed radix over `axes`, the last one fastest.
static void toCoordinates(int64_t number, ArrayRef<int> axes,
                          const MeshShape &mesh,
                          MutableArrayRef<int64_t> coordinates) {
  for (int axis : llvm::reverse(axes)) {
    coordinates[axis] = number % mesh.axes[axis].size;
    number /= mesh.axes[axis].size;
  }
}
static int64_t toNumber(ArrayRef<int> axes, const MeshShape &mesh,
                        ArrayRef<int64_t> coordinates) {
  int64_t number = 0;
  for (int axis : axes)
    number = number * mesh.axes[axis].size + coordinates[axis];
  return number;
}

/// For each rank of the group, who has the block that it gets. Example: axes
/// (dp, tp) of 2 x 2, blocks in order (dp, tp) before and (tp, dp) after: rank
/// (0, 1) gets block 2, which (1, 0) has: [0, 2, 1, 3].
SmallVector<int64_t> ConversionEmitter::sources() const {
  int dim = from.states[axes[0]].dim;
  auto minor = [&](const Layout &layout) {
    return ArrayRef<int>(layout.dims[dim].axes).take_back(axes.size());
  };
  int64_t members = 1;
  for (int axis : axes)
    members *= mesh.axes[axis].size;
  SmallVector<int64_t> result, coordinates(mesh.size(), 0);
  for (int64_t member = 0; member < members; ++member) {
    toCoordinates(member, axes, mesh, coordinates);
    toCoordinates(toNumber(minor(to), mesh, coordinates), minor(from), mesh,
                  coordinates);
    result.push_back(toNumber(axes, mesh, coordinates));
  }
  return result;
}
