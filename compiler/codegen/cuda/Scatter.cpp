// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Scatter.cpp - writes where indices say, in their order -------------===//
//
// Two kernels: the data is copied, then updated. Updates of one element must be
// applied in order, so the updates of one line (scatter_elements: the elements
// that differ in the dimension only; scatter_nd: one position of the slices)
// are one thread's.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/ArtifactTypes.h"
#include "compiler/codegen/cuda/KernelCode.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {

SmallVector<KernelPart> scatterParts(Operation *) {
  return {{"copy", {0}}, {"update", {0}}};
}

void emitCopy(LibraryKernelContext &context) {
  KernelCode code(context.emit);
  Value data = context.op->getOperand(0);
  Type type = elementTypeOf(data);
  code.forEach(context.name,
               cast<RankedTensorType>(data.getType()).getNumElements(),
               [&](Value at) {
                 Value x = code.load(context.operandBuffer(0), type, at);
                 code.store(context.resultBuffer(0), type, at, x);
               });
}

/// Element `at` of the result, with an update.
void apply(LibraryKernelContext &context, KernelCode &code, Combine combine,
           Value at, Value update) {
  Type type = elementTypeOf(context.op->getResult(0));
  Value buffer = context.resultBuffer(0);
  Scalars s(context.emit, type);
  if (combine != Combine::none) {
    Value old = code.load(buffer, type, at);
    update = combine == Combine::add   ? s.add(old, update)
             : combine == Combine::mul ? s.mul(old, update)
             : combine == Combine::max ? s.max(old, update)
                                       : s.min(old, update);
  }
  code.store(buffer, type, at, update);
}

/// An index in a dimension of `size`; one outside is a fault and becomes 0.
Value position(LibraryKernelContext &context, KernelCode &code, Value at,
               int64_t dim, int64_t size) {
  Value index = code.loadIndex(context.operandBuffer(1),
                               elementTypeOf(context.op->getOperand(1)), at);
  Value zero = code.number(0);
  index = code.select(code.less(index, zero), code.add(index, size), index);
  Value good = code.inside(index, size);
  std::string node = nodeName(context.op->getLoc());
  context.emit.faultIf(
      code.negate(good),
      "an index is outside of dimension " + std::to_string(dim) + " of " +
          std::to_string(size) + " elements in " +
          (node.empty() ? context.op->getName().getStringRef().str()
                        : "node '" + node + "'"));
  return code.select(good, index, zero);
}

LogicalResult emitScatterElements(LibraryKernelContext &context) {
  auto op = cast<ScatterElementsOp>(context.op);
  if (context.part == "copy")
    return emitCopy(context), success();
  KernelCode code(context.emit);
  ArrayRef<int64_t> data = shapeOf(op.getData()),
                    updates = shapeOf(op.getUpdates());
  int64_t dim = op.getDim();
  auto strides = rowMajorStrides(data), from = rowMajorStrides(updates);
  SmallVector<int64_t> lines(updates);
  lines[dim] = 1;
  int64_t count = 1;
  for (int64_t size : lines)
    count *= size;
  code.forEach(context.name, count, [&](Value line) {
    auto at = code.split(line, lines);
    at[dim] = code.number(0);
    Value to = code.join(at, strides), source = code.join(at, from);
    code.loop(code.number(0), code.number(updates[dim]), 1, {},
              [&](Value i, ValueRange) -> KernelCode::Values {
                Value where = code.add(source, code.mul(i, from[dim]));
                Value index = position(context, code, where, dim, data[dim]);
                Value update = code.load(context.operandBuffer(2),
                                         elementTypeOf(op.getUpdates()), where);
                apply(context, code, op.getCombine(),
                      code.add(to, code.mul(index, strides[dim])), update);
                return {};
              });
  });
  return success();
}

LogicalResult emitScatterNd(LibraryKernelContext &context) {
  auto op = cast<ScatterNdOp>(context.op);
  if (context.part == "copy")
    return emitCopy(context), success();
  KernelCode code(context.emit);
  ArrayRef<int64_t> data = shapeOf(op.getData()),
                    indices = shapeOf(op.getIndices());
  int64_t tuple = indices.back(), tuples = 1, slice = 1;
  for (int64_t size : indices.drop_back())
    tuples *= size;
  for (int64_t size : data.drop_front(tuple))
    slice *= size;
  auto strides = rowMajorStrides(data);
  code.forEach(context.name, slice, [&](Value inside) {
    code.loop(code.number(0), code.number(tuples), 1, {},
              [&](Value number, ValueRange) -> KernelCode::Values {
                Value to = inside, from = code.mul(number, tuple);
                for (int64_t i = 0; i < tuple; ++i) {
                  Value index =
                      position(context, code, code.add(from, i), i, data[i]);
                  to = code.add(to, code.mul(index, strides[i]));
                }
                Value update = code.load(
                    context.operandBuffer(2), elementTypeOf(op.getUpdates()),
                    code.add(code.mul(number, slice), inside));
                apply(context, code, op.getCombine(), to, update);
                return {};
              });
  });
  return success();
}

} // namespace

void mtp::registerScatterKernels(LibraryKernelTable &table) {
  table["mtp.scatter_elements"] = {scatterParts, emitScatterElements};
  table["mtp.scatter_nd"] = {scatterParts, emitScatterNd};
}
