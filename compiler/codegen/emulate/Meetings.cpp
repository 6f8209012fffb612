// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Meetings.cpp - what threads of a kernel do together ----------------===//
//
// Barriers, operations of a warp, and asynchronous copies become calls.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/emulate/KernelLowering.h"
#include "compiler/codegen/emulate/ThreadCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mtp;

void KernelLowering::lowerShuffle(gpu::ShuffleOp op) {
  ThreadCode code(op, function);
  Value value = op.getValue();
  Type type = value.getType();
  int64_t site = addSite(op, "shuffle", {Base::Unknown}, 0,
                         gpu::stringifyShuffleMode(op.getMode()));
  auto results =
      code.warp(site, {code.toBits(value), code.widen(op.getOffset()),
                       code.widen(op.getWidth())});
  op.getShuffleResult().replaceAllUsesWith(code.fromBits(results[0], type));
  if (!op.getValid().use_empty())
    op.getValid().replaceAllUsesWith(code.isSet(results[1]));
  op.erase();
}

void KernelLowering::lowerVote(NVVM::VoteSyncOp op) {
  ThreadCode code(op, function);
  int64_t site = addSite(op, "vote", {Base::Unknown}, 0,
                         NVVM::stringifyVoteSyncKind(op.getKind()));
  auto results = code.warp(site, {code.widen(op.getPred()),
                                  code.widen(op.getMask()), code.number(0)});
  Type type = op.getRes().getType();
  op.getRes().replaceAllUsesWith(code.fromBits(results[0], type));
  op.erase();
}

/// "f16 16", ...; empty if it is not emulated.
static std::string productMode(NVVM::MmaOp op) {
  using NVVM::MMATypes;
  NVVM::MMAShapeAttr shape = op.getShape();
  auto a = op.getMultiplicandAPtxType(), b = op.getMultiplicandBPtxType();
  bool isNarrow =
      a == MMATypes::f16 || a == MMATypes::bf16 || a == MMATypes::tf32;
  auto isF32 = [](Type type) { return type.isF32(); };
  auto sums = cast<LLVM::LLVMStructType>(op.getRes().getType()).getBody();
  if (!a || a != b || !isNarrow || shape.getM() != 16 || shape.getN() != 8 ||
      op.getLayoutA() != NVVM::MMALayout::row ||
      op.getLayoutB() != NVVM::MMALayout::col || !llvm::all_of(sums, isF32) ||
      !llvm::all_of(op.getOperandC().getTypes(), isF32))
    return "";
  return (NVVM::stringifyMMATypes(*a) + " " + Twine(shape.getK())).str();
}

LogicalResult KernelLowering::lowerProduct(NVVM::MmaOp op) {
  std::string mode = productMode(op);
  if (mode.empty())
    return refuse(op);
  ThreadCode code(op, function);
  SmallVector<Value> registers;
  for (Value operand : op->getOperands())
    registers.push_back(code.toBits(operand));
  int64_t site = addSite(op, "mma", {Base::Unknown}, 0, mode);
  auto results = code.warp(site, registers);
  op.getRes().replaceAllUsesWith(code.structOf(results, op.getRes().getType()));
  op.erase();
  return success();
}

LogicalResult KernelLowering::lowerMatrixLoad(NVVM::LdMatrixOp op) {
  NVVM::LdStMatrixShapeAttr shape = op.getShape();
  if (shape.getM() != 8 || shape.getN() != 8 ||
      op.getEltType() != NVVM::LdStMatrixEltType::B16)
    return refuse(op);
  bool transposed = op.getLayout() == NVVM::MMALayout::col;
  Base base = baseOf(op.getPtr());
  // Of a row each lane reads a part.
  narrow(base, transposed ? 2 : 4);
  ThreadCode code(op, function);
  int64_t site =
      addSite(op, "ldmatrix", base, 16,
              (Twine(op.getNum()) + (transposed ? " col" : " row")).str());
  SmallVector<Value> registers{code.addressBits(op.getPtr())};
  for (uint32_t i = 1; i < op.getNum(); ++i)
    registers.push_back(code.number(0));
  auto results = code.warp(site, registers);
  Type type = op.getRes().getType();
  op.getRes().replaceAllUsesWith(isa<LLVM::LLVMStructType>(type)
                                     ? code.structOf(results, type)
                                     : code.fromBits(results[0], type));
  op.erase();
  return success();
}

void KernelLowering::lowerCopy(NVVM::CpAsyncOp op) {
  ThreadCode code(op, function);
  int64_t bytes = op.getSize();
  // It may read less than it writes, in whole words.
  Base from = baseOf(op.getSrc());
  narrow(from, 4);
  int64_t read = addSite(op, "load", from, bytes);
  int64_t site = addSite(op, "copy", baseOf(op.getDst()), bytes);
  Value count =
      op.getCpSize() ? code.widen(op.getCpSize()) : code.number(bytes);
  code.async(site, {code.addressBits(op.getDst()),
                    code.addressBits(op.getSrc()), count, code.number(read)});
  op.erase();
}

LogicalResult KernelLowering::lowerTf32(NVVM::ConvertFloatToTF32Op op) {
  if (op.getRnd() != NVVM::FPRoundingMode::RNA ||
      op.getSat() != NVVM::SaturationMode::NONE || op.getRelu())
    return refuse(op);
  ThreadCode code(op, function);
  op.getRes().replaceAllUsesWith(code.roundToTf32(op.getSrc()));
  op.erase();
  return success();
}

LogicalResult KernelLowering::lowerMeeting(Operation *op) {
  // One without operands.
  auto call = [&](auto make) {
    ThreadCode code(op, function);
    make(code);
    op->erase();
    return success();
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](gpu::BarrierOp) {
        return call([&](ThreadCode &code) {
          code.barrier(addSite(op, "barrier", {Base::Unknown}, 0));
        });
      })
      .Case([&](gpu::ShuffleOp shuffle) {
        return lowerShuffle(shuffle), success();
      })
      .Case([&](NVVM::VoteSyncOp vote) { return lowerVote(vote), success(); })
      .Case([&](NVVM::MmaOp product) { return lowerProduct(product); })
      .Case([&](NVVM::LdMatrixOp load) { return lowerMatrixLoad(load); })
      .Case([&](NVVM::CpAsyncOp copy) { return lowerCopy(copy), success(); })
      .Case([&](NVVM::CpAsyncCommitGroupOp) {
        return call([&](ThreadCode &code) {
          code.async(addSite(op, "commit", {Base::Unknown}, 0), {});
        });
      })
      .Case([&](NVVM::CpAsyncWaitGroupOp wait) {
        return call([&](ThreadCode &code) {
          code.async(addSite(op, "wait", {Base::Unknown}, 0),
                     {code.number(wait.getN())});
        });
      })
      .Case([&](NVVM::ConvertFloatToTF32Op round) { return lowerTf32(round); })
      .Default([&](Operation *) { return refuse(op); });
}
