// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-partition.cpp - whole tensors to the program of one rank -------===//

#include "passes/mtp-partition.h"
#include "passes/Passes.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPPARTITION
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
struct MtpPartition : mtp::impl::MtpPartitionBase<MtpPartition> {
  void runOnOperation() override {
    auto mesh = mtp::spmd::findMesh(getOperation());
    if (!mesh)
      return signalPassFailure();
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isDeclaration() &&
          failed(
              mtp::partition::FunctionPartitioner(func, mesh.getShape()).run()))
        return signalPassFailure();
  }
};
} // namespace
