// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- mtp-partition-neutral.cpp - neutral elements of reductions ---------===//
//
// Alone in its file, so that test/fuzz can link another definition.
//
//===----------------------------------------------------------------------===//

#include "passes/mtp-partition.h"

using namespace mlir;
using namespace mtp;

TypedAttr partition::neutralElement(Builder &builder, Type element,
                                    Kind reduction) {
  if (auto type = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    APFloat value = reduction == Kind::PSum
                        ? APFloat::getZero(semantics)
                        : APFloat::getInf(semantics, reduction == Kind::PMax);
    return builder.getFloatAttr(type, value);
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  bool isUnsigned = bits == 1 || element.isUnsignedInteger();
  APInt value = APInt::getZero(bits);
  if (reduction == Kind::PMax)
    value =
        isUnsigned ? APInt::getMinValue(bits) : APInt::getSignedMinValue(bits);
  else if (reduction == Kind::PMin)
    value =
        isUnsigned ? APInt::getMaxValue(bits) : APInt::getSignedMaxValue(bits);
  return builder.getIntegerAttr(element, value);
}
