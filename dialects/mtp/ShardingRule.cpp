// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ShardingRule.cpp - how the dimensions of an op relate --------------===//

#include "dialects/mtp/ShardingRule.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mtp;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static SmallVector<SmallVector<std::string, 4>, 3> parseSide(StringRef side) {
  SmallVector<SmallVector<std::string, 4>, 3> tensors;
  while (side.consume_front("(") || side.consume_front(",(")) {
    auto [inside, rest] = side.split(')');
    SmallVector<StringRef> letters;
    inside.split(letters, ',', -1, /*KeepEmpty=*/false);
    auto &tensor = tensors.emplace_back();
    for (StringRef letter : letters)
      tensor.push_back(letter.trim().str());
    side = rest;
  }
  return tensors;
}

/// `0|1` -> {0},{1}; `0&1` -> {0,1}; `(0|1)&2` -> {0,2},{1,2}.
SmallVector<uint32_t, 2> mtp::parseLinear(StringRef text) {
  if (text.empty())
    return {};
  if (text.starts_with("(")) {
    auto [alternatives, joint] = text.drop_front().split(")&");
    SmallVector<uint32_t, 2> sets = parseLinear(alternatives);
    for (uint32_t &set : sets)
      set |= parseLinear(joint).front();
    return sets;
  }
  SmallVector<uint32_t, 2> sets;
  SmallVector<StringRef> alternatives;
  text.split(alternatives, '|');
  for (StringRef alternative : alternatives) {
    SmallVector<StringRef> members;
    alternative.split(members, '&');
    uint32_t set = 0;
    for (StringRef member : members) {
      unsigned operand = 0;
      if (member.trim().getAsInteger(10, operand))
        llvm::report_fatal_error("malformed linearity in an op definition");
      set |= 1u << operand;
    }
    sets.push_back(set);
  }
  return sets;
}

RuleText RuleText::parse(StringRef text, StringRef linear) {
  auto [operands, results] = text.split("->");
  return {parseSide(operands), parseSide(results), parseLinear(linear)};
}

//===----------------------------------------------------------------------===//
// RuleBuilder
//===----------------------------------------------------------------------===//

static SmallVector<TensorFactors, 3> emptyFactors(ValueRange values) {
  SmallVector<TensorFactors, 3> all;
  for (Value value : values)
    all.emplace_back().resize(tensorType(value).getRank());
  return all;
}

RuleBuilder::RuleBuilder(Operation *op) : op(op) {
  rule.operands = emptyFactors(op->getOperands());
  rule.results = emptyFactors(op->getResults());
}

int RuleBuilder::factor(FactorKind kind, Kind reduction) {
  Factor &factor = rule.factors.emplace_back();
  factor.name = "f" + std::to_string(rule.factors.size() - 1);
  factor.kind = kind;
  factor.reduction = reduction;
  factor.size = 0;
  return rule.factors.size() - 1;
}

void RuleBuilder::operand(unsigned operand, unsigned dim,
                          ArrayRef<int> factors) {
  rule.operands[operand][dim].assign(factors.begin(), factors.end());
}

void RuleBuilder::result(unsigned result, unsigned dim, ArrayRef<int> factors) {
  rule.results[result][dim].assign(factors.begin(), factors.end());
}

void RuleBuilder::same(unsigned operandIndex, unsigned operandDim,
                       unsigned resultIndex, unsigned resultDim,
                       FactorKind kind) {
  int f = factor(kind);
  operand(operandIndex, operandDim, f);
  result(resultIndex, resultDim, f);
}

/// Sizes of factors that stand alone on a dimension; the largest wins, smaller
/// ones must be 1 (broadcast).
static void sizeLoneFactors(ShardingRule &rule, ValueRange values,
                            ArrayRef<TensorFactors> all) {
  for (auto [value, tensor] : llvm::zip_equal(values, all))
    for (auto [extent, dim] :
         llvm::zip_equal(tensorType(value).getShape(), tensor))
      if (dim.size() == 1)
        rule.factors[dim[0]].size = std::max(rule.factors[dim[0]].size, extent);
}

/// A dimension of size 0 broadcasts ones to nothing.
static void sizeEmptyFactors(ShardingRule &rule, ValueRange values,
                             ArrayRef<TensorFactors> all) {
  for (auto [value, tensor] : llvm::zip_equal(values, all))
    for (auto [extent, dim] :
         llvm::zip_equal(tensorType(value).getShape(), tensor))
      if (dim.size() == 1 && extent == 0 && rule.factors[dim[0]].size == 1)
        rule.factors[dim[0]].size = 0;
}

static LogicalResult checkSizes(Operation *op, ShardingRule &rule,
                                ValueRange values,
                                MutableArrayRef<TensorFactors> all,
                                StringRef what, bool mayBroadcast) {
  for (auto [index, value] : llvm::enumerate(values)) {
    ArrayRef<int64_t> shape = tensorType(value).getShape();
    for (auto [dim, extent] : llvm::enumerate(shape)) {
      auto &factors = all[index][dim];
      if (factors.empty()) {
        if (extent != 1)
          return op->emitOpError()
                 << what << " " << index << " has size " << extent
                 << " in dimension " << dim << " where 1 is expected";
        continue;
      }
      int64_t product = 1;
      for (int factor : factors)
        product *= rule.factors[factor].size;
      if (product == extent)
        continue;
      if (extent == 1 && mayBroadcast) {
        factors.clear();
        continue;
      }
      return op->emitOpError() << what << " " << index << " has size " << extent
                               << " in dimension " << dim
                               << ", but the other tensors say " << product;
    }
  }
  return success();
}

FailureOr<ShardingRule> RuleBuilder::build() {
  sizeLoneFactors(rule, op->getOperands(), rule.operands);
  sizeLoneFactors(rule, op->getResults(), rule.results);
  sizeEmptyFactors(rule, op->getOperands(), rule.operands);
  sizeEmptyFactors(rule, op->getResults(), rule.results);
  if (failed(checkSizes(op, rule, op->getOperands(), rule.operands, "operand",
                        true)) ||
      failed(checkSizes(op, rule, op->getResults(), rule.results, "result",
                        false)))
    return failure();
  return std::move(rule);
}

//===----------------------------------------------------------------------===//
// Static rules
//===----------------------------------------------------------------------===//

namespace {
/// Places the letters of a text on the dimensions of an op.
class Instantiation {
public:
  explicit Instantiation(Operation *op) : builder(op), op(op) {}

  LogicalResult place(ArrayRef<SmallVector<std::string, 4>> texts,
                      ValueRange values, bool isResult) {
    if (texts.size() != values.size())
      return op->emitOpError()
             << "has " << values.size() << (isResult ? " results" : " operands")
             << ", its sharding rule " << texts.size();
    for (auto [index, text] : llvm::enumerate(texts)) {
      int rank = tensorType(values[index]).getRank();
      int letters =
          llvm::count_if(text, [](const std::string &s) { return s != "..."; });
      bool open = letters != static_cast<int>(text.size());
      if (open ? rank < letters : rank != letters)
        return op->emitOpError()
               << (isResult ? "result " : "operand ") << index << " has rank "
               << rank << ", expected " << (open ? "at least " : "") << letters;
      int dim = 0;
      for (const std::string &letter : text) {
        if (letter != "...") {
          put(index, dim++, letter, isResult);
          continue;
        }
        for (int left = rank - letters; left > 0; --left)
          put(index, dim++, "..." + std::to_string(left), isResult);
      }
    }
    return success();
  }

  RuleBuilder builder;

private:
  void put(unsigned index, unsigned dim, StringRef letter, bool isResult) {
    FactorKind kind =
        letter.consume_front("!") ? FactorKind::Whole : FactorKind::Parallel;
    auto [it, isNew] = byLetter.try_emplace(letter, -1);
    if (isNew) {
      it->second = builder.factor(kind);
      builder[it->second].name = letter.str();
    }
    if (isResult)
      builder.result(index, dim, it->second);
    else
      builder.operand(index, dim, it->second);
  }

  Operation *op;
  llvm::StringMap<int> byLetter;
};
} // namespace

FailureOr<ShardingRule> mtp::instantiateRule(const RuleText &text,
                                             Operation *op) {
  Instantiation instantiation(op);
  if (failed(instantiation.place(text.operands, op->getOperands(), false)) ||
      failed(instantiation.place(text.results, op->getResults(), true)))
    return failure();
  instantiation.builder.rule.linear = text.linear;
  return instantiation.builder.build();
}

FailureOr<ShardingRule> mtp::elementwiseRule(Operation *op, StringRef linear) {
  RuleText text;
  text.operands.assign(op->getNumOperands(), {"..."});
  text.results.assign(op->getNumResults(), {"..."});
  text.linear = parseLinear(linear);
  return instantiateRule(text, op);
}
