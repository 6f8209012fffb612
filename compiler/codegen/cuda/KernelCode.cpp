// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/cuda/KernelCode.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mtp;

/// Threads of a block whose items have nothing in common.
static constexpr int64_t kItemThreads = 128;

Value KernelCode::add(Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}
Value KernelCode::add(Value a, int64_t b) {
  return b == 0 ? a : add(a, number(b));
}
Value KernelCode::sub(Value a, Value b) {
  return arith::SubIOp::create(builder, loc, a, b);
}
Value KernelCode::mul(Value a, int64_t b) {
  return b == 1 ? a : Value(arith::MulIOp::create(builder, loc, a, number(b)));
}
Value KernelCode::div(Value a, int64_t b) {
  return b == 1 ? a : Value(arith::DivUIOp::create(builder, loc, a, number(b)));
}
Value KernelCode::rem(Value a, int64_t b) {
  return b == 1 ? number(0)
                : Value(arith::RemUIOp::create(builder, loc, a, number(b)));
}
Value KernelCode::min(Value a, Value b) {
  return arith::MinSIOp::create(builder, loc, a, b);
}
Value KernelCode::max(Value a, Value b) {
  return arith::MaxSIOp::create(builder, loc, a, b);
}
Value KernelCode::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, predicate, a, b);
}
Value KernelCode::both(Value a, Value b) {
  return arith::AndIOp::create(builder, loc, a, b);
}
Value KernelCode::either(Value a, Value b) {
  return arith::OrIOp::create(builder, loc, a, b);
}
Value KernelCode::negate(Value a) {
  Value one = arith::ConstantIntOp::create(builder, loc, a.getType(), 1);
  return arith::XOrIOp::create(builder, loc, a, one);
}
Value KernelCode::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder, loc, condition, a, b);
}

KernelCode::Values KernelCode::split(Value linear, ArrayRef<int64_t> shape) {
  Values positions(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    positions[dim] =
        dim == 0 ? linear : rem(linear, std::max<int64_t>(shape[dim], 1));
    if (dim > 0)
      linear = div(linear, std::max<int64_t>(shape[dim], 1));
  }
  return positions;
}

Value KernelCode::join(ArrayRef<Value> positions, ArrayRef<int64_t> strides) {
  Value sum;
  for (auto [position, stride] : llvm::zip_equal(positions, strides)) {
    if (stride == 0)
      continue;
    Value term = mul(position, stride);
    sum = sum ? add(sum, term) : term;
  }
  return sum ? sum : number(0);
}

KernelCode::Values
KernelCode::loop(Value from, Value to, int64_t step, ValueRange carried,
                 llvm::function_ref<Values(Value, ValueRange)> body) {
  auto made = scf::ForOp::create(builder, loc, from, to, number(step), carried);
  OpBuilder::InsertionGuard guard(builder);
  if (carried.empty())
    builder.setInsertionPoint(made.getBody()->getTerminator());
  else
    builder.setInsertionPointToEnd(made.getBody());
  Values next = body(made.getInductionVar(), made.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(builder, loc, next);
  return Values(made.getResults());
}

void KernelCode::when(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(builder, loc, condition);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenYield());
  body();
}

KernelCode::Values KernelCode::choose(Value condition, TypeRange types,
                                      llvm::function_ref<Values()> whenTrue,
                                      llvm::function_ref<Values()> whenFalse) {
  auto branch = scf::IfOp::create(builder, loc, types, condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  auto fill = [&](mlir::Block *block, llvm::function_ref<Values()> code) {
    builder.setInsertionPointToEnd(block);
    Values values = code();
    scf::YieldOp::create(builder, loc, values);
  };
  fill(branch.thenBlock(), whenTrue);
  fill(branch.elseBlock(), whenFalse);
  return Values(branch.getResults());
}

void KernelCode::forEach(StringRef name, int64_t count,
                         llvm::function_ref<void(Value)> body) {
  LaunchShape shape;
  shape.block[0] = kItemThreads;
  shape.grid[0] =
      std::max<int64_t>(1, (count + kItemThreads - 1) / kItemThreads);
  emit.beginKernel(name, shape);
  Value item = add(mul(emit.blockId(), kItemThreads), emit.threadId());
  when(inside(item, count), [&] { body(item); });
}

Value KernelCode::loadIndex(Value base, Type element, Value at) {
  return Scalars(emit, element)
      .convert(load(base, element, at), builder.getI64Type());
}
