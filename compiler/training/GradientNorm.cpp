// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/GradientNorm.h"

#include <map>

using namespace mlir;
using namespace mtp;
using namespace mtp::training;

Value training::convertInUpdate(OpMaker &make, StringRef mnemonic, Value input,
                                ArrayRef<int> axes, const Layout &result,
                                const MeshShape &mesh) {
  Value converted = createConversion(make.builder, make.loc, mnemonic, input,
                                     axes, result, mesh);
  converted.getDefiningOp()->setAttr(spmd::names::phase,
                                     make.builder.getStringAttr("update"));
  return converted;
}

/// Mesh axes that cut a tensor, in mesh order.
static std::vector<int> cuttingAxes(const Layout &layout) {
  std::vector<int> axes;
  for (auto [axis, state] : llvm::enumerate(layout.states))
    if (state.kind == Kind::S)
      axes.push_back(static_cast<int>(axis));
  return axes;
}

static Layout partialOn(ArrayRef<int> axes, const MeshShape &mesh) {
  Layout layout(mesh.size(), 0);
  for (int axis : axes)
    layout.states[axis] = {Kind::PSum, -1};
  return layout;
}

static Value sumOfSquares(OpMaker &make, Value gradient, ArrayRef<int> cut,
                          const MeshShape &mesh) {
  Value squares = make.binary<MulOp>(gradient, gradient);
  auto type = RankedTensorType::get(
      {}, typeOf(gradient).getElementType(),
      toAttr(make.builder.getContext(), partialOn(cut, mesh), mesh));
  auto dims =
      llvm::to_vector(llvm::seq<int64_t>(0, typeOf(gradient).getRank()));
  return ReduceSumOp::create(make.builder, make.loc, type, squares,
                             make.builder.getDenseI64ArrayAttr(dims),
                             UnitAttr());
}

FailureOr<Value> training::emitNorm(OpMaker &make, ArrayRef<Value> gradients,
                                    const MeshShape &mesh) {
  // Sums by the axes that cut their gradients.
  std::map<std::vector<int>, Value> sums;
  std::vector<int> used;
  for (Value gradient : gradients) {
    FailureOr<Layout> layout = toLayout(
        gradient.getParentRegion()->getParentOp(), typeOf(gradient), mesh);
    if (failed(layout))
      return failure();
    std::vector<int> cut = cuttingAxes(*layout);
    for (int axis : cut)
      if (!llvm::is_contained(used, axis))
        used.push_back(axis);
    Value &sum = sums[cut], mine = sumOfSquares(make, gradient, cut, mesh);
    sum = sum ? AddOp::create(make.builder, make.loc, sum.getType(), sum, mine)
              : mine;
  }
  llvm::sort(used);
  Value total;
  for (auto &[cut, sum] : sums) {
    SmallVector<int> whole;
    for (int axis : used)
      if (!llvm::is_contained(cut, axis))
        whole.push_back(axis);
    Value part = whole.empty()
                     ? sum
                     : convertInUpdate(make, "mtp.root_to", sum, whole,
                                       partialOn(used, mesh), mesh);
    total = total ? AddOp::create(make.builder, make.loc, total.getType(),
                                  total, part)
                  : part;
  }
  if (!used.empty())
    total = convertInUpdate(make, "mtp.reduce_from", total, used,
                            partialOn({}, mesh), mesh);
  return make.unary<SqrtOp>(total);
}
