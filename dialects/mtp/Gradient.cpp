// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Gradient.cpp - what the gradients of ops are written with ----------===//

#include "dialects/mtp/Gradient.h"

#include "dialects/mtp/RuleSupport.h"

using namespace mlir;
using namespace mtp;

/// The dual of the layout of a value that has one.
static std::optional<Layout> dualLayout(Value value, const MeshShape &mesh) {
  Operation *at = value.getDefiningOp();
  if (!at)
    at = value.getParentRegion()->getParentOp();
  auto layout = toLayout(at, typeOf(value), mesh);
  if (failed(layout))
    return std::nullopt;
  for (AxisState &state : layout->states)
    state.kind = dual(state.kind);
  return std::move(*layout);
}

RankedTensorType mtp::cotangentType(Value value, const MeshShape &mesh) {
  auto layout = dualLayout(value, mesh);
  return withLayout(typeOf(value),
                    layout ? toAttr(value.getContext(), *layout, mesh)
                           : LayoutAttr());
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

RankedTensorType GradientBuilder::plain(Value value) {
  return withLayout(typeOf(value), {});
}

RankedTensorType GradientBuilder::typed(Shape shape, Value like) {
  return RankedTensorType::get(shape, typeOf(like).getElementType());
}

Operation *GradientBuilder::finishAll(Operation *op, ArrayRef<Value> of) {
  SmallVector<std::optional<Layout>> wanted;
  for (Value value : of) {
    Value result = op->getResult(wanted.size());
    bool same = value && typeOf(value).getShape() == typeOf(result).getShape();
    wanted.push_back(same ? dualLayout(value, mesh) : std::nullopt);
  }
  infer(op, wanted);
  return op;
}

void GradientBuilder::infer(Operation *op,
                            ArrayRef<std::optional<Layout>> wanted) {
  // One message is enough; what follows from it would only repeat it.
  if (failedOnce)
    return;
  std::string why;
  if (succeeded(inferLayouts(op, mesh, why, wanted)))
    return;
  failedOnce = true;
  InFlightDiagnostic diagnostic = forward->emitOpError()
                                  << "internal error: its gradient needs "
                                  << op->getName()
                                  << ", which has no layout on these operands";
  if (!why.empty())
    diagnostic << ": " << why;
  for (mlir::Type type : op->getOperandTypes())
    diagnostic.attachNote() << "operand of type " << type;
}

Value GradientBuilder::finish(Operation *op, Value of) {
  return finishAll(op, of ? ArrayRef<Value>(of) : ArrayRef<Value>())
      ->getResult(0);
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// Numpy broadcast of two shapes that fit.
static SmallVector<int64_t> join(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SmallVector<int64_t> shape(a);
  size_t extra = a.size() - b.size();
  for (auto [dim, size] : llvm::enumerate(b))
    if (shape[extra + dim] == 1)
      shape[extra + dim] = size;
  return shape;
}

template <typename Op> Value GradientBuilder::binary(Value a, Value b) {
  return make<Op>(typed(join(typeOf(a).getShape(), typeOf(b).getShape()), a), a,
                  b);
}

Value GradientBuilder::add(Value a, Value b) { return binary<AddOp>(a, b); }
Value GradientBuilder::sub(Value a, Value b) { return binary<SubOp>(a, b); }
Value GradientBuilder::mul(Value a, Value b) { return binary<MulOp>(a, b); }
Value GradientBuilder::div(Value a, Value b) { return binary<DivOp>(a, b); }
Value GradientBuilder::neg(Value a) { return unary<NegOp>(a); }

Value GradientBuilder::compare(Compare predicate, Value a, Value b) {
  auto type = RankedTensorType::get(
      join(typeOf(a).getShape(), typeOf(b).getShape()), ops.getI1Type());
  return make<CompareOp>(type, predicate, a, b);
}

Value GradientBuilder::select(Value condition, Value a, Value b) {
  auto shape = join(typeOf(condition).getShape(),
                    join(typeOf(a).getShape(), typeOf(b).getShape()));
  return make<SelectOp>(typed(shape, a), condition, a, b);
}

Value GradientBuilder::convert(Value x, mlir::Type element) {
  if (typeOf(x).getElementType() == element)
    return x;
  bool narrows = isa<FloatType>(element) && isFloat(x) &&
                 element.getIntOrFloatBitWidth() <=
                     typeOf(x).getElementType().getIntOrFloatBitWidth();
  return make<ConvertOp>(RankedTensorType::get(typeOf(x).getShape(), element),
                         x, narrows ? ops.getUnitAttr() : UnitAttr());
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static DenseElementsAttr splatAttr(RankedTensorType type, double value) {
  mlir::Type element = type.getElementType();
  if (auto floating = dyn_cast<FloatType>(element))
    return DenseElementsAttr::get(type, FloatAttr::get(floating, value));
  return DenseElementsAttr::get(
      type, IntegerAttr::get(element, static_cast<int64_t>(value)));
}

Value GradientBuilder::splat(Type type, double value) {
  return make<ConstantOp>(type, splatAttr(type, value));
}
Value GradientBuilder::scalar(Value like, double value) {
  return splat(typed({}, like), value);
}
Value GradientBuilder::splatFor(Value of, double value) {
  return makeFor<ConstantOp>(of, splatAttr(plain(of), value));
}

Value GradientBuilder::zerosFor(Value of, Shape shape, ArrayRef<int64_t> from) {
  Type type = typed(shape, of);
  Operation *op = ConstantOp::create(ops, loc(), type, splatAttr(type, 0));
  std::optional<Layout> source = dualLayout(of, mesh);
  Layout wanted(mesh.size(), shape.size());
  for (auto [dim, sourceDim] : llvm::enumerate(from)) {
    if (!source || sourceDim < 0)
      continue;
    for (int axis : source->dims[sourceDim].axes)
      wanted.shard(axis, dim);
    wanted.dims[dim].unit = source->dims[sourceDim].unit;
  }
  infer(op, std::optional<Layout>(wanted));
  return op->getResult(0);
}

//===----------------------------------------------------------------------===//
// Shapes and sums
//===----------------------------------------------------------------------===//

Value GradientBuilder::reduceSum(Value x, ArrayRef<int64_t> dims, bool keep) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(typeOf(x).getShape())) {
    bool summed = llvm::is_contained(dims, static_cast<int64_t>(dim));
    if (!summed || keep)
      shape.push_back(summed ? 1 : size);
  }
  return make<ReduceSumOp>(typed(shape, x), x, ops.getDenseI64ArrayAttr(dims),
                           keep ? ops.getUnitAttr() : UnitAttr());
}

Value GradientBuilder::reshape(Value x, Shape shape, Value of) {
  if (typeOf(x).getShape() == shape)
    return x;
  return finish(ReshapeOp::create(ops, loc(), typed(shape, x), x), of);
}

Value GradientBuilder::broadcast(Value x, Shape shape, Value of) {
  if (typeOf(x).getShape() == shape)
    return x;
  return finish(BroadcastOp::create(ops, loc(), typed(shape, x), x), of);
}

Value GradientBuilder::transpose(Value x, ArrayRef<int64_t> perm) {
  SmallVector<int64_t> shape;
  for (int64_t dim : perm)
    shape.push_back(typeOf(x).getDimSize(dim));
  return make<TransposeOp>(typed(shape, x), x, ops.getDenseI64ArrayAttr(perm));
}

Value GradientBuilder::slice(Value x, int64_t dim, int64_t start, int64_t size,
                             int64_t step) {
  SmallVector<int64_t> shape(typeOf(x).getShape());
  if (shape[dim] == size && start == 0 && step == 1)
    return x;
  shape[dim] = size;
  return make<StridedSliceOp>(typed(shape, x), x, dim, start, step);
}

Value GradientBuilder::pad(Value x, int64_t dim, int64_t low, int64_t high,
                           double value) {
  if (low == 0 && high == 0)
    return x;
  SmallVector<int64_t> shape(typeOf(x).getShape()), lows(shape.size(), 0),
      highs(shape.size(), 0);
  shape[dim] += low + high;
  lows[dim] = low;
  highs[dim] = high;
  return make<PadOp>(typed(shape, x), x, ops.getF64FloatAttr(value),
                     ops.getDenseI64ArrayAttr(lows),
                     ops.getDenseI64ArrayAttr(highs));
}

Value GradientBuilder::concat(int64_t dim, Value a, Value b) {
  SmallVector<int64_t> shape(typeOf(a).getShape());
  shape[dim] += typeOf(b).getDimSize(dim);
  return make<ConcatOp>(typed(shape, a), dim, ValueRange{a, b});
}

/// Example: (2, 8, 4) to (8, 1): sums over dimensions 0 and 2.
Value GradientBuilder::sumTo(Value x, Value operand) {
  Shape from = typeOf(x).getShape(), to = typeOf(operand).getShape();
  if (from == to)
    return x;
  int64_t extra = from.size() - to.size();
  SmallVector<int64_t> dims;
  for (int64_t dim = 0, rank = from.size(); dim < rank; ++dim)
    if (dim < extra || (to[dim - extra] == 1 && from[dim] != 1))
      dims.push_back(dim);
  bool leading = static_cast<int64_t>(dims.size()) == extra;
  return reshape(reduceSum(x, dims, /*keep=*/!leading), to, operand);
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void mtp::registerGradients(MLIRContext *context) {
  detail::registerElementwiseGradients(context);
  detail::registerShapeGradients(context);
  detail::registerContractionGradients(context);
  detail::registerReductionGradients(context);
}
