// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Lines.cpp - cumulative sums, largest elements ----------------------===//
//
// One thread goes down one line: the elements that differ in the op's dimension
// only.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelCode.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {

/// The lines of a tensor along a dimension.
struct Lines {
  int64_t outer = 1, extent, inner = 1;
  Lines(ArrayRef<int64_t> shape, int64_t dim) : extent(shape[dim]) {
    for (int64_t size : shape.take_front(dim))
      outer *= size;
    for (int64_t size : shape.drop_front(dim + 1))
      inner *= size;
  }
  int64_t count() const { return outer * inner; }
  /// Where line `line` begins in a tensor whose dimension has `size` elements.
  Value start(KernelCode &code, Value line, int64_t size) const {
    return code.add(code.mul(code.div(line, inner), size * inner),
                    code.rem(line, inner));
  }
};

LogicalResult emitCumsum(LibraryKernelContext &context) {
  auto op = cast<CumsumOp>(context.op);
  KernelCode code(context.emit);
  Type type = elementTypeOf(op->getResult(0));
  Lines lines(shapeOf(op->getOperand(0)), op.getDim());
  code.forEach(context.name, lines.count(), [&](Value line) {
    Scalars s(context.emit, type);
    Value start = lines.start(code, line, lines.extent);
    code.loop(code.number(0), code.number(lines.extent), 1, {s.zero()},
              [&](Value i, ValueRange carried) -> KernelCode::Values {
                if (op.getReverse())
                  i = code.sub(code.number(lines.extent - 1), i);
                Value at = code.add(start, code.mul(i, lines.inner));
                Value x = code.load(context.operandBuffer(0), type, at);
                Value sum = s.add(carried[0], x);
                code.store(context.resultBuffer(0), type, at,
                           op.getExclusive() ? carried[0] : sum);
                return {sum};
              });
  });
  return success();
}

/// Whether `a` comes before `b`, values alone. NaN is the largest value.
Value comesBefore(KernelCode &code, Scalars &s, Value a, Value b,
                  bool largest) {
  Value first = s.compare(largest ? Scalars::Gt : Scalars::Lt, a, b);
  Value one = largest ? a : b, other = largest ? b : a;
  Value byNan = code.both(s.isNan(one), code.negate(s.isNan(other)));
  return s.isFloat() ? code.either(first, byNan) : first;
}

template <typename Op, bool largest>
LogicalResult emitArg(LibraryKernelContext &context) {
  auto op = cast<Op>(context.op);
  KernelCode code(context.emit);
  Value x = op->getOperand(0);
  Type type = elementTypeOf(x);
  Lines lines(shapeOf(x), op.getDim());
  code.forEach(context.name, lines.count(), [&](Value line) {
    Scalars s(context.emit, type);
    Value start = lines.start(code, line, lines.extent);
    auto element = [&](Value i) {
      return code.load(context.operandBuffer(0), type,
                       code.add(start, code.mul(i, lines.inner)));
    };
    // NaN wins, whichever is looked for.
    auto wins = [&](Value a, Value b) {
      Value first = s.compare(largest ? Scalars::Gt : Scalars::Lt, a, b);
      Value byNan = code.both(s.isNan(a), code.negate(s.isNan(b)));
      return s.isFloat() ? code.either(first, byNan) : first;
    };
    Value zero = code.number(0);
    auto best = code.loop(
        code.number(1), code.number(lines.extent), 1, {zero, element(zero)},
        [&](Value i, ValueRange carried) -> KernelCode::Values {
          Value candidate = element(i);
          Value better = wins(candidate, carried[1]);
          if (op.getLast())
            better =
                code.either(better, code.negate(wins(carried[1], candidate)));
          return {code.select(better, i, carried[0]),
                  code.select(better, candidate, carried[1])};
        });
    Type to = elementTypeOf(op->getResult(0));
    code.store(
        context.resultBuffer(0), to, line,
        Scalars(context.emit, code.builder.getI64Type()).convert(best[0], to));
  });
  return success();
}

/// The next in the order of (value, position) after the one before, k times.
LogicalResult emitTopK(LibraryKernelContext &context) {
  auto op = cast<TopKOp>(context.op);
  KernelCode code(context.emit);
  Value x = op->getOperand(0);
  Type type = elementTypeOf(x);
  bool largest = !op.getSmallest();
  int64_t k = shapeOf(op->getResult(0))[op.getDim()];
  Lines lines(shapeOf(x), op.getDim());
  code.forEach(context.name, lines.count(), [&](Value line) {
    Scalars s(context.emit, type);
    Value start = lines.start(code, line, lines.extent);
    Value to = lines.start(code, line, k);
    auto element = [&](Value i) {
      return code.load(context.operandBuffer(0), type,
                       code.add(start, code.mul(i, lines.inner)));
    };
    auto precedes = [&](Value a, Value i, Value b, Value j) {
      Value equal =
          code.negate(code.either(comesBefore(code, s, a, b, largest),
                                  comesBefore(code, s, b, a, largest)));
      return code.either(comesBefore(code, s, a, b, largest),
                         code.both(equal, code.less(i, j)));
    };
    Value none = code.number(-1);
    code.loop(
        code.number(0), code.number(k), 1, {none, s.zero()},
        [&](Value rank, ValueRange last) -> KernelCode::Values {
          auto best = code.loop(
              code.number(0), code.number(lines.extent), 1, {none, s.zero()},
              [&](Value i, ValueRange carried) -> KernelCode::Values {
                Value candidate = element(i);
                Value isFirst = code.less(last[0], code.number(0));
                Value open = code.either(
                    isFirst, precedes(last[1], last[0], candidate, i));
                Value isOnly = code.less(carried[0], code.number(0));
                Value better = code.either(
                    isOnly, precedes(candidate, i, carried[1], carried[0]));
                better = code.both(open, better);
                return {code.select(better, i, carried[0]),
                        code.select(better, candidate, carried[1])};
              });
          Value at = code.add(to, code.mul(rank, lines.inner));
          code.store(context.resultBuffer(0), type, at, best[1]);
          Type indexType = elementTypeOf(op->getResult(1));
          code.store(context.resultBuffer(1), indexType, at,
                     Scalars(context.emit, code.builder.getI64Type())
                         .convert(best[0], indexType));
          return best;
        });
  });
  return success();
}

} // namespace

void mtp::registerLineKernels(LibraryKernelTable &table) {
  table["mtp.cumsum"] = {onePart, emitCumsum};
  table["mtp.argmax"] = {onePart, emitArg<ArgMaxOp, true>};
  table["mtp.argmin"] = {onePart, emitArg<ArgMinOp, false>};
  table["mtp.topk"] = {onePart, emitTopK};
}
