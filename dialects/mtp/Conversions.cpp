// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Conversions.cpp - changes of layout --------------------------------===//

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {
/// Checks one conversion op against its table row.
class ConversionVerifier {
public:
  ConversionVerifier(ConversionOpInterface op, MeshShape mesh)
      : op(op), mesh(std::move(mesh)) {}

  LogicalResult run() {
    auto from = cast<RankedTensorType>(op->getOperand(0).getType());
    auto to = cast<RankedTensorType>(op->getResult(0).getType());
    if (from.getShape() != to.getShape() ||
        from.getElementType() != to.getElementType())
      return op->emitOpError() << "changes " << from << " to " << to
                               << "; only the layout may change";
    auto source = toLayout(op, from, mesh), target = toLayout(op, to, mesh);
    if (failed(source) || failed(target))
      return failure();
    if (failed(findAxes()))
      return failure();
    for (int axis = 0; axis < mesh.size(); ++axis) {
      AxisState have = source->states[axis], get = target->states[axis];
      if (!llvm::is_contained(axes, axis)) {
        if (!(have == get))
          return error(axis)
                 << "the state changes although the axis is not listed";
        continue;
      }
      if (have.kind != op.fromKind() || get.kind != op.toKind())
        return error(axis)
               << "the states of operand and result are not those of the op";
    }
    return op.getTransfer() == Transfer::Permute
               ? verifyPermute(*source, *target)
               : verifyNesting(*source, *target);
  }

private:
  InFlightDiagnostic error(int axis) {
    return op->emitOpError() << "axis " << mesh.axes[axis].name() << ": ";
  }

  LogicalResult findAxes() {
    for (Attribute name : op.getAxes()) {
      SmallVector<int, 2> found = mesh.find(cast<StringAttr>(name).getValue());
      if (found.empty())
        return op->emitOpError()
               << "mesh @" << mesh.symbol << " has no axis " << name;
      axes.append(found);
    }
    if (axes.empty())
      return op->emitOpError() << "lists no axis";
    return success();
  }

  /// With the listed axes taken off the minor end, both sides are cut alike.
  LogicalResult verifyNesting(Layout source, Layout target) {
    int sourceDim = source.states[axes[0]].dim,
        targetDim = target.states[axes[0]].dim;
    if (failed(takeOff(source)) || failed(takeOff(target)))
      return failure();
    if (op.fromKind() == Kind::S && op.toKind() == Kind::S &&
        sourceDim == targetDim)
      return op->emitOpError()
             << "operand and result are sharded in the same dimension";
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(op->getResult(0).getType()).getShape();
    source.canonicalize(shape, mesh);
    target.canonicalize(shape, mesh);
    for (auto [dim, cuts] :
         llvm::enumerate(llvm::zip_equal(source.dims, target.dims)))
      if (!(std::get<0>(cuts) == std::get<1>(cuts)) &&
          std::get<0>(cuts).axes != std::get<1>(cuts).axes)
        return op->emitOpError()
               << "dimension " << dim
               << " is cut differently besides the listed axes";
    return success();
  }

  LogicalResult takeOff(Layout &layout) {
    for (int axis : llvm::reverse(axes)) {
      AxisState state = layout.states[axis];
      if (state.kind != Kind::S)
        continue;
      if (state.dim != layout.states[axes[0]].dim &&
          layout.states[axes[0]].kind == Kind::S)
        return error(axis) << "the listed axes shard different dimensions";
      if (layout.dims[state.dim].axes.back() != axis)
        return error(axis)
               << "is not the minor-most axis of dimension " << state.dim
               << "; only that may be added or removed (use permute)";
      layout.unshard(axis, Kind::I);
    }
    return success();
  }

  LogicalResult verifyPermute(const Layout &source, const Layout &target) {
    int dim = source.states[axes[0]].dim;
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(op->getResult(0).getType()).getShape();
    for (auto [index, cuts] :
         llvm::enumerate(llvm::zip_equal(source.dims, target.dims))) {
      auto &[from, to] = cuts;
      if (static_cast<int>(index) != dim) {
        if (!(from == to))
          return op->emitOpError() << "dimension " << index
                                   << " changes besides the permuted one";
        continue;
      }
      size_t kept = from.axes.size() - axes.size();
      if (from.axes.size() != to.axes.size() ||
          from.axes.size() < axes.size() ||
          !std::is_permutation(from.axes.begin() + kept, from.axes.end(),
                               to.axes.begin() + kept) ||
          !std::equal(from.axes.begin(), from.axes.begin() + kept,
                      to.axes.begin()))
        return op->emitOpError() << "the listed axes do not cut dimension "
                                 << dim << " minor-most in both types";
      if (source.isPadded(dim, shape[dim], mesh) ||
          target.isPadded(dim, shape[dim], mesh))
        return op->emitOpError()
               << "dimension " << dim
               << " has padded blocks, which cannot be permuted";
    }
    return success();
  }

  ConversionOpInterface op;
  MeshShape mesh;
  SmallVector<int, 2> axes;
};
} // namespace

LogicalResult mtp::detail::verifyConversion(Operation *op) {
  auto conversion = cast<ConversionOpInterface>(op);
  LayoutAttr from = layoutOf(op->getOperand(0).getType()),
             to = layoutOf(op->getResult(0).getType());
  if (!from || !to)
    return op->emitOpError() << "needs a layout on operand and result";
  if (from.getMesh() != to.getMesh())
    return op->emitOpError()
           << "goes from mesh " << from.getMesh() << " to " << to.getMesh();
  MeshOp mesh = lookupMesh(op, from.getMesh());
  if (!mesh)
    return op->emitOpError() << "there is no mtp.mesh " << from.getMesh();
  return ConversionVerifier(conversion, mesh.getShape()).run();
}

StringRef mtp::conversionName(Kind from, Kind to) {
  struct Row {
    Kind from, to;
    StringRef name;
  };
  static const Row rows[] = {{Kind::I, Kind::R, "mtp.copy_to"},
                             {Kind::PSum, Kind::I, "mtp.reduce_from"},
                             {Kind::PSum, Kind::R, "mtp.all_reduce"},
                             {Kind::PMax, Kind::I, "mtp.reduce_max_from"},
                             {Kind::PMax, Kind::R, "mtp.all_reduce_max"},
                             {Kind::PMin, Kind::I, "mtp.reduce_min_from"},
                             {Kind::PMin, Kind::R, "mtp.all_reduce_min"},
                             {Kind::S, Kind::R, "mtp.all_gather"},
                             {Kind::PSum, Kind::S, "mtp.reduce_scatter"},
                             {Kind::S, Kind::I, "mtp.gather_from"},
                             {Kind::I, Kind::S, "mtp.scatter_to"},
                             {Kind::R, Kind::S, "mtp.slice"},
                             {Kind::S, Kind::PSum, "mtp.pad_to"},
                             {Kind::I, Kind::PSum, "mtp.root_to"},
                             {Kind::R, Kind::I, "mtp.assert_invariant"},
                             {Kind::R, Kind::PSum, "mtp.root_of"},
                             {Kind::S, Kind::S, "mtp.all_to_all"}};
  for (const Row &row : rows)
    if (row.from == from && row.to == to)
      return row.name;
  return "";
}

Value mtp::createConversion(OpBuilder &builder, Location loc,
                            StringRef mnemonic, Value input, ArrayRef<int> axes,
                            const Layout &result, const MeshShape &mesh) {
  SmallVector<Attribute> names;
  for (const std::string &name : mesh.names(axes))
    names.push_back(builder.getStringAttr(name));
  OperationState state(loc, mnemonic);
  state.addOperands(input);
  state.addAttribute("axes", builder.getArrayAttr(names));
  state.addTypes(withLayout(cast<RankedTensorType>(input.getType()),
                            toAttr(builder.getContext(), result, mesh)));
  return builder.create(state)->getResult(0);
}
