// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/emit/IndexExpr.h"

using namespace mtp;

IndexExpr IndexExpr::operator+(const IndexExpr &other) const {
  IndexExpr sum(constant + other.constant);
  auto a = terms.begin(), b = other.terms.begin();
  while (a != terms.end() || b != other.terms.end()) {
    if (b == other.terms.end() ||
        (a != terms.end() && a->variable < b->variable)) {
      sum.terms.push_back(*a++);
    } else if (a == terms.end() || b->variable < a->variable) {
      sum.terms.push_back(*b++);
    } else {
      if (int64_t coefficient = a->coefficient + b->coefficient)
        sum.terms.push_back({a->variable, coefficient});
      ++a, ++b;
    }
  }
  return sum;
}

IndexExpr IndexExpr::operator*(int64_t factor) const {
  if (factor == 0)
    return IndexExpr();
  IndexExpr product = *this;
  product.constant *= factor;
  for (Term &term : product.terms)
    term.coefficient *= factor;
  return product;
}

llvm::hash_code mtp::hash_value(const IndexExpr &expr) {
  llvm::hash_code hash = llvm::hash_value(expr.constant);
  for (const IndexExpr::Term &term : expr.terms)
    hash = llvm::hash_combine(hash, term.variable, term.coefficient);
  return hash;
}

llvm::SmallVector<int64_t> mtp::rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

IndexExpr mtp::linearize(llvm::ArrayRef<IndexExpr> indices,
                         llvm::ArrayRef<int64_t> shape) {
  auto strides = rowMajorStrides(shape);
  IndexExpr sum;
  for (size_t d = 0; d < shape.size(); ++d)
    sum = sum + indices[d] * strides[d];
  return sum;
}

Indices mtp::broadcastIndices(llvm::ArrayRef<IndexExpr> indices,
                              llvm::ArrayRef<int64_t> operandShape) {
  size_t skip = indices.size() - operandShape.size();
  Indices result;
  for (size_t d = 0; d < operandShape.size(); ++d)
    result.push_back(operandShape[d] == 1 ? IndexExpr() : indices[skip + d]);
  return result;
}
