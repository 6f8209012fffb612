// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/training/Training.h"

#include <cmath>

using namespace mlir;
using namespace mtp;
using namespace mtp::training;

/// Row-major position of every element of `shape`: the sum of iota · stride
/// over the dimensions. Sizes of one have position 0.
static Value linearIndex(OpMaker &make, ArrayRef<int64_t> shape) {
  Type i64 = make.builder.getI64Type();
  Value index;
  int64_t stride = 1;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    if (shape[dim] == 1)
      continue;
    SmallVector<int64_t> line(shape.size(), 1);
    line[dim] = shape[dim];
    Value along = make.iota(line, dim, i64);
    if (stride != 1)
      along = make.binary<MulOp>(along, make.integer(i64, stride));
    index = index ? make.binary<AddOp>(along, index) : along;
    stride *= shape[dim];
  }
  return index ? index : make.iota(shape, shape.size() - 1, i64);
}

namespace {
/// Replaces the dropouts of one function.
class Expander {
public:
  Expander(func::FuncOp function, bool accumulate)
      : function(function), accumulate(accumulate),
        builder(function.getContext()) {}

  void identity(DropoutOp op) {
    op.getResult().replaceAllUsesWith(op.getInput());
    if (!op.getMask().use_empty()) {
      builder.setInsertionPoint(op);
      op.getMask().replaceAllUsesWith(ConstantOp::create(
          builder, op.getLoc(),
          DenseElementsAttr::get(typeOf(op.getMask()), true)));
    }
    op.erase();
  }

  /// An element is kept if its 32 random bits, as a number, are below
  /// (1 - ratio) · 2^32.
  void random(DropoutOp op) {
    builder.setInsertionPoint(op);
    OpMaker make(builder, op.getLoc());
    Type i64 = builder.getI64Type(),
         element = typeOf(op.getInput()).getElementType();
    RankedTensorType scalar = RankedTensorType::get({}, i64);
    double ratio = op.getRatio().convertToDouble();
    Value index = position(make, typeOf(op.getInput()));
    Value bits = PhiloxOp::create(builder, op.getLoc(), typeOf(index), index,
                                  argument(function, names::seed, scalar),
                                  argument(function, names::step, scalar),
                                  op.getStreamAttr());
    auto below = static_cast<int64_t>(std::llround((1 - ratio) * 4294967296.0));
    Value mask = make.compare(Compare::lt, bits, make.integer(i64, below));
    Value scaled = make.binary<MulOp>(op.getInput(),
                                      make.scalar(element, 1 / (1 - ratio)));
    op.getResult().replaceAllUsesWith(
        make.select(mask, scaled, make.scalar(element, 0)));
    op.getMask().replaceAllUsesWith(mask);
    op.erase();
  }

private:
  /// Batches come first in every tensor, so that the elements of a micro-batch
  /// lie together in the tensor of the whole batch.
  Value position(OpMaker &make, RankedTensorType type) {
    auto scalarShape = type.getRank() == 0;
    Value index = scalarShape ? make.integer(builder.getI64Type(), 0)
                              : linearIndex(make, type.getShape());
    if (!accumulate)
      return index;
    Value number = argument(function, names::microBatch,
                            RankedTensorType::get({}, builder.getI64Type()));
    Value offset = make.binary<MulOp>(
        number, make.integer(builder.getI64Type(), type.getNumElements()));
    return make.binary<AddOp>(index, offset);
  }

  func::FuncOp function;
  bool accumulate;
  OpBuilder builder;
};
} // namespace

void training::expandDropout(func::FuncOp function, DropoutMode mode,
                             bool accumulate) {
  SmallVector<DropoutOp> ops(function.getOps<DropoutOp>());
  Expander expander(function, accumulate);
  for (DropoutOp op : ops) {
    bool active = mode == DropoutMode::On ||
                  (mode == DropoutMode::Model && op.getTraining());
    if (active && op.getRatio().convertToDouble() > 0)
      expander.random(op);
    else
      expander.identity(op);
  }
}
