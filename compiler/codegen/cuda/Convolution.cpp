// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Convolution.cpp - convolutions and their gradients -----------------===//
//
// One thread computes one element of the result, as a sum over the positions
// that the window, or the other tensor, has. Sums run in row-major order.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelCode.h"

#include "dialects/mtp/MtpDialect.h"

using namespace mlir;
using namespace mtp;

namespace {

/// Shapes: input (n, c, x..), filter (o, c / groups, w..), output (n, o, y..).
struct Problem {
  SmallVector<int64_t> input, filter, output;
  ArrayRef<int64_t> strides, dilations, pads;
  int64_t groups;

  size_t spatial() const { return input.size() - 2; }
  int64_t groupInputs() const { return filter[1]; }
  int64_t groupOutputs() const { return output[1] / groups; }
  /// Positions of a window or of an output plane.
  ArrayRef<int64_t> window() const {
    return ArrayRef<int64_t>(filter).drop_front(2);
  }
  ArrayRef<int64_t> plane() const {
    return ArrayRef<int64_t>(output).drop_front(2);
  }
};

template <typename Op> Problem problemOf(Op op) {
  Problem p;
  p.strides = op.getStrides();
  p.dilations = op.getDilations();
  p.pads = op.getPads();
  p.groups = op.getGroups();
  return p;
}

int64_t productOf(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

/// The sum over `count` positions of term(position), each a product of elements
/// of the operands where a condition holds.
Value sumOver(LibraryKernelContext &context, KernelCode &code, Type type,
              int64_t count,
              llvm::function_ref<Value(Value, Value &, Value &)> term) {
  Scalars s(context.emit, type);
  Type registers = RegionEmitter::registerType(type);
  return code.loop(
      code.number(0), code.number(count), 1, {s.zero()},
      [&](Value position, ValueRange carried) -> KernelCode::Values {
        Value first, second;
        Value exists = term(position, first, second);
        return code.choose(
            exists, {registers},
            [&]() -> KernelCode::Values {
              Value a = code.load(context.operandBuffer(0), type, first);
              Value b = code.load(context.operandBuffer(1), type, second);
              return {s.add(carried[0], s.mul(a, b))};
            },
            [&]() -> KernelCode::Values { return {carried[0]}; });
      })[0];
}

/// y * stride + w * dilation - pad in each dimension, and whether that exists.
Value inputPositions(KernelCode &code, const Problem &p, ArrayRef<Value> y,
                     ArrayRef<Value> w, KernelCode::Values &x) {
  Value exists;
  for (size_t d = 0; d < p.spatial(); ++d) {
    Value at = code.add(
        code.add(code.mul(y[d], p.strides[d]), code.mul(w[d], p.dilations[d])),
        -p.pads[d]);
    Value inside = code.inside(at, p.input[2 + d]);
    exists = exists ? code.both(exists, inside) : inside;
    x.push_back(at);
  }
  return exists;
}

SmallVector<int64_t> joined(int64_t first, ArrayRef<int64_t> rest) {
  SmallVector<int64_t> all{first};
  all.append(rest.begin(), rest.end());
  return all;
}

/// What each thread adds up: the number of positions, and as for sumOver the
/// elements of the operands at one of them.
struct Sum {
  int64_t count;
  std::function<Value(Value, Value &, Value &)> term;
};

SmallVector<int64_t> shapeTo(Value value) {
  return SmallVector<int64_t>(shapeOf(value));
}

/// A thread for each element of the result: sumAt(position) is what it is.
LogicalResult
emitSums(LibraryKernelContext &context,
         llvm::function_ref<Sum(KernelCode &, ArrayRef<Value>)> sumAt) {
  KernelCode code(context.emit);
  Value result = context.op->getResult(0);
  SmallVector<int64_t> shape = shapeTo(result);
  Type type = elementTypeOf(result);
  code.forEach(context.name, productOf(shape), [&](Value item) {
    auto at = code.split(item, shape);
    Sum sum = sumAt(code, at);
    code.store(context.resultBuffer(0), type, item,
               sumOver(context, code, type, sum.count, sum.term));
  });
  return success();
}

LogicalResult emitConvolution(LibraryKernelContext &context) {
  auto op = cast<ConvolutionOp>(context.op);
  Problem p = problemOf(op);
  p.input = shapeTo(op.getInput());
  p.filter = shapeTo(op.getFilter());
  p.output = shapeTo(op.getResult());
  auto inputStrides = rowMajorStrides(p.input),
       filterStrides = rowMajorStrides(p.filter);
  return emitSums(context, [&](KernelCode &code, ArrayRef<Value> at) -> Sum {
    Value group = code.div(at[1], p.groupOutputs());
    return {p.groupInputs() * productOf(p.window()),
            [&, at, group](Value position, Value &x, Value &w) {
              auto inside =
                  code.split(position, joined(p.groupInputs(), p.window()));
              KernelCode::Values places{
                  at[0], code.add(code.mul(group, p.groupInputs()), inside[0])};
              KernelCode::Values spatial;
              Value exists = inputPositions(
                  code, p, at.drop_front(2),
                  ArrayRef<Value>(inside).drop_front(1), spatial);
              places.append(spatial);
              x = code.join(places, inputStrides);
              w = code.add(code.mul(at[1], filterStrides[0]), position);
              return exists;
            }};
  });
}

/// dx[n, c, x] = sum over o of the group and w: f[o, c', w] g[n, o, y] where
/// y * stride = x + pad - w * dilation.
LogicalResult emitInputGradient(LibraryKernelContext &context) {
  auto op = cast<ConvolutionInputGradientOp>(context.op);
  Problem p = problemOf(op);
  p.filter = shapeTo(op->getOperand(0));
  p.output = shapeTo(op->getOperand(1));
  p.input = shapeTo(op->getResult(0));
  auto filterStrides = rowMajorStrides(p.filter),
       outputStrides = rowMajorStrides(p.output);
  return emitSums(context, [&](KernelCode &code, ArrayRef<Value> at) -> Sum {
    Value group = code.div(at[1], p.groupInputs());
    Value channel = code.rem(at[1], p.groupInputs());
    return {
        p.groupOutputs() * productOf(p.window()),
        [&, at, group, channel](Value position, Value &w, Value &g) {
          auto inside =
              code.split(position, joined(p.groupOutputs(), p.window()));
          Value output = code.add(code.mul(group, p.groupOutputs()), inside[0]);
          KernelCode::Values filterAt{output, channel}, outputAt{at[0], output};
          Value exists;
          for (size_t d = 0; d < p.spatial(); ++d) {
            Value scaled = code.sub(code.add(at[2 + d], p.pads[d]),
                                    code.mul(inside[1 + d], p.dilations[d]));
            Value isPositive = code.negate(code.less(scaled, code.number(0)));
            Value safe = code.select(isPositive, scaled, code.number(0));
            Value divides =
                code.compare(arith::CmpIPredicate::eq,
                             code.rem(safe, p.strides[d]), code.number(0));
            Value y = code.div(safe, p.strides[d]);
            Value good = code.both(code.both(isPositive, divides),
                                   code.inside(y, p.output[2 + d]));
            exists = exists ? code.both(exists, good) : good;
            filterAt.push_back(inside[1 + d]);
            outputAt.push_back(y);
          }
          w = code.join(filterAt, filterStrides);
          g = code.join(outputAt, outputStrides);
          return exists;
        }};
  });
}

/// df[o, c', w] = sum over n and y: x[n, c, y * stride + w * dilation - pad]
/// g[n, o, y].
LogicalResult emitFilterGradient(LibraryKernelContext &context) {
  auto op = cast<ConvolutionFilterGradientOp>(context.op);
  Problem p = problemOf(op);
  p.input = shapeTo(op->getOperand(0));
  p.output = shapeTo(op->getOperand(1));
  p.filter = shapeTo(op->getResult(0));
  auto inputStrides = rowMajorStrides(p.input),
       outputStrides = rowMajorStrides(p.output);
  return emitSums(context, [&](KernelCode &code, ArrayRef<Value> at) -> Sum {
    Value group = code.div(at[0], p.groupOutputs());
    Value channel = code.add(code.mul(group, p.groupInputs()), at[1]);
    return {p.output[0] * productOf(p.plane()),
            [&, at, channel](Value position, Value &x, Value &g) {
              auto inside =
                  code.split(position, joined(p.output[0], p.plane()));
              KernelCode::Values inputAt{inside[0], channel},
                  outputAt{inside[0], at[0]}, spatial;
              auto plane = ArrayRef<Value>(inside).drop_front(1);
              Value exists =
                  inputPositions(code, p, plane, at.drop_front(2), spatial);
              inputAt.append(spatial);
              llvm::append_range(outputAt, plane);
              x = code.join(inputAt, inputStrides);
              g = code.join(outputAt, outputStrides);
              return exists;
            }};
  });
}

} // namespace

void mtp::registerConvolutionKernels(LibraryKernelTable &table) {
  table["mtp.convolution"] = {onePart, emitConvolution};
  table["mtp.convolution_input_gradient"] = {onePart, emitInputGradient};
  table["mtp.convolution_filter_gradient"] = {onePart, emitFilterGradient};
}
