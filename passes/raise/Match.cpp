// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Match.cpp - recognising decomposed forms ---------------------------===//

#include "passes/raise/Match.h"

#include <cmath>

using namespace mlir;
using namespace mtp;

std::optional<double> raise::splatValue(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
      if (!splat)
        return std::nullopt;
      if (isa<FloatType>(splat.getElementType()))
        return splat.getSplatValue<APFloat>().convertToDouble();
      if (splat.getElementType().isInteger(1))
        return splat.getSplatValue<bool>();
      if (splat.getElementType().isInteger())
        return static_cast<double>(splat.getSplatValue<APInt>().getSExtValue());
      return std::nullopt;
    }
    if (!isa<ReshapeOp, BroadcastOp, ConvertOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

bool raise::isSplat(Value value, double expected) {
  auto splat = splatValue(value);
  return splat && std::abs(*splat - expected) <= 1e-6 * std::abs(expected);
}

raise::Product raise::flattenProduct(Value value) {
  Product product;
  SmallVector<Value> work{value};
  auto shape = typeOf(value).getShape();
  while (!work.empty()) {
    Value current = work.pop_back_val();
    if (auto splat = splatValue(current)) {
      product.scale *= *splat;
      continue;
    }
    bool whole = typeOf(current).getShape() == shape;
    if (auto mul = current.getDefiningOp<MulOp>(); mul && whole) {
      work.append({mul.getRhs(), mul.getLhs()});
      continue;
    }
    if (auto div = current.getDefiningOp<DivOp>(); div && whole) {
      auto divisor = splatValue(div.getRhs());
      if (divisor && *divisor != 0) {
        product.scale /= *divisor;
        work.push_back(div.getLhs());
        continue;
      }
    }
    if (auto neg = current.getDefiningOp<NegOp>()) {
      product.scale = -product.scale;
      work.push_back(neg.getInput());
      continue;
    }
    product.factors.push_back(current);
  }
  return product;
}

raise::Sum raise::flattenSum(Value value, Value term) {
  Sum sum;
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Value current = work.pop_back_val();
    if (auto splat = splatValue(current)) {
      sum.offset += *splat;
      continue;
    }
    if (auto add = current.getDefiningOp<AddOp>(); add && current != term) {
      work.append({add.getRhs(), add.getLhs()});
      continue;
    }
    sum.terms.push_back(current);
  }
  return sum;
}

Value raise::matchMeanOfLast(Value value) {
  Product product = flattenProduct(value);
  if (product.factors.size() != 1)
    return {};
  auto sum = product.factors[0].getDefiningOp<ReduceSumOp>();
  if (!sum || !sum.getKeep())
    return {};
  auto type = typeOf(sum.getInput());
  int64_t last = type.getRank() - 1;
  if (sum.getDims() != ArrayRef<int64_t>{last})
    return {};
  double expected = 1.0 / static_cast<double>(type.getDimSize(last));
  return std::abs(product.scale - expected) <= 1e-6 * expected ? sum.getInput()
                                                               : Value();
}

Value raise::matchSquare(Value value) {
  if (auto mul = value.getDefiningOp<MulOp>())
    return mul.getLhs() == mul.getRhs() ? mul.getLhs() : Value();
  if (auto pow = value.getDefiningOp<PowOp>())
    return isSplat(pow.getRhs(), 2) ? pow.getLhs() : Value();
  return {};
}

Value raise::matchRsqrt(Value value) {
  if (auto rsqrt = value.getDefiningOp<RsqrtOp>())
    return rsqrt.getInput();
  Value root;
  if (auto reciprocal = value.getDefiningOp<ReciprocalOp>())
    root = reciprocal.getInput();
  else if (auto div = value.getDefiningOp<DivOp>();
           div && isSplat(div.getLhs(), 1))
    root = div.getRhs();
  else if (auto pow = value.getDefiningOp<PowOp>();
           pow && isSplat(pow.getRhs(), -0.5))
    return pow.getLhs();
  if (!root)
    return {};
  if (auto sqrt = root.getDefiningOp<SqrtOp>())
    return sqrt.getInput();
  auto pow = root.getDefiningOp<PowOp>();
  return pow && isSplat(pow.getRhs(), 0.5) ? pow.getLhs() : Value();
}
