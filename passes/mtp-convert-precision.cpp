// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-convert-precision.cpp - element types of the computation -------===//

#include "passes/Passes.h"

#include "dialects/mtp/MtpDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace mtp {
#define GEN_PASS_DEF_MTPCONVERTPRECISION
#include "passes/Passes.h.inc"
} // namespace mtp

namespace {

/// Gives every float of a program that has fewer bits the type `wide`.
class Widening {
public:
  explicit Widening(FloatType wide) : wide(wide) {}

  void run(ModuleOp module) {
    module.walk([&](Operation *op) {
      for (Value result : op->getResults())
        result.setType(widened(result.getType()));
      for (Region &region : op->getRegions())
        for (BlockArgument argument : region.getArguments())
          argument.setType(widened(argument.getType()));
      if (auto constant = dyn_cast<mtp::ConstantOp>(op))
        widenValue(constant);
      if (auto func = dyn_cast<func::FuncOp>(op))
        widenSignature(func);
    });
  }

private:
  Type widened(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    auto element =
        tensor ? dyn_cast<FloatType>(tensor.getElementType()) : FloatType();
    if (!element || element.getWidth() >= wide.getWidth())
      return type;
    return RankedTensorType::get(tensor.getShape(), wide, tensor.getEncoding());
  }
  void widenValue(mtp::ConstantOp constant) {
    auto value = dyn_cast<DenseFPElementsAttr>(constant.getValue());
    if (!value || widened(value.getType()) == value.getType())
      return;
    constant.setValueAttr(
        cast<ElementsAttr>(value.mapValues(wide, [&](const APFloat &number) {
          APFloat converted = number;
          bool lost;
          converted.convert(wide.getFloatSemantics(),
                            APFloat::rmNearestTiesToEven, &lost);
          return converted.bitcastToAPInt();
        })));
  }
  void widenSignature(func::FuncOp func) {
    auto typeOf = [&](Type type) { return widened(type); };
    auto inputs = llvm::map_to_vector(func.getArgumentTypes(), typeOf);
    auto results = llvm::map_to_vector(func.getResultTypes(), typeOf);
    func.setFunctionType(FunctionType::get(func.getContext(), inputs, results));
  }

  FloatType wide;
};

/// `value` in the element type `narrow`; a weight is loaded in it, unless
/// training updates it (`masterWeights`).
Value narrowed(OpBuilder &builder, Location loc, Value value, FloatType narrow,
               bool masterWeights) {
  auto type = cast<RankedTensorType>(value.getType());
  auto result =
      RankedTensorType::get(type.getShape(), narrow, type.getEncoding());
  auto parameter = value.getDefiningOp<mtp::ParameterOp>();
  if (parameter && !masterWeights) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(parameter);
    return mtp::ParameterOp::create(builder, parameter.getLoc(), result,
                                    parameter.getSourceAttr(),
                                    parameter.getRecipeAttr());
  }
  return mtp::ConvertOp::create(builder, loc, result, value);
}

/// Rounds the operands of f32 products, each value once.
void narrowProducts(ModuleOp module, FloatType narrow, bool masterWeights) {
  OpBuilder builder(module.getContext());
  llvm::DenseMap<Value, Value> done;
  SmallVector<Value> replaced;
  module.walk([&](mtp::MatMulOp product) {
    for (OpOperand &operand : product->getOpOperands()) {
      if (!cast<RankedTensorType>(operand.get().getType())
               .getElementType()
               .isF32())
        return;
      Value &rounded = done[operand.get()];
      if (!rounded) {
        builder.setInsertionPointAfterValue(operand.get());
        rounded = narrowed(builder, product.getLoc(), operand.get(), narrow,
                           masterWeights);
        replaced.push_back(operand.get());
      }
      operand.set(rounded);
    }
  });
  for (Value value : replaced)
    if (Operation *op = value.getDefiningOp();
        op && isa<mtp::ParameterOp>(op) && op->use_empty())
      op->erase();
}

class MtpConvertPrecision
    : public mtp::impl::MtpConvertPrecisionBase<MtpConvertPrecision> {
public:
  using Base::Base;
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    if (precision == "f64")
      return Widening(Float64Type::get(context)).run(getOperation());
    // Sixteen bits can't hold the states of an optimizer.
    if (masterWeights)
      Widening(Float32Type::get(context)).run(getOperation());
    if (precision == "bf16" || precision == "f16")
      return narrowProducts(getOperation(),
                            precision == "f16"
                                ? FloatType(Float16Type::get(context))
                                : FloatType(BFloat16Type::get(context)),
                            masterWeights);
    if (precision != "f32") {
      getOperation().emitError()
          << "precision '" << precision << "' is none of f32, f64, bf16, f16";
      signalPassFailure();
    }
  }
};
} // namespace
