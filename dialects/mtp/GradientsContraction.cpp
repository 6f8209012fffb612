// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GradientsContraction.cpp - gradients of products, attention --------===//

#include "dialects/mtp/Gradient.h"
#include "dialects/mtp/RuleSupport.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::detail;
using Gradients = MutableArrayRef<Value>;

namespace {

UnitAttr flag(GradientBuilder &b, bool set) {
  return set ? b.builder().getUnitAttr() : UnitAttr();
}

/// A product of the last two dimensions, batches broadcast.
Value product(GradientBuilder &b, Value lhs, Value rhs, bool transposeLhs,
              bool transposeRhs, Value of) {
  ArrayRef<int64_t> left = typeOf(lhs).getShape(),
                    right = typeOf(rhs).getShape();
  SmallVector<int64_t> shape;
  size_t batch = std::max(left.size(), right.size()) - 2;
  for (size_t dim = 0; dim < batch; ++dim) {
    auto size = [&](ArrayRef<int64_t> sizes) {
      return dim + sizes.size() - 2 < batch
                 ? 1
                 : sizes[dim + sizes.size() - 2 - batch];
    };
    shape.push_back(size(left) == 1 ? size(right) : size(left));
  }
  shape.push_back(left.rbegin()[transposeLhs ? 0 : 1]);
  shape.push_back(right.rbegin()[transposeRhs ? 1 : 0]);
  return b.sumTo(b.make<MatMulOp>(b.typed(shape, of), lhs, rhs,
                                  flag(b, transposeLhs), flag(b, transposeRhs)),
                 of);
}

/// Sum over all leading dimensions of x[.., k] g[.., n], a product of matrices.
Value weightGradient(GradientBuilder &b, Value lhs, Value rhs, Value of) {
  return b.makeFor<WeightGradientOp>(of, lhs, rhs);
}

/// y = A B, where A is op(lhs) and B op(rhs): dA = g Bᵀ, dB = Aᵀ g, each in the
/// form in which the operand is stored. Products of 16 bit floats whose result
/// is wider take a cotangent that is rounded like the operands.
LogicalResult matmulGradient(MatMulOp op, GradientBuilder &b, ValueRange g,
                             Gradients d) {
  Value lhs = op.getLhs(), rhs = op.getRhs();
  bool left = op.getTransposeLhs(), right = op.getTransposeRhs();
  if (!b.wants(0u) && !b.wants(1u))
    return success();
  Value gy = b.convert(g[0], typeOf(lhs).getElementType());
  if (b.wants(0u))
    d[0] = left ? product(b, rhs, gy, right, true, lhs)
                : product(b, gy, rhs, false, !right, lhs);
  if (!b.wants(1u))
    return success();
  bool isWeight = !left && typeOf(rhs).getRank() == 2;
  if (isWeight)
    d[1] = right ? weightGradient(b, gy, lhs, rhs)
                 : weightGradient(b, lhs, gy, rhs);
  else
    d[1] = right ? product(b, gy, lhs, true, left, rhs)
                 : product(b, lhs, gy, !left, false, rhs);
  return success();
}

LogicalResult convolutionGradient(ConvolutionOp op, GradientBuilder &b,
                                  ValueRange g, Gradients d) {
  Value input = op.getInput(), filter = op.getFilter();
  if (b.wants(0u))
    d[0] = b.makeFor<ConvolutionInputGradientOp>(
        input, filter, g[0], op.getStridesAttr(), op.getPadsAttr(),
        op.getDilationsAttr(), op.getGroupsAttr());
  if (b.wants(1u))
    d[1] = b.makeFor<ConvolutionFilterGradientOp>(
        filter, input, g[0], op.getStridesAttr(), op.getPadsAttr(),
        op.getDilationsAttr(), op.getGroupsAttr());
  return success();
}

/// dS = P · (g vᵀ - rowsum(g · y)), and P · h more where the logsumexp has a
/// cotangent h: values get a column of zeros, results one of -1, and g gets h.
LogicalResult attentionGradient(AttentionOp op, GradientBuilder &b,
                                ValueRange g, Gradients d) {
  Value mask = op.getMask();
  bool floatMask = mask && isFloat(mask);
  SmallVector<Value> values{op.getQuery(), op.getKey(), op.getValue(),
                            floatMask ? mask : Value()};
  if (llvm::none_of(values, [&](Value v) { return v && b.wants(v); }))
    return success();
  Value value = op.getValue(), output = op.getResult(), cotangent = g[0];
  int64_t last = typeOf(value).getRank() - 1;
  if (g[1]) {
    SmallVector<int64_t> column(typeOf(output).getShape());
    column[last] = 1;
    Value more =
        b.reshape(b.convert(g[1], typeOf(output).getElementType()), column);
    cotangent =
        b.concat(last, cotangent ? cotangent : b.zerosFor(output), more);
    value = b.pad(value, last, 0, 1, 0);
    output = b.pad(output, last, 0, 1, -1);
  }
  SmallVector<Type> types;
  for (Value of : values)
    types.push_back(of ? b.plain(of) : b.typed({}, op.getQuery()));
  types[2] = b.plain(value);
  Operation *made = b.finishAll(
      AttentionGradientOp::create(
          b.builder(), b.loc(), types, op.getQuery(), op.getKey(), value, mask,
          op.getQueryStart(), output, op.getLogsumexp(), cotangent,
          op.getScaleAttr(), op.getCausalAttr(), op.getCausalOffsetAttr(),
          op.getSoftcapAttr(), op.getMaskedRowZeroAttr(),
          op.getMaskedRowUniformAttr()),
      values);
  for (unsigned i = 0; i < values.size(); ++i)
    if (values[i] && b.wants(values[i]))
      d[i] = made->getResult(i);
  if (d[2])
    d[2] = b.slice(d[2], last, 0, typeOf(op.getValue()).getDimSize(last));
  return success();
}

} // namespace

void mtp::detail::registerContractionGradients(MLIRContext *context) {
  attachGradient<&matmulGradient>(context);
  attachGradient<&convolutionGradient>(context);
  attachGradient<&attentionGradient>(context);
}
