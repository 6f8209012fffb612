// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- spmd-verify.cpp - the gate before anything runs --------------------===//

#include "dialects/spmd/SpmdDialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mtp;

namespace mtp {
#define GEN_PASS_DEF_SPMDVERIFY
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {
/// Checks one function. Ops have checked themselves before: sizes of
/// collectives, blocks of parameters, operands of fused regions.
class FunctionVerifier {
public:
  FunctionVerifier(func::FuncOp func, MeshShape mesh)
      : func(func), mesh(std::move(mesh)) {}

  LogicalResult run() {
    if (!func.getBody().hasOneBlock())
      return func.emitOpError() << "has control flow: ranks could take "
                                   "different ways to a collective";
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (failed(verifyBorder(func.getArgAttrDict(i),
                              func.getArgument(i).getType(), "argument", i)))
        return failure();
    for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
      if (failed(verifyBorder(func.getResultAttrDict(i), type, "result", i)))
        return failure();
    return failure(func.getBody()
                       .walk([&](Operation *op) {
                         return failed(verifyOp(op)) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
                       })
                       .wasInterrupted());
  }

private:
  /// Arguments and results: the type is the block that the layout gives.
  LogicalResult verifyBorder(DictionaryAttr attrs, Type type, StringRef what,
                             unsigned index) {
    auto layoutAttr =
        attrs ? attrs.getAs<LayoutAttr>(spmd::names::layout) : LayoutAttr();
    auto global =
        attrs ? attrs.getAs<TypeAttr>(spmd::names::globalType) : TypeAttr();
    if (!layoutAttr || !global || !isa<RankedTensorType>(global.getValue()))
      return func.emitOpError()
             << what << " " << index << " has no layout and global type";
    auto whole = cast<RankedTensorType>(global.getValue());
    auto layout = toLayout(func, withLayout(whole, layoutAttr), mesh);
    if (failed(layout))
      return failure();
    if (type !=
        RankedTensorType::get(layout->localShape(whole.getShape(), mesh),
                              whole.getElementType()))
      return func.emitOpError() << what << " " << index << " of type " << type
                                << " is not the block that " << layoutAttr
                                << " gives of " << whole;
    return success();
  }

  LogicalResult verifyOp(Operation *op) {
    for (Type type :
         llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
      if (auto tensor = dyn_cast<RankedTensorType>(type);
          !tensor || tensor.getEncoding() || !tensor.hasStaticShape())
        return op->emitOpError() << "has type " << type
                                 << ", expected a plain tensor of static shape";
    if (isa<ConversionOpInterface, mtp::ParameterOp>(op))
      return op->emitOpError()
             << "is left from the whole graph; run mtp-partition";
    if (isa<spmd::CollectiveOpInterface>(op) && op->getParentOp() != func)
      return op->emitOpError()
             << "a collective stands in a region, which ranks could skip";
    bool inMain = op->getParentOp() == func;
    bool mayBe = isa<ShardingOpInterface, spmd::YieldOp>(op) ||
                 isa_and_nonnull<spmd::SpmdDialect>(op->getDialect()) ||
                 (inMain && isa<func::ReturnOp>(op));
    if (!mayBe)
      return op->emitOpError() << "is not part of a rank's program";
    return success();
  }

  func::FuncOp func;
  MeshShape mesh;
};

struct SpmdVerify : mtp::impl::SpmdVerifyBase<SpmdVerify> {
  void runOnOperation() override {
    MeshOp mesh = spmd::findMesh(getOperation());
    if (!mesh)
      return signalPassFailure();
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isDeclaration() &&
          failed(FunctionVerifier(func, mesh.getShape()).run()))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
