// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/RuleMutations.h"

#include "passes/mtp-partition.h"
#include "test/fuzz/TypedPrograms.h"

#include <limits>

using namespace mlir;
using namespace mtp;
using namespace mtp::fuzz;

static const RuleMutation *current = nullptr;

void fuzz::setMutation(const RuleMutation *mutation) { current = mutation; }

/// The same op on tensors of the same shapes: global ones, so that helpers of
/// the typed programs with other shapes stay right.
static bool isSameOp(Operation *a, Operation *b) {
  auto same = [](ValueRange left, ValueRange right) {
    return llvm::equal(left.getTypes(), right.getTypes(), [](Type x, Type y) {
      auto s = cast<RankedTensorType>(x), t = cast<RankedTensorType>(y);
      return s.getShape() == t.getShape() &&
             s.getElementType() == t.getElementType();
    });
  };
  return a->getName().getStringRef() == b->getName().getStringRef() &&
         same(a->getOperands(), b->getOperands()) &&
         same(a->getResults(), b->getResults());
}

FailureOr<ShardingRule> mtp::detail::takeRule(Operation *op,
                                              FailureOr<ShardingRule> built) {
  if (succeeded(built) && current && current->change &&
      isSameOp(op, mainOp(current->seed)))
    current->change(*built);
  return built;
}

TypedAttr partition::neutralElement(Builder &builder, Type element,
                                    Kind reduction) {
  bool isFloat = isa<FloatType>(element), isBool = element.isInteger(1);
  double value = 0;
  if (reduction != Kind::PSum) {
    double largest = isFloat  ? std::numeric_limits<double>::infinity()
                     : isBool ? 1
                              : 0x1p62;
    value = reduction == Kind::PMin ? largest : isBool ? 0 : -largest;
  }
  if (current && current->neutral)
    current->neutral(element, reduction, value);
  if (isFloat)
    return builder.getFloatAttr(element, value);
  return builder.getIntegerAttr(element,
                                APInt(element.getIntOrFloatBitWidth(),
                                      static_cast<int64_t>(value), !isBool));
}

namespace {
/// Collects the changes of one rule.
class Mutator {
public:
  Mutator(func::FuncOp seed, ShardingRule rule)
      : seed(seed), rule(std::move(rule)) {}

  std::vector<RuleMutation> run() {
    for (size_t index = 0; index < rule.factors.size(); ++index)
      changeFactor(index);
    changePlaces(&ShardingRule::operands, "operand ");
    changePlaces(&ShardingRule::results, "result ");
    changeLinear();
    add("maxima pass or not",
        [](ShardingRule &r) { r.passesMax = !r.passesMax; });
    add("minima pass or not",
        [](ShardingRule &r) { r.passesMin = !r.passesMin; });
    add("any state or not", [](ShardingRule &r) { r.anyState = !r.anyState; });
    for (auto [index, operand] : llvm::enumerate(mainOp(seed)->getOperands()))
      if (cast<RankedTensorType>(operand.getType())
              .getElementType()
              .isInteger(64))
        add("operand " + std::to_string(index) + " is a position or not",
            [index = index](ShardingRule &r) { r.positions ^= 1u << index; });
    return std::move(mutations);
  }

private:
  void add(const std::string &text,
           std::function<void(ShardingRule &)> change) {
    mutations.push_back(
        {seed.getName().str() + ": " + text, seed, std::move(change), {}});
  }

  bool isContracted(int factor) const {
    return llvm::none_of(rule.results, [&](const TensorFactors &result) {
      return llvm::any_of(
          result, [&](auto &dim) { return llvm::is_contained(dim, factor); });
    });
  }

  void changeFactor(size_t index) {
    const Factor &factor = rule.factors[index];
    std::string name = "factor " + factor.name;
    bool whole = factor.kind == FactorKind::Whole;
    add(name + (whole ? " is parallel" : " is whole"), [=](ShardingRule &r) {
      r.factors[index].kind = whole ? FactorKind::Parallel : FactorKind::Whole;
    });
    if (whole || !isContracted(index))
      return;
    for (Kind kind : {Kind::PSum, Kind::PMax, Kind::PMin})
      if (kind != factor.reduction)
        add(name + " is reduced by " +
                (kind == Kind::PSum   ? "sum"
                 : kind == Kind::PMax ? "maximum"
                                      : "minimum"),
            [=](ShardingRule &r) { r.factors[index].reduction = kind; });
    add(name + " is looked up or not", [=](ShardingRule &r) {
      r.factors[index].indexed = !r.factors[index].indexed;
    });
  }

  using Tensors = SmallVector<TensorFactors, 3> ShardingRule::*;

  /// Drops each factor from each place, and exchanges neighbouring dimensions.
  void changePlaces(Tensors tensors, const std::string &what) {
    for (size_t tensor = 0; tensor < (rule.*tensors).size(); ++tensor) {
      const TensorFactors &dims = (rule.*tensors)[tensor];
      for (size_t dim = 0; dim < dims.size(); ++dim) {
        std::string place =
            what + std::to_string(tensor) + " dimension " + std::to_string(dim);
        for (size_t at = 0; at < dims[dim].size(); ++at)
          add(place + " lacks factor " + rule.factors[dims[dim][at]].name,
              [=](ShardingRule &r) {
                auto &factors = (r.*tensors)[tensor][dim];
                factors.erase(factors.begin() + at);
              });
        if (dim + 1 < dims.size() && dims[dim] != dims[dim + 1])
          add(place + " and the next are exchanged", [=](ShardingRule &r) {
            std::swap((r.*tensors)[tensor][dim], (r.*tensors)[tensor][dim + 1]);
          });
      }
    }
  }

  void changeLinear() {
    for (size_t set = 0; set < rule.linear.size(); ++set)
      add("linear set " + std::to_string(set) + " is dropped",
          [=](ShardingRule &r) { r.linear.erase(r.linear.begin() + set); });
    for (unsigned operand = 0; operand < rule.operands.size(); ++operand) {
      uint32_t alone = 1u << operand;
      if (!llvm::is_contained(rule.linear, alone))
        add("linear in operand " + std::to_string(operand),
            [=](ShardingRule &r) { r.linear.push_back(alone); });
    }
  }

  func::FuncOp seed;
  ShardingRule rule;
  std::vector<RuleMutation> mutations;
};
} // namespace

std::vector<RuleMutation> fuzz::mutationsOf(func::FuncOp seed) {
  auto rule = ruleOf(mainOp(seed));
  return rule ? Mutator(seed, std::move(*rule)).run()
              : std::vector<RuleMutation>();
}

std::vector<RuleMutation> fuzz::neutralMutations() {
  struct Row {
    const char *text;
    Kind reduction;
    bool isFloat;
    unsigned bits;
    double value;
  };
  static const Row rows[] = {
      {"the neutral element of a sum of floats is 1", Kind::PSum, true, 64, 1},
      {"the neutral element of a sum of floats is infinity", Kind::PSum, true,
       64, std::numeric_limits<double>::infinity()},
      {"the neutral element of a sum of integers, or a position, is 1000",
       Kind::PSum, false, 64, 1000},
      {"the neutral element of a maximum of integers is 0", Kind::PMax, false,
       64, 0},
      {"the neutral element of a maximum of integers is the highest",
       Kind::PMax, false, 64, 0x1p62},
      {"the neutral element of a minimum of integers is 0", Kind::PMin, false,
       64, 0},
      {"the neutral element of a minimum of integers is the lowest", Kind::PMin,
       false, 64, -0x1p62},
      {"the neutral element of a maximum of booleans is true", Kind::PMax,
       false, 1, 1},
      {"the neutral element of a minimum of booleans is false", Kind::PMin,
       false, 1, 0},
  };
  std::vector<RuleMutation> mutations;
  for (const Row &row : rows) {
    RuleMutation &mutation = mutations.emplace_back();
    mutation.text = row.text;
    mutation.neutral = [row](Type element, Kind reduction, double &value) {
      if (reduction == row.reduction &&
          isa<FloatType>(element) == row.isFloat &&
          element.getIntOrFloatBitWidth() == row.bits)
        value = row.value;
    };
  }
  return mutations;
}
