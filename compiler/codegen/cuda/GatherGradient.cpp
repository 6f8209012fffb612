// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GatherGradient.cpp - the gradient of a table that was looked up ----===//
//
// Deterministic, without atomics: a warp computes one slice of the table. It
// looks at 32 indices at a time; a vote tells which of them name its slice, and
// their cotangents are added in order:
//
//   for 32 indices at a time:
//     votes = lanes whose index is the slice
//     for each vote, ascending: sum[..] += cotangent[..]
//
// Sums lie in registers, as many as a lane has elements of the slice; longer
// slices are cut into pieces that other warps compute.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelCode.h"

#include "dialects/mtp/MtpDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mtp;

static constexpr int64_t kLanes = 32;
/// Sums of a lane.
static constexpr int64_t kSums = 8;

/// Lanes whose condition holds, a bit for each, as i32.
static Value vote(KernelCode &code, Value condition) {
  Type i32 = code.builder.getI32Type();
  Value all = arith::ConstantIntOp::create(code.builder, code.loc, i32, -1);
  return NVVM::VoteSyncOp::create(code.builder, code.loc, i32, all, condition,
                                  NVVM::VoteSyncKind::ballot);
}

/// while (votes) carried = body(number of the lowest vote, carried)
static KernelCode::Values
forVotes(KernelCode &code, Value votes, ValueRange carried,
         llvm::function_ref<KernelCode::Values(Value, ValueRange)> body) {
  OpBuilder &builder = code.builder;
  Type i32 = builder.getI32Type();
  auto c = [&](int64_t value) {
    return Value(arith::ConstantIntOp::create(builder, code.loc, i32, value));
  };
  SmallVector<Value> initial{votes};
  llvm::append_range(initial, carried);
  auto loop = scf::WhileOp::create(
      builder, code.loc, ValueRange(initial).getTypes(), initial,
      [&](OpBuilder &nested, Location loc, ValueRange values) {
        Value zero = arith::ConstantIntOp::create(nested, loc, i32, 0);
        Value any = arith::CmpIOp::create(nested, loc, arith::CmpIPredicate::ne,
                                          values[0], zero);
        scf::ConditionOp::create(nested, loc, any, values);
      },
      [&](OpBuilder &nested, Location loc, ValueRange values) {
        OpBuilder::InsertionGuard guard(builder);
        builder.restoreInsertionPoint(nested.saveInsertionPoint());
        Value lowest = LLVM::CountTrailingZerosOp::create(
            builder, loc, i32, values[0], /*is_zero_poison=*/false);
        Value wide =
            arith::ExtUIOp::create(builder, loc, builder.getI64Type(), lowest);
        SmallVector<Value> next = body(wide, values.drop_front());
        Value less = arith::SubIOp::create(builder, loc, values[0], c(1));
        next.insert(next.begin(),
                    arith::AndIOp::create(builder, loc, values[0], less));
        scf::YieldOp::create(builder, loc, next);
      });
  return KernelCode::Values(loop.getResults().drop_front());
}

static LogicalResult emitGatherGradient(LibraryKernelContext &context) {
  auto op = cast<GatherGradientOp>(context.op);
  KernelCode code(context.emit);
  ArrayRef<int64_t> indices = shapeOf(op.getIndices()),
                    shape = shapeOf(op->getResult(0));
  int64_t dim = op.getDim(), rows = shape[dim], outer = 1, inner = 1, count = 1;
  for (int64_t size : shape.take_front(dim))
    outer *= size;
  for (int64_t size : shape.drop_front(dim + 1))
    inner *= size;
  for (int64_t size : indices)
    count *= size;
  Type type = elementTypeOf(op->getResult(0)),
       indexType = elementTypeOf(op.getIndices());
  int64_t sums = std::clamp<int64_t>((inner + kLanes - 1) / kLanes, 1, kSums);
  int64_t width = sums * kLanes,
          pieces = std::max<int64_t>(1, (inner + width - 1) / width);
  LaunchShape launch;
  launch.block[0] = kLanes;
  launch.grid[0] = std::max<int64_t>(1, outer * rows * pieces);
  context.emit.beginKernel(context.name, launch);
  if (outer * rows * inner == 0)
    return success();
  Value lane = context.emit.threadId();
  auto at = code.split(context.emit.blockId(), {outer, rows, pieces});
  Value row = at[1], first = code.add(code.mul(at[2], width), lane);
  Scalars s(context.emit, type);
  auto added = code.loop(
      code.number(0), code.number(count), kLanes,
      KernelCode::Values(sums, s.zero()),
      [&](Value start, ValueRange carried) -> KernelCode::Values {
        Value number = code.add(start, lane);
        Value exists = code.inside(number, count);
        Value index =
            code.loadIndex(context.operandBuffer(0), indexType,
                           code.select(exists, number, code.number(0)));
        index = code.select(code.less(index, code.number(0)),
                            code.add(index, rows), index);
        Value mine = code.both(
            exists, code.compare(arith::CmpIPredicate::eq, index, row));
        return forVotes(code, vote(code, mine), carried,
                        [&](Value which, ValueRange sum) -> KernelCode::Values {
                          Value slice = code.add(code.mul(at[0], count),
                                                 code.add(start, which));
                          Value from = code.mul(slice, inner);
                          KernelCode::Values next;
                          for (int64_t i = 0; i < sums; ++i) {
                            Value column = code.add(first, i * kLanes);
                            Value safe = code.select(code.inside(column, inner),
                                                     column, code.number(0));
                            Value g = code.load(context.operandBuffer(1), type,
                                                code.add(from, safe));
                            next.push_back(s.add(sum[i], g));
                          }
                          return next;
                        });
      });
  Value to = code.mul(code.add(code.mul(at[0], rows), row), inner);
  for (int64_t i = 0; i < sums; ++i) {
    Value column = code.add(first, i * kLanes);
    code.when(code.inside(column, inner), [&] {
      code.store(context.resultBuffer(0), type, code.add(to, column), added[i]);
    });
  }
  return success();
}

void mtp::registerGatherGradientKernels(LibraryKernelTable &table) {
  table["mtp.gather_gradient"] = {onePart, emitGatherGradient};
}
