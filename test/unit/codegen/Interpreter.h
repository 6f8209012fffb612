// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Interpreter.h - mtp ops, slowly, in double precision ---------------===//
#ifndef MTP_TEST_UNIT_CODEGEN_INTERPRETER_H
#define MTP_TEST_UNIT_CODEGEN_INTERPRETER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>
#include <vector>

namespace mtp::test {

/// Elements of all types as doubles, row-major.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> data;
  int64_t elements() const {
    int64_t product = 1;
    for (int64_t size : shape)
      product *= size;
    return product;
  }
};

/// Runs a func of mtp ops. Throws std::runtime_error on an op it does not know.
std::vector<Tensor> interpret(mlir::func::FuncOp func,
                              const std::vector<Tensor> &arguments);

/// The results of one op.
std::vector<Tensor> interpret(mlir::Operation *op,
                              const std::vector<Tensor> &operands);

} // namespace mtp::test

#endif // MTP_TEST_UNIT_CODEGEN_INTERPRETER_H
