// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Gradient.h - what the gradients of ops are written with ------------===//
//
// The gradient of an op is a formula of whole tensors: `dx = g · y` says
// nothing of layouts. The builder types each op that it makes (InferLayout.h),
// and by the rules alone the cotangent of an operand comes out as the dual of
// the operand's layout. For z = x · y on one axis:
//
//   case          x       y       z       g       g · y   g · x
//   invariant     I       I       I       I       I       I
//   replicated    R       R       R       P       P       P
//   sharded       S       R       S       S       S       P (summed)
//   linear in x   P       R       P       R       R       P
//
// A formula that doesn't come out so is a mistake in it, and an error.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_DIALECT_GRADIENT_H
#define MTP_DIALECT_GRADIENT_H

#include "dialects/mtp/InferLayout.h"
#include "dialects/mtp/MtpDialect.h"

namespace mtp {

/// Type of the cotangent of `value`: the same with the dual layout.
mlir::RankedTensorType cotangentType(mlir::Value value, const MeshShape &mesh);

class GradientBuilder {
public:
  using Value = mlir::Value;
  using Type = mlir::RankedTensorType;
  using Shape = llvm::ArrayRef<int64_t>;

  /// Inserts at the point of `ops`. `active` are the values whose cotangents
  /// count: those that depend on what is differentiated.
  GradientBuilder(mlir::OpBuilder &ops, const MeshShape &mesh,
                  const llvm::DenseSet<Value> &active)
      : ops(ops), mesh(mesh), active(active) {}

  /// The gradient of `op` comes next. Messages name it.
  void begin(mlir::Operation *op) { forward = op; }
  /// False if an op that was made has no layout. A diagnostic was emitted.
  bool good() const { return !failedOnce; }

  mlir::OpBuilder &builder() { return ops; }
  mlir::Location loc() const { return forward->getLoc(); }
  /// True if a cotangent of the operand is of use.
  bool wants(Value operand) const { return active.contains(operand); }
  bool wants(unsigned operand) const {
    return wants(forward->getOperand(operand));
  }

  /// Makes an op with one result of `type` (shape and element, no layout). With
  /// `of`, the result is wanted as the cotangent of that value.
  template <typename Op, typename... Args>
  Value make(Type type, Args &&...args) {
    return finish(Op::create(ops, loc(), type, std::forward<Args>(args)...),
                  {});
  }
  template <typename Op, typename... Args>
  Value makeFor(Value of, Args &&...args) {
    return finish(
        Op::create(ops, loc(), plain(of), std::forward<Args>(args)...), of);
  }
  /// Types an op with several results; `of` (one a result, null: none) are the
  /// values whose cotangents they are.
  mlir::Operation *finishAll(mlir::Operation *op, llvm::ArrayRef<Value> of);

  /// Shape and element type of a value, without its layout.
  static Type plain(Value value);
  static Type typed(Shape shape, Value like);

  // Elementwise, with numpy broadcast. Constants stand on the right.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value mul(Value a, double b) { return mul(a, scalar(a, b)); }
  Value div(Value a, Value b);
  Value neg(Value a);
  Value compare(Compare predicate, Value a, Value b);
  Value select(Value condition, Value a, Value b);
  template <typename Op> Value unary(Value x) { return make<Op>(plain(x), x); }
  /// Changes the element type. Terms of a partial sum are rounded one by one.
  Value convert(Value x, mlir::Type element);

  /// A scalar with the element type of `like`.
  Value scalar(Value like, double value);
  Value zero(Value like) { return scalar(like, 0); }
  /// All elements `value`, as the cotangent of `of` where it is cut.
  Value splatFor(Value of, double value);
  Value zerosFor(Value of) { return splatFor(of, 0); }
  /// Zeros of another shape, cut as the cotangent of `of`: dimension i as
  /// dimension from[i] of it, not at all for -1.
  Value zerosFor(Value of, Shape shape, llvm::ArrayRef<int64_t> from);
  /// All elements `value`, of this type, invariant.
  Value splat(Type type, double value);

  Value reduceSum(Value x, llvm::ArrayRef<int64_t> dims, bool keep);
  /// The value itself if it has the shape already. `of`: the result is wanted
  /// as the cotangent of that value.
  Value reshape(Value x, Shape shape, Value of = {});
  Value broadcast(Value x, Shape shape, Value of = {});
  Value transpose(Value x, llvm::ArrayRef<int64_t> perm);
  Value slice(Value x, int64_t dim, int64_t start, int64_t size,
              int64_t step = 1);
  /// Adds elements in front of a dimension and behind it.
  Value pad(Value x, int64_t dim, int64_t low, int64_t high, double value = 0);
  Value concat(int64_t dim, Value a, Value b);
  /// Sums over the dimensions in which `operand` was broadcast to the shape of
  /// `x`, and gives it the shape of `operand`.
  Value sumTo(Value x, Value operand);

private:
  Value finish(mlir::Operation *op, Value of);
  void infer(mlir::Operation *op, llvm::ArrayRef<std::optional<Layout>> wanted);
  template <typename Op> Value binary(Value a, Value b);

  mlir::OpBuilder &ops;
  const MeshShape &mesh;
  const llvm::DenseSet<Value> &active;
  mlir::Operation *forward = nullptr;
  bool failedOnce = false;
};

/// Attaches the gradients of all ops: Gradients*.cpp, by family.
void registerGradients(mlir::MLIRContext *context);

namespace detail {
void registerElementwiseGradients(mlir::MLIRContext *context);
void registerShapeGradients(mlir::MLIRContext *context);
void registerContractionGradients(mlir::MLIRContext *context);
void registerReductionGradients(mlir::MLIRContext *context);

template <typename Function> struct GradientSignature;
template <typename ConcreteOp>
struct GradientSignature<mlir::LogicalResult (*)(
    ConcreteOp, GradientBuilder &, mlir::ValueRange,
    llvm::MutableArrayRef<mlir::Value>)> {
  using Op = ConcreteOp;
};
template <typename Op, auto Function>
struct GradientModel
    : DifferentiableOpInterface::ExternalModel<GradientModel<Op, Function>,
                                               Op> {
  mlir::LogicalResult
  buildGradient(mlir::Operation *op, GradientBuilder &builder,
                mlir::ValueRange cotangents,
                llvm::MutableArrayRef<mlir::Value> gradients) const {
    return Function(mlir::cast<Op>(op), builder, cotangents, gradients);
  }
};

/// Makes `Function` the gradient of the op that is its first parameter.
template <auto Function> void attachGradient(mlir::MLIRContext *context) {
  using Op = typename GradientSignature<decltype(Function)>::Op;
  Op::template attachInterface<GradientModel<Op, Function>>(*context);
}
} // namespace detail

} // namespace mtp

#endif // MTP_DIALECT_GRADIENT_H
