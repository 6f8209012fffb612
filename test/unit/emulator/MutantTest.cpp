// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- MutantTest.cpp - kernels that are wrong in one place are caught ----===//
//
// Device code is changed in one place: a barrier is dropped, a shuffle reads
// another lane, an address is off by one element, two operands change places. A
// mutant is caught if the emulator reports an error or a result differs. A
// sample is tested; MTP_MUTANTS=all tests every one and prints those that live.
//
//===----------------------------------------------------------------------===//
#include "test/unit/codegen/KernelRunner.h"
#include "test/unit/emulator/EmulatedRunner.h"

#include "dialects/mtp/MtpDialect.h"
#include "dialects/spmd/SpmdDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// Changes the `wanted`-th place of the code, or only counts: -1.
class Mutator {
public:
  explicit Mutator(int64_t wanted) : wanted(wanted) {}

  void run(gpu::GPUModuleOp module) {
    SmallVector<Operation *> all;
    module.walk([&](Operation *op) { all.push_back(op); });
    for (Operation *op : all)
      visit(op);
  }
  std::vector<std::string> names; ///< of all places

private:
  bool isWanted(Operation *op, const char *change) {
    names.push_back(std::string(change) + " " +
                    op->getName().getStringRef().str());
    return static_cast<int64_t>(names.size()) - 1 == wanted;
  }
  void addOne(Operation *op, OpOperand &operand) {
    OpBuilder builder(op);
    Value one = arith::ConstantIntOp::create(builder, op->getLoc(),
                                             operand.get().getType(), 1);
    operand.set(
        arith::AddIOp::create(builder, op->getLoc(), operand.get(), one));
  }
  /// Half the mask of an exchange: with a mask that is no mask of the others,
  /// 17 for 16, every lane would still get every value.
  void moveLane(gpu::ShuffleOp op) {
    if (op.getMode() != gpu::ShuffleMode::XOR)
      return addOne(op, op.getOffsetMutable());
    OpBuilder builder(op);
    Value offset = op.getOffset();
    Value one =
        arith::ConstantIntOp::create(builder, op.getLoc(), offset.getType(), 1);
    op.getOffsetMutable().set(
        arith::ShRUIOp::create(builder, op.getLoc(), offset, one));
  }
  void visit(Operation *op) {
    if (isa<gpu::BarrierOp>(op)) {
      if (isWanted(op, "without"))
        op->erase();
    } else if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) {
      if (isWanted(op, "another lane of"))
        moveLane(shuffle);
    } else if (auto gep = dyn_cast<LLVM::GEPOp>(op)) {
      if (!gep.getDynamicIndices().empty() && isWanted(op, "one more in"))
        addOne(op, *gep.getDynamicIndicesMutable().begin());
    } else if (isOrdered(op)) {
      if (isWanted(op, "swapped"))
        op->insertOperands(0, op->getOperand(1)), op->eraseOperand(2);
    } else if (isa<arith::SelectOp>(op)) {
      if (op->getOperand(1) != op->getOperand(2) && isWanted(op, "swapped"))
        op->insertOperands(1, op->getOperand(2)), op->eraseOperand(3);
    }
  }
  int64_t wanted;
};

/// A barrier without which no race is found orders nothing: each thread reads
/// what it wrote itself. Such mutants are no other programs.
struct Tally {
  int64_t mutants = 0, caught = 0, barriers = 0, redundant = 0;
  std::vector<std::string> survivors;
};

/// The mutants `first`, `first` + step, ... of a func's kernels, and all
/// without a barrier.
void testMutants(func::FuncOp func, Road road, int64_t first, int64_t step,
                 Tally &tally) {
  OwningOpRef<ModuleOp> alone = ModuleOp::create(func.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(alone->getBody());
  auto copy = cast<func::FuncOp>(builder.clone(*func));
  auto arguments = randomArguments(copy, 17);
  auto attempt = [&](Mutator &mutator) {
    EmulatedRunner runner(*alone, road, "sm_80", [&](gpu::GPUModuleOp module) {
      mutator.run(module);
    });
    return runner.run(copy, arguments);
  };
  Mutator none(-1);
  std::vector<Tensor> expected = attempt(none);
  // A mutant may divide by zero or never end: it gets a process of its own.
  auto isCaught = [&](Mutator &mutator) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      bool caught = false;
      try {
        std::vector<Tensor> actual = attempt(mutator);
        for (size_t i = 0; i < expected.size(); ++i)
          caught |= !difference(actual[i], expected[i], 1e-6).empty();
      } catch (const std::exception &) {
        caught = true;
      }
      _exit(caught);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  };
  for (int64_t place = 0; place < int64_t(none.names.size()); ++place) {
    bool isBarrier = StringRef(none.names[place]).starts_with("without");
    if (place % step != first && !isBarrier)
      continue;
    Mutator mutator(place);
    bool caught = isCaught(mutator);
    tally.barriers += isBarrier;
    if (isBarrier && !caught) {
      ++tally.redundant;
      continue;
    }
    ++tally.mutants;
    tally.caught += caught;
    if (!caught)
      tally.survivors.push_back(copy.getName().str() + ": " +
                                none.names[place] + ", place " +
                                std::to_string(place));
  }
}

} // namespace

TEST(Mutants, AreCaught) {
  const char *variable = getenv("MTP_MUTANTS");
  bool all = variable && std::string(variable) == "all";
  Tally tally;
  const std::pair<std::string, Road> files[] = {
      {MTP_CODEGEN_TEST_DIR "/rows.mlir", Road::Fused},
      {MTP_CODEGEN_TEST_DIR "/moves.mlir", Road::Fused},
      {MTP_CODEGEN_TEST_DIR "/elementwise.mlir", Road::Fused},
      {MTP_EMULATOR_TEST_DIR "/library.mlir", Road::Single}};
  for (auto &[file, road] : files) {
    MLIRContext context(MLIRContext::Threading::DISABLED); // survives fork
    context.loadDialect<MtpDialect, spmd::SpmdDialect, func::FuncDialect>();
    auto module = parseSourceFile<ModuleOp>(file, &context);
    ASSERT_TRUE(module);
    int64_t number = 0;
    for (auto func : module->getOps<func::FuncOp>()) {
      // Of every fourth func, some places.
      int64_t step = road == Road::Fused ? 5 : 41;
      if (all)
        testMutants(func, road, 0, 1, tally);
      else if (number % 4 == 0)
        testMutants(func, road, number % step, step, tally);
      ++number;
    }
  }
  printf("%lld mutants, %lld caught; %lld of %lld barriers are redundant\n",
         static_cast<long long>(tally.mutants),
         static_cast<long long>(tally.caught),
         static_cast<long long>(tally.redundant),
         static_cast<long long>(tally.barriers));
  for (const std::string &survivor : tally.survivors)
    printf("lives: %s\n", survivor.c_str());
  EXPECT_LT(tally.redundant, tally.barriers);
  EXPECT_GE(double(tally.caught), 0.95 * double(tally.mutants));
}
