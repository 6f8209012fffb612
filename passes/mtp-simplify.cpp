// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-simplify.cpp - the graph as planning expects it -----------------===//

#include "passes/Passes.h"

#include "dialects/mtp/MtpDialect.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPSIMPLIFY
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
class MtpSimplify : public mtp::impl::MtpSimplifyBase<MtpSimplify> {
  void runOnOperation() override {
    if (failed(applyPatternsGreedily(getOperation(), RewritePatternSet(&getContext()))))
      signalPassFailure();
  }
};
} // namespace
