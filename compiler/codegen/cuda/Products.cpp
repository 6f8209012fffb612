// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Products.cpp - matrix products of integers -------------------------===//
//
// One thread computes one element. Products of floating point numbers are left
// to the library.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelCode.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

static SmallVector<KernelPart> integerParts(Operation *op) {
  if (isa<FloatType>(elementTypeOf(op->getResult(0))))
    return {};
  return onePart(op);
}

static LogicalResult emitProduct(LibraryKernelContext &context) {
  auto op = cast<MatMulOp>(context.op);
  KernelCode code(context.emit);
  Value a = op.getLhs(), b = op.getRhs(), y = op.getResult();
  ArrayRef<int64_t> shape = shapeOf(y);
  size_t rank = shape.size();
  if (shapeOf(a).size() < 2 || shapeOf(b).size() < 2)
    return op.emitOpError() << "has no kernel for vectors on cuda";
  int64_t depth =
      shapeOf(a)[shapeOf(a).size() - (op.getTransposeLhs() ? 2 : 1)];
  code.forEach(
      context.name, cast<RankedTensorType>(y.getType()).getNumElements(),
      [&](Value item) {
        auto at = code.split(item, shape);
        // Strides of a matrix: along its batch, its rows or columns, and k.
        auto place = [&](Value operand, bool transposed, bool isLeft,
                         int64_t &step) {
          ArrayRef<int64_t> own = shapeOf(operand);
          auto strides = rowMajorStrides(own);
          unsigned last = own.size() - 1;
          unsigned rowDim = transposed ? last : last - 1;
          unsigned columnDim = transposed ? last - 1 : last;
          step = strides[isLeft ? columnDim : rowDim];
          Value base = code.mul(at[isLeft ? rank - 2 : rank - 1],
                                strides[isLeft ? rowDim : columnDim]);
          for (unsigned dim = 0; dim + 2 < own.size(); ++dim)
            if (own[dim] != 1)
              base = code.add(
                  base, code.mul(at[rank - own.size() + dim], strides[dim]));
          return base;
        };
        int64_t stepA, stepB;
        Value baseA = place(a, op.getTransposeLhs(), true, stepA);
        Value baseB = place(b, op.getTransposeRhs(), false, stepB);
        Scalars s(context.emit, elementTypeOf(y));
        auto sum = code.loop(
            code.number(0), code.number(depth), 1, {s.zero()},
            [&](Value k, ValueRange carried) -> KernelCode::Values {
              auto element = [&](unsigned number, Value base, int64_t step) {
                Type type = elementTypeOf(op->getOperand(number));
                Value x = code.load(context.operandBuffer(number), type,
                                    code.add(base, code.mul(k, step)));
                return Scalars(context.emit, type).convert(x, elementTypeOf(y));
              };
              Value product =
                  s.mul(element(0, baseA, stepA), element(1, baseB, stepB));
              return {s.add(carried[0], product)};
            });
        code.store(context.resultBuffer(0), elementTypeOf(y), item, sum[0]);
      });
  return success();
}

void mtp::registerProductKernels(LibraryKernelTable &table) {
  table["mtp.matmul"] = {integerParts, emitProduct};
}
