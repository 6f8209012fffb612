// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Scalars.h - arithmetic on register values --------------------------===//
//
// The meaning of mtp's element types on scalars: signedness, NaN, division by
// zero, conversion. One formula for each function, used by all emitters.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_CODEGEN_EMIT_SCALARS_H
#define MTP_COMPILER_CODEGEN_EMIT_SCALARS_H

#include "compiler/codegen/emit/RegionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mtp {

/// Arithmetic on values of one element type. All values are register values.
class Scalars {
public:
  /// `type` is the element type of a tensor (f16 computes in f32).
  Scalars(RegionEmitter &emit, mlir::Type type)
      : emit(emit), builder(emit.builder), loc(emit.loc), type(type),
        registers(RegionEmitter::registerType(type)) {}

  bool isFloat() const { return mlir::isa<mlir::FloatType>(registers); }
  bool isBool() const { return type.isInteger(1); }
  bool isUnsigned() const { return isBool() || type.isUnsignedInteger(); }
  bool isF64() const { return registers.isF64(); }

  mlir::Value number(double value);
  mlir::Value integer(int64_t value);
  mlir::Value integer(const llvm::APInt &value);
  mlir::Value zero() { return isFloat() ? number(0) : integer(0); }
  mlir::Value one() { return isFloat() ? number(1) : integer(1); }
  /// Neutral elements of max and min.
  mlir::Value lowest();
  mlir::Value highest();

  mlir::Value add(mlir::Value a, mlir::Value b);
  /// A term of a long sum: may be reordered.
  mlir::Value accumulate(mlir::Value sum, mlir::Value term);
  mlir::Value accumulateProduct(mlir::Value product, mlir::Value factor);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  /// Integers: toward zero, 0 where b is 0, and the lowest value by -1 is
  /// itself.
  mlir::Value div(mlir::Value a, mlir::Value b);
  /// Sign of b (mod) or of a (fmod); integers give 0 where b is 0.
  mlir::Value mod(mlir::Value a, mlir::Value b);
  mlir::Value fmod(mlir::Value a, mlir::Value b);
  /// NaN wins.
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value negate(mlir::Value a);
  mlir::Value abs(mlir::Value a);
  mlir::Value sign(mlir::Value a);
  mlir::Value pow(mlir::Value a, mlir::Value b);
  /// a to a constant power, or null if that has no short form.
  mlir::Value powConstant(mlir::Value a, double exponent);
  /// Predicates in the order of mtp::Compare.
  enum Predicate { Eq, Ne, Lt, Le, Gt, Ge };
  mlir::Value compare(int predicate, mlir::Value a, mlir::Value b);
  mlir::Value isNan(mlir::Value a);
  mlir::Value isInf(mlir::Value a);
  mlir::Value bitAnd(mlir::Value a, mlir::Value b) {
    return mlir::arith::AndIOp::create(builder, loc, a, b);
  }
  mlir::Value bitOr(mlir::Value a, mlir::Value b) {
    return mlir::arith::OrIOp::create(builder, loc, a, b);
  }
  mlir::Value bitXor(mlir::Value a, mlir::Value b) {
    return mlir::arith::XOrIOp::create(builder, loc, a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);

  // Floats only.
  mlir::Value exp(mlir::Value a);
  mlir::Value log(mlir::Value a);
  mlir::Value tanh(mlir::Value a);
  mlir::Value erf(mlir::Value a);
  mlir::Value sin(mlir::Value a);
  mlir::Value cos(mlir::Value a);
  mlir::Value sqrt(mlir::Value a);
  mlir::Value sigmoid(mlir::Value a);

  /// From this type to another.
  mlir::Value convert(mlir::Value value, mlir::Type to);

private:
  mlir::Value floatMod(mlir::Value a, mlir::Value b);
  mlir::Value integerRemainder(mlir::Value a, mlir::Value b, bool quotient);

  RegionEmitter &emit;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type type, registers;
};

/// The bits of a bf16, rounded to nearest even; NaN stays NaN.
mlir::Value roundToBF16Bits(RegionEmitter &emit, mlir::Value f32);

/// The value of a splat constant (also behind broadcasts, reshapes,
/// conversions).
std::optional<double> splatValue(mlir::Value tensor);

inline mlir::Type elementTypeOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getElementType();
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getShape();
}

} // namespace mtp

#endif // MTP_COMPILER_CODEGEN_EMIT_SCALARS_H
