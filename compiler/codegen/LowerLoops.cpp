// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/LowerLoops.h"
#include "compiler/codegen/ObjectEmitter.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mtp;

namespace {
struct SplitFma : OpRewritePattern<math::FmaOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::FmaOp op,
                                PatternRewriter &rewriter) const override {
    Value product =
        arith::MulFOp::create(rewriter, op.getLoc(), op.getA(), op.getB());
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, product, op.getC());
    return success();
  }
};
} // namespace

/// Copies the bodies of the kernels and the constants that they use.
static OwningOpRef<ModuleOp> copyKernels(ModuleOp loops,
                                         ArrayRef<size_t> kernels) {
  OwningOpRef<ModuleOp> result = ModuleOp::create(loops.getLoc());
  SymbolTable symbols(loops);
  OpBuilder builder = OpBuilder::atBlockEnd(result->getBody());
  for (size_t kernel : kernels) {
    Operation *body = symbols.lookup(kernelBodyName(kernel));
    body->walk([&](LLVM::AddressOfOp address) {
      builder.clone(*symbols.lookup(address.getGlobalName()));
    });
    builder.clone(*body);
  }
  return result;
}

FailureOr<OwningOpRef<ModuleOp>>
mtp::lowerLoops(ModuleOp loops, ArrayRef<size_t> kernels, bool hasFma) {
  OwningOpRef<ModuleOp> module = copyKernels(loops, kernels);
  MLIRContext *context = loops.getContext();
  RewritePatternSet patterns(context);
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return name == "math.exp" || name == "math.tanh" || name == "math.erf" ||
           name == "math.log";
  });
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  if (!hasFma)
    patterns.add<SplitFma>(context);
  if (failed(applyPatternsGreedily(*module, std::move(patterns))))
    return failure();
  PassManager passes(context);
  passes.addPass(createCSEPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(*module)))
    return failure();
  return module;
}
