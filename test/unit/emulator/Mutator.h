// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Mutator.h - device code that is wrong in one place -----------------===//
//
//   without          a barrier, or a wait for asynchronous copies, is dropped
//   another lane of  a shuffle
//   one more in      an address is off by one element
//   swapped          two operands whose order means something; for a matrix
//                    product two registers of A, of B, of C, and A with B
//
//===----------------------------------------------------------------------===//
#ifndef MTP_TEST_UNIT_EMULATOR_MUTATOR_H
#define MTP_TEST_UNIT_EMULATOR_MUTATOR_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>
#include <vector>

namespace mtp::test {

/// Changes the `wanted`-th place of the code, or only counts: -1.
class Mutator {
public:
  explicit Mutator(int64_t wanted) : wanted(wanted) {}
  void run(mlir::gpu::GPUModuleOp module);
  std::vector<std::string> names; ///< of all places: "without gpu.barrier"
  std::string wantedText;         ///< of the operation, before its change

private:
  bool isWanted(mlir::Operation *op, const char *change);
  void addOne(mlir::Operation *op, mlir::OpOperand &operand);
  void moveLane(mlir::gpu::ShuffleOp op);
  void swap(mlir::Operation *op, unsigned first, unsigned second);
  void visitProduct(mlir::Operation *op);
  void visit(mlir::Operation *op);
  int64_t wanted;
};

} // namespace mtp::test

#endif // MTP_TEST_UNIT_EMULATOR_MUTATOR_H
