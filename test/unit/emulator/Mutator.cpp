// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/emulator/Mutator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mtp;
using namespace mtp::test;

namespace {

/// True if nothing but the square of a difference is used.
bool isSquared(Operation *op) {
  return isa<arith::SubFOp>(op) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return isa<arith::MulFOp>(user) &&
                  user->getOperand(0) == user->getOperand(1);
         });
}

bool isSymmetric(Operation *op) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return llvm::is_contained({F::OEQ, F::UEQ, F::ONE, F::UNE, F::ORD, F::UNO},
                              compare.getPredicate());
  auto compare = dyn_cast<arith::CmpIOp>(op);
  return compare && llvm::is_contained({I::eq, I::ne}, compare.getPredicate());
}

/// True if the order of the first two operands means something.
bool isOrdered(Operation *op) {
  return isa<arith::SubFOp, arith::SubIOp, arith::DivFOp, arith::DivSIOp,
             arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::CmpFOp,
             arith::CmpIOp>(op) &&
         op->getOperand(0) != op->getOperand(1) && !isSquared(op) &&
         !isSymmetric(op);
}

} // namespace

bool Mutator::isWanted(Operation *op, const char *change) {
  names.push_back(std::string(change) + " " +
                  op->getName().getStringRef().str());
  if (static_cast<int64_t>(names.size()) - 1 != wanted)
    return false;
  llvm::raw_string_ostream stream(wantedText);
  op->print(stream, OpPrintingFlags().skipRegions());
  return true;
}

void Mutator::addOne(Operation *op, OpOperand &operand) {
  OpBuilder builder(op);
  Value one = arith::ConstantIntOp::create(builder, op->getLoc(),
                                           operand.get().getType(), 1);
  operand.set(arith::AddIOp::create(builder, op->getLoc(), operand.get(), one));
}

/// Half the mask of an exchange: with a mask that is no mask of the others, 17
/// for 16, every lane would still get every value.
void Mutator::moveLane(gpu::ShuffleOp op) {
  if (op.getMode() != gpu::ShuffleMode::XOR)
    return addOne(op, op.getOffsetMutable());
  OpBuilder builder(op);
  Value offset = op.getOffset();
  Value one =
      arith::ConstantIntOp::create(builder, op.getLoc(), offset.getType(), 1);
  op.getOffsetMutable().set(
      arith::ShRUIOp::create(builder, op.getLoc(), offset, one));
}

void Mutator::swap(Operation *op, unsigned first, unsigned second) {
  Value a = op->getOperand(first), b = op->getOperand(second);
  if (a == b || a.getType() != b.getType() || !isWanted(op, "swapped"))
    return;
  op->setOperand(first, b);
  op->setOperand(second, a);
}

void Mutator::visitProduct(Operation *op) {
  auto product = cast<NVVM::MmaOp>(op);
  unsigned a = static_cast<unsigned>(product.getOperandA().size()),
           b = static_cast<unsigned>(product.getOperandB().size());
  swap(op, 0, 1);
  swap(op, 0, a);
  if (b > 1)
    swap(op, a, a + 1);
  swap(op, a + b, a + b + 2);
}

void Mutator::visit(Operation *op) {
  if (isa<gpu::BarrierOp, NVVM::CpAsyncWaitGroupOp>(op)) {
    if (isWanted(op, "without"))
      op->erase();
  } else if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) {
    if (isWanted(op, "another lane of"))
      moveLane(shuffle);
  } else if (auto gep = dyn_cast<LLVM::GEPOp>(op)) {
    if (!gep.getDynamicIndices().empty() && isWanted(op, "one more in"))
      addOne(op, *gep.getDynamicIndicesMutable().begin());
  } else if (isa<NVVM::MmaOp>(op)) {
    visitProduct(op);
  } else if (isOrdered(op)) {
    swap(op, 0, 1);
  } else if (isa<arith::SelectOp>(op)) {
    swap(op, 1, 2);
  }
}

void Mutator::run(gpu::GPUModuleOp module) {
  SmallVector<Operation *> all;
  module.walk([&](Operation *op) { all.push_back(op); });
  for (Operation *op : all)
    visit(op);
}
