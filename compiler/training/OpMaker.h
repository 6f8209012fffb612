// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- OpMaker.h - makes ops of training with the types that follow -------===//
#ifndef MTP_COMPILER_TRAINING_OPMAKER_H
#define MTP_COMPILER_TRAINING_OPMAKER_H

#include "dialects/spmd/SpmdDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mtp::training {

/// Names of hidden arguments and results, which the tool fills and reads
/// (`mtp.name`).
namespace names {
inline constexpr llvm::StringLiteral loss("mtp.loss");
inline constexpr llvm::StringLiteral gradNorm("mtp.grad_norm");
inline constexpr llvm::StringLiteral labelCount("mtp.label_count");
inline constexpr llvm::StringLiteral lossScale("mtp.loss_scale");
inline constexpr llvm::StringLiteral seed("mtp.seed");
inline constexpr llvm::StringLiteral step("mtp.step");
inline constexpr llvm::StringLiteral microBatch("mtp.micro_batch");
inline constexpr llvm::StringLiteral learningRate("mtp.learning_rate");
inline constexpr llvm::StringLiteral biasCorrection1("mtp.bias_correction1");
inline constexpr llvm::StringLiteral biasCorrection2("mtp.bias_correction2");
/// Of the gradient of input NAME, which follows.
inline constexpr llvm::StringLiteral inputGradient("mtp.input_gradient:");
/// Attributes.
inline constexpr llvm::StringLiteral trainable("mtp.trainable");
inline constexpr llvm::StringLiteral wantsGradient("mtp.wants_gradient");
inline constexpr llvm::StringLiteral gradientOf("mtp.gradient_of");
inline constexpr llvm::StringLiteral reason("mtp.reason");
/// Of a function: bytes that the gradients of a rank take besides accumulators.
inline constexpr llvm::StringLiteral gradientBytes("mtp.gradient_bytes");
/// Of @main and of ops of the cross entropy: how many classes it has.
inline constexpr llvm::StringLiteral classes("mtp.classes");
inline constexpr llvm::StringLiteral tiedTo("mtp.tied_to");
} // namespace names

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// Makes ops before a plan is applied (types without layouts) and after it. In
/// typed modules a result has the layout of the operand that has its shape;
/// constants and scalars are invariant.
class OpMaker {
public:
  OpMaker(mlir::OpBuilder &builder, mlir::Location loc,
          LayoutAttr invariant = {})
      : builder(builder), loc(loc), invariant(invariant) {}

  template <typename Op> mlir::Value unary(mlir::Value x) {
    return Op::create(builder, loc, x.getType(), x);
  }
  template <typename Op> mlir::Value binary(mlir::Value a, mlir::Value b) {
    return Op::create(builder, loc,
                      broadcast({a, b}, typeOf(a).getElementType()), a, b);
  }
  mlir::Value compare(Compare predicate, mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  /// Without layouts only.
  template <typename Op>
  mlir::Value reduce(mlir::Value x, llvm::ArrayRef<int64_t> dims, bool keep);
  mlir::Value convert(mlir::Value x, mlir::Type element);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value iota(llvm::ArrayRef<int64_t> shape, int64_t dim,
                   mlir::Type element);
  /// A scalar constant, float or integer.
  mlir::Value scalar(mlir::Type element, double value);
  mlir::Value integer(mlir::Type element, int64_t value);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  LayoutAttr invariant;

private:
  /// Type of an elementwise result of `operands`.
  mlir::RankedTensorType broadcast(llvm::ArrayRef<mlir::Value> operands,
                                   mlir::Type element);
};

template <typename Op>
mlir::Value OpMaker::reduce(mlir::Value x, llvm::ArrayRef<int64_t> dims,
                            bool keep) {
  llvm::SmallVector<int64_t> shape;
  for (auto [dim, extent] : llvm::enumerate(typeOf(x).getShape())) {
    bool reduced = llvm::is_contained(dims, static_cast<int64_t>(dim));
    if (!reduced || keep)
      shape.push_back(reduced ? 1 : extent);
  }
  return Op::create(
      builder, loc,
      mlir::RankedTensorType::get(shape, typeOf(x).getElementType()), x,
      builder.getDenseI64ArrayAttr(dims),
      keep ? builder.getUnitAttr() : mlir::UnitAttr());
}

/// @main, the function that is trained; null and a diagnostic if there is none.
mlir::func::FuncOp mainOf(mlir::ModuleOp module);
/// The argument of that name, or null.
mlir::BlockArgument findArgument(mlir::func::FuncOp function,
                                 llvm::StringRef name);
/// The argument of that name, added at the end if there is none.
mlir::BlockArgument argument(mlir::func::FuncOp function, llvm::StringRef name,
                             mlir::RankedTensorType type);
/// The hidden scalar of that name, behind a stop-gradient: the same on all
/// ranks, and free to meet values that aren't.
mlir::Value scalarArgument(OpMaker &make, mlir::func::FuncOp function,
                           llvm::StringRef name, mlir::Type element);
/// Name of an argument or result, "" if it has none.
llvm::StringRef argumentName(mlir::func::FuncOp function, unsigned index);
llvm::StringRef resultName(mlir::func::FuncOp function, unsigned index);
/// Makes the function return `values`, whose attributes are `attrs`.
void setResults(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Value> values,
                llvm::ArrayRef<mlir::DictionaryAttr> attrs);

} // namespace mtp::training

#endif // MTP_COMPILER_TRAINING_OPMAKER_H
