// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/Scalars.h"

#include "dialects/mtp/MtpDialect.h"
#include "runtime/abi/Abi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <cstddef>

using namespace mlir;
using namespace mtp;

#define MATH_INDEX(function) (offsetof(MtpMath, function) / sizeof(void *))

Value Scalars::number(double value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getFloatAttr(registers, value));
}

Value Scalars::integer(int64_t value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getIntegerAttr(registers, value));
}

Value Scalars::integer(const APInt &value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getIntegerAttr(registers, value));
}

Value Scalars::lowest() {
  if (isFloat())
    return number(-std::numeric_limits<double>::infinity());
  unsigned width = registers.getIntOrFloatBitWidth();
  APInt value =
      isUnsigned() ? APInt::getZero(width) : APInt::getSignedMinValue(width);
  return arith::ConstantOp::create(builder, loc,
                                   builder.getIntegerAttr(registers, value));
}

Value Scalars::highest() {
  if (isFloat())
    return number(std::numeric_limits<double>::infinity());
  unsigned width = registers.getIntOrFloatBitWidth();
  APInt value = isUnsigned() ? APInt::getMaxValue(width)
                             : APInt::getSignedMaxValue(width);
  return arith::ConstantOp::create(builder, loc,
                                   builder.getIntegerAttr(registers, value));
}

Value Scalars::add(Value a, Value b) {
  if (isFloat())
    return arith::AddFOp::create(builder, loc, a, b);
  if (isBool())
    return arith::OrIOp::create(builder, loc, a, b);
  return arith::AddIOp::create(builder, loc, a, b);
}

Value Scalars::accumulate(Value sum, Value term) {
  if (!isFloat())
    return add(sum, term);
  return arith::AddFOp::create(builder, loc, sum, term,
                               arith::FastMathFlags::reassoc);
}

Value Scalars::accumulateProduct(Value product, Value factor) {
  if (!isFloat())
    return mul(product, factor);
  return arith::MulFOp::create(builder, loc, product, factor,
                               arith::FastMathFlags::reassoc);
}

Value Scalars::sub(Value a, Value b) {
  if (isFloat())
    return arith::SubFOp::create(builder, loc, a, b);
  return arith::SubIOp::create(builder, loc, a, b);
}

Value Scalars::mul(Value a, Value b) {
  if (isFloat())
    return arith::MulFOp::create(builder, loc, a, b);
  if (isBool())
    return arith::AndIOp::create(builder, loc, a, b);
  return arith::MulIOp::create(builder, loc, a, b);
}

/// Quotient or remainder toward zero that never traps.
Value Scalars::integerRemainder(Value a, Value b, bool quotient) {
  Value isZero = compare(Eq, b, integer(0));
  Value bad = isZero;
  if (!isUnsigned()) {
    Value overflow = arith::AndIOp::create(
        builder, loc, compare(Eq, a, lowest()), compare(Eq, b, integer(-1)));
    bad = arith::OrIOp::create(builder, loc, bad, overflow);
  }
  Value safe = select(bad, integer(1), b);
  Value result;
  if (isUnsigned())
    result = quotient ? Value(arith::DivUIOp::create(builder, loc, a, safe))
                      : Value(arith::RemUIOp::create(builder, loc, a, safe));
  else
    result = quotient ? Value(arith::DivSIOp::create(builder, loc, a, safe))
                      : Value(arith::RemSIOp::create(builder, loc, a, safe));
  return quotient ? select(isZero, integer(0), result) : result;
}

Value Scalars::div(Value a, Value b) {
  if (isFloat())
    return arith::DivFOp::create(builder, loc, a, b);
  return integerRemainder(a, b, /*quotient=*/true);
}

Value Scalars::fmod(Value a, Value b) {
  return isFloat() ? floatMod(a, b)
                   : integerRemainder(a, b, /*quotient=*/false);
}

Value Scalars::floatMod(Value a, Value b) {
  return emit.callMath(isF64() ? MATH_INDEX(fmod) : MATH_INDEX(fmodf),
                       registers, {a, b});
}

Value Scalars::mod(Value a, Value b) {
  Value rest = fmod(a, b);
  if (isUnsigned())
    return rest;
  // Where it is not zero and has not the sign of b, one divisor more.
  Value other = arith::XOrIOp::create(builder, loc, compare(Lt, rest, zero()),
                                      compare(Lt, b, zero()));
  Value wrong =
      arith::AndIOp::create(builder, loc, compare(Ne, rest, zero()), other);
  return select(wrong, add(rest, b), rest);
}

Value Scalars::max(Value a, Value b) {
  if (isFloat())
    return arith::MaximumFOp::create(builder, loc, a, b);
  if (isUnsigned())
    return arith::MaxUIOp::create(builder, loc, a, b);
  return arith::MaxSIOp::create(builder, loc, a, b);
}

Value Scalars::min(Value a, Value b) {
  if (isFloat())
    return arith::MinimumFOp::create(builder, loc, a, b);
  if (isUnsigned())
    return arith::MinUIOp::create(builder, loc, a, b);
  return arith::MinSIOp::create(builder, loc, a, b);
}

Value Scalars::negate(Value a) {
  if (isFloat())
    return arith::NegFOp::create(builder, loc, a);
  return sub(integer(0), a);
}

Value Scalars::abs(Value a) {
  if (isFloat())
    return math::AbsFOp::create(builder, loc, a);
  if (isUnsigned())
    return a;
  return select(compare(Lt, a, integer(0)), negate(a), a);
}

Value Scalars::sign(Value a) {
  if (isUnsigned())
    return select(compare(Eq, a, integer(0)), integer(0), integer(1));
  Value result = select(compare(Lt, a, zero()),
                        isFloat() ? number(-1) : integer(-1), zero());
  result = select(compare(Gt, a, zero()), one(), result);
  if (!isFloat())
    return result;
  return select(isNan(a), a, result);
}

Value Scalars::compare(int predicate, Value a, Value b) {
  if (isFloat()) {
    static constexpr arith::CmpFPredicate table[] = {
        arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
        arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
        arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
    return arith::CmpFOp::create(builder, loc, table[predicate], a, b);
  }
  using P = arith::CmpIPredicate;
  static constexpr P isSigned[] = {P::eq,  P::ne,  P::slt,
                                   P::sle, P::sgt, P::sge};
  static constexpr P isUnsignedTable[] = {P::eq,  P::ne,  P::ult,
                                          P::ule, P::ugt, P::uge};
  return arith::CmpIOp::create(
      builder, loc, (isUnsigned() ? isUnsignedTable : isSigned)[predicate], a,
      b);
}

Value Scalars::isNan(Value a) {
  if (isFloat())
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, a, a);
  return arith::ConstantIntOp::create(builder, loc, builder.getI1Type(), 0);
}

Value Scalars::isInf(Value a) {
  if (isFloat())
    return compare(Eq, abs(a), highest());
  return arith::ConstantIntOp::create(builder, loc, builder.getI1Type(), 0);
}

Value Scalars::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder, loc, condition, a, b);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Value Scalars::exp(Value a) {
  if (isF64())
    return emit.callMath(MATH_INDEX(exp), registers, a);
  return math::ExpOp::create(builder, loc, a);
}

Value Scalars::log(Value a) {
  if (isF64())
    return emit.callMath(MATH_INDEX(log), registers, a);
  // The polynomial is wrong on subnormal numbers: scale them by 2^23.
  Value small = compare(Lt, a, number(1.17549435e-38));
  Value scaled = select(small, mul(a, number(8388608.0)), a);
  Value shift = select(small, number(-23.0 * std::log(2.0)), number(0));
  return add(math::LogOp::create(builder, loc, scaled), shift);
}

Value Scalars::tanh(Value a) {
  if (isF64())
    return emit.callMath(MATH_INDEX(tanh), registers, a);
  return math::TanhOp::create(builder, loc, a);
}

Value Scalars::erf(Value a) {
  if (isF64())
    return emit.callMath(MATH_INDEX(erf), registers, a);
  return math::ErfOp::create(builder, loc, a);
}

Value Scalars::sin(Value a) {
  return emit.callMath(isF64() ? MATH_INDEX(sin) : MATH_INDEX(sinf), registers,
                       a);
}

Value Scalars::cos(Value a) {
  return emit.callMath(isF64() ? MATH_INDEX(cos) : MATH_INDEX(cosf), registers,
                       a);
}

Value Scalars::sqrt(Value a) { return math::SqrtOp::create(builder, loc, a); }

Value Scalars::sigmoid(Value a) {
  return div(one(), add(one(), exp(negate(a))));
}

Value Scalars::pow(Value a, Value b) {
  if (isFloat())
    return emit.callMath(isF64() ? MATH_INDEX(pow) : MATH_INDEX(powf),
                         registers, {a, b});
  Scalars wide(emit, builder.getF64Type());
  Value result = emit.callMath(
      MATH_INDEX(pow), builder.getF64Type(),
      {convert(a, builder.getF64Type()), convert(b, builder.getF64Type())});
  return wide.convert(result, type);
}

Value Scalars::powConstant(Value a, double exponent) {
  if (exponent == 1)
    return a;
  if (exponent == 2)
    return mul(a, a);
  if (exponent == 3)
    return mul(mul(a, a), a);
  if (exponent == 4 && isFloat()) {
    Value square = mul(a, a);
    return mul(square, square);
  }
  if (!isFloat())
    return Value();
  if (exponent == 0.5) // pow(-inf, 1/2) = +inf, pow(-0, 1/2) = +0
    return select(compare(Eq, a, lowest()), highest(), sqrt(add(a, number(0))));
  if (exponent == -1)
    return div(one(), a);
  return Value();
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

Value mtp::roundToBF16Bits(RegionEmitter &emit, Value value) {
  OpBuilder &builder = emit.builder;
  Location loc = emit.loc;
  Type i32 = builder.getI32Type();
  auto c = [&](int64_t x) {
    return Value(arith::ConstantIntOp::create(builder, loc, i32, x));
  };
  Value bits = arith::BitcastOp::create(builder, loc, i32, value);
  Value upper = arith::ShRUIOp::create(builder, loc, bits, c(16));
  Value odd = arith::AndIOp::create(builder, loc, upper, c(1));
  Value rounded = arith::AddIOp::create(
      builder, loc, bits, arith::AddIOp::create(builder, loc, odd, c(0x7fff)));
  rounded = arith::ShRUIOp::create(builder, loc, rounded, c(16));
  Value isNan = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO,
                                      value, value);
  Value quiet = arith::OrIOp::create(builder, loc, upper, c(0x40));
  Value result = arith::SelectOp::create(builder, loc, isNan, quiet, rounded);
  return arith::TruncIOp::create(builder, loc, builder.getI16Type(), result);
}

/// float to integer: toward zero, saturating, NaN to 0.
static Value saturate(OpBuilder &builder, Location loc, Value value, Type to,
                      bool isUnsigned) {
  std::string name = isUnsigned ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
  return LLVM::CallIntrinsicOp::create(
             builder, loc, to, builder.getStringAttr(name), ValueRange{value})
      .getResults();
}

Value Scalars::convert(Value value, Type to) {
  if (to == type)
    return value;
  Scalars target(emit, to);
  Type wanted = target.registers;
  if (to.isInteger(1))
    return compare(Ne, value, zero());
  if (isFloat() && target.isFloat()) {
    if (registers.isF64() && wanted.isF32())
      value = arith::TruncFOp::create(builder, loc, wanted, value);
    else if (registers.isF32() && wanted.isF64())
      return arith::ExtFOp::create(builder, loc, wanted, value);
    if (to.isF16()) {
      Value narrow = arith::TruncFOp::create(builder, loc, to, value);
      value = arith::ExtFOp::create(builder, loc, wanted, narrow);
    }
    if (to.isBF16()) {
      Value bits = arith::ExtUIOp::create(builder, loc, builder.getI32Type(),
                                          roundToBF16Bits(emit, value));
      Value sixteen =
          arith::ConstantIntOp::create(builder, loc, builder.getI32Type(), 16);
      value = arith::BitcastOp::create(
          builder, loc, wanted,
          arith::ShLIOp::create(builder, loc, bits, sixteen));
    }
    return value;
  }
  if (isFloat())
    return saturate(builder, loc, value, wanted, target.isUnsigned());
  if (target.isFloat())
    return isUnsigned()
               ? Value(arith::UIToFPOp::create(builder, loc, wanted, value))
               : Value(arith::SIToFPOp::create(builder, loc, wanted, value));
  unsigned from = registers.getIntOrFloatBitWidth(),
           width = wanted.getIntOrFloatBitWidth();
  if (from == width)
    return value;
  if (from > width)
    return arith::TruncIOp::create(builder, loc, wanted, value);
  return isUnsigned()
             ? Value(arith::ExtUIOp::create(builder, loc, wanted, value))
             : Value(arith::ExtSIOp::create(builder, loc, wanted, value));
}

std::optional<double> mtp::splatValue(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (isa<BroadcastOp, ReshapeOp>(op)) {
      tensor = op->getOperand(0);
      continue;
    }
    auto constant = dyn_cast<ConstantOp>(op);
    auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue())
                          : SplatElementsAttr();
    if (!splat)
      return std::nullopt;
    if (isa<FloatType>(splat.getElementType()))
      return splat.getSplatValue<APFloat>().convertToDouble();
    APInt value = splat.getSplatValue<APInt>();
    bool isUnsigned =
        splat.getElementType().isUnsignedInteger() || value.getBitWidth() == 1;
    return isUnsigned ? value.getZExtValue() : value.getSExtValue();
  }
  return std::nullopt;
}
