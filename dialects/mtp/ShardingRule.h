// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ShardingRule.h - how the dimensions of an op relate ----------------===//
//
// The sharding rule of an op: the only place that knows how it may be split.
// Verifier, planner and partitioner read it and nothing else.
//
// Text form, for ops whose rule is fixed (in ODS: ShardingRule<text, linear>):
//
//   (...,m,k),(...,k,n)->(...,m,n)     matmul, numpy broadcast of batch dims
//   (...),(...)->(...)                 elementwise with numpy broadcast
//   (...,!d),(!d),(!d)->(...,!d)       norm over the last dimension
//
// A letter is a factor; the same letter in several tensors is the same factor.
// `...` stands for any number of dimensions, aligned from the right. `!d` is
// whole: never sharded. A letter that no result has is reduced (contracted);
// one that no operand has is produced by the result (iota, expand). A dimension
// of size 1 where the factor is larger is broadcast and carries no factor.
//
// Linear text: `0|1` linear in either operand alone, `0&1` jointly linear (both
// partial or none), `(0|1)&2` one of 0, 1 together with 2; "" none.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_DIALECT_SHARDINGRULE_H
#define MTP_DIALECT_SHARDINGRULE_H

#include "dialects/mtp/Layout.h"

#include "mlir/IR/Operation.h"
#include "mlir/Support/LLVM.h"

#include <algorithm>
#include <string_view>

namespace mtp {

enum class FactorKind : uint8_t {
  Parallel, ///< may be sharded; results that lack it are partial
  Whole,    ///< never sharded
};

struct Factor {
  std::string name;
  int64_t size = 1;
  FactorKind kind = FactorKind::Parallel;
  /// What a result is that lacks this factor: PSum, PMax or PMin.
  Kind reduction = Kind::PSum;
  /// The factor is looked up by index (rows of an embedding table): a shard
  /// contributes the rows it holds. Padding needs no neutral element.
  bool indexed = false;
};

/// Factors of one tensor: for each dimension its factors, major to minor. An
/// empty list: the dimension is broadcast from size 1.
using TensorFactors = llvm::SmallVector<llvm::SmallVector<int, 2>, 4>;

struct ShardingRule {
  llvm::SmallVector<Factor, 6> factors;
  llvm::SmallVector<TensorFactors, 3> operands, results;
  /// Sets of operands, as bit masks, in which the op is jointly linear.
  llvm::SmallVector<uint32_t, 2> linear;
  /// Moves elements without arithmetic, or takes max/min: the kinds of partial
  /// maxima and minima that may pass through when all of `ordered` operands
  /// are.
  bool passesMax = false, passesMin = false;
  /// Constants: the result may be produced in any state but partial.
  bool anyState = false;
  /// With anyState: partial too (accumulators).
  bool mayBePartial = false;
  /// Every result sums over the factors that it lacks, also over those that
  /// another result has (the cotangents of several operands).
  bool eachContracts = false;
  /// Operands that are positions in another operand (bit mask): where they are
  /// padding they must still lie in it.
  uint32_t positions = 0;
};

/// Static text of a rule; see the top of the file.
struct RuleText {
  llvm::SmallVector<llvm::SmallVector<std::string, 4>, 3> operands, results;
  llvm::SmallVector<uint32_t, 2> linear;
  static RuleText parse(llvm::StringRef text, llvm::StringRef linear);
};

/// Parses the linearity notation into operand masks.
llvm::SmallVector<uint32_t, 2> parseLinear(llvm::StringRef text);

/// Gives the letters of `text` the sizes that `op` has. Fails with a
/// diagnostic if ranks or sizes do not fit.
mlir::FailureOr<ShardingRule> instantiateRule(const RuleText &text,
                                              mlir::Operation *op);

/// Builds a rule dimension by dimension; checks sizes on `build`.
class RuleBuilder {
public:
  explicit RuleBuilder(mlir::Operation *op);
  /// A new factor. Its size is taken from the dimensions it is put on.
  int factor(FactorKind kind = FactorKind::Parallel,
             Kind reduction = Kind::PSum);
  Factor &operator[](int factor) { return rule.factors[factor]; }
  /// Puts `factors`, major to minor, on a dimension.
  void operand(unsigned operand, unsigned dim, llvm::ArrayRef<int> factors);
  void result(unsigned result, unsigned dim, llvm::ArrayRef<int> factors);
  /// Puts a factor of its own on every dimension listed, in operand and result.
  void same(unsigned operand, unsigned operandDim, unsigned result,
            unsigned resultDim, FactorKind kind = FactorKind::Parallel);
  ShardingRule rule;
  /// Checks that the sizes agree; drops factors from broadcast dimensions.
  mlir::FailureOr<ShardingRule> build();

private:
  mlir::Operation *op;
};

/// Every operand and result has the same rank up to numpy broadcast.
mlir::FailureOr<ShardingRule> elementwiseRule(mlir::Operation *op,
                                              llvm::StringRef linear);

/// Factors of a reshape by walking both shapes' products from the major side.
/// Example: 8x12 -> 8x3x4: factors a=8, b=3, c=4; (a,[b,c]) -> (a,b,c).
/// 2x3 -> 3x2 shares none: one whole factor of size 6 on either side.
void reshapeFactors(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to,
                    llvm::SmallVectorImpl<Factor> &factors,
                    TensorFactors &fromFactors, TensorFactors &toFactors);

namespace detail {
template <size_t N> struct FixedString {
  char data[N]{};
  constexpr FixedString(const char (&s)[N]) { std::copy_n(s, N, data); }
  constexpr std::string_view view() const { return {data, N - 1}; }
};
/// Checked when the op is compiled: balanced parentheses, exactly one arrow.
constexpr bool wellFormed(std::string_view s) {
  int depth = 0, arrows = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '(' && ++depth != 1)
      return false;
    if (s[i] == ')' && --depth != 0)
      return false;
    if (s[i] == '-' && i + 1 < s.size() && s[i + 1] == '>')
      ++arrows;
  }
  return depth == 0 && arrows == 1;
}
/// Verifier of ShardingOpInterface: the rule fits the shapes, and, if types
/// carry layouts, every mesh axis is one of the cases of Strategy.h.
mlir::LogicalResult verifySharding(mlir::Operation *op);
/// The rule as an op builds it becomes the rule that everything takes. The
/// identity (TakeRule.cpp); test/fuzz links another one that changes rules.
mlir::FailureOr<ShardingRule> takeRule(mlir::Operation *op,
                                       mlir::FailureOr<ShardingRule> built);
} // namespace detail

/// ODS trait `ShardingRule<text, linear>`.
template <detail::FixedString Text, detail::FixedString Linear>
struct ShardingRuleTrait {
  static_assert(detail::wellFormed(Text.view()), "malformed sharding rule");
  template <typename ConcreteOp>
  class Impl : public mlir::OpTrait::TraitBase<ConcreteOp, Impl> {
  public:
    mlir::FailureOr<ShardingRule> buildShardingRule() {
      static const RuleText text = RuleText::parse(Text.data, Linear.data);
      return instantiateRule(text, this->getOperation());
    }
  };
};

} // namespace mtp

#endif // MTP_DIALECT_SHARDINGRULE_H
