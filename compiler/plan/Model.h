// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- Model.h - planning as a pairwise cost model ------------------------===//
//
// Variables: the strategy of every op; the storage of every parameter and
// input; and for every value with several uses its "converted copy": a pair of
// the layout it is produced in and the layout of one shared copy, or none.
//
//   single use      pair(producer, consumer) = cost of the path
//   several uses    pair(producer, copy)     = 0 if the layouts agree, else
//   illegal
//                   unary(copy)              = path from value to copy
//                   pair(copy, consumer)     = cheaper path, from value or copy
//
// so a shared gather or a shared backward reduction is paid once.
//
// Ops of one structure that use one shared trainable parameter (layers that
// share weights) have one variable together: such a parameter is used in the
// same way by all its equal users, and their regret is that of all of them.
// Without that rule the width of the graph would grow with every shared weight.
//
//===----------------------------------------------------------------------===//
#ifndef MTP_COMPILER_PLAN_MODEL_H
#define MTP_COMPILER_PLAN_MODEL_H

#include "compiler/plan/BudgetRegret.h"
#include "compiler/plan/DualBound.h"
#include "compiler/plan/Plan.h"

#include "llvm/ADT/StringSet.h"

#include <array>

namespace mtp::plan {

/// Cost of a weight that is not stored split, or not used as stored, under the
/// parallel objective. Larger than any sum of real costs; never reported.
inline constexpr Time kPenalty = Time(1) << 48;
/// Cost of an op that is computed on whole activations although it could be cut
/// by tokens, with sequence parallelism. Larger than the collectives around the
/// op, smaller than what a weight costs that is not split.
inline constexpr Time kSequencePenalty = Time(1) << 40;
/// What such an op costs on partial sums: less than any collective.
inline constexpr Time kPartialPenalty = 1'000'000;

class Model {
public:
  Model(mlir::func::FuncOp function, const Space &space,
        Conversions &conversions, Objective objective);

  /// Keeps only strategies that give `value` a layout for which `fits` holds.
  /// False if there is none.
  bool restrict(mlir::Value value,
                llvm::function_ref<bool(const Layout &)> fits);
  /// Keeps only strategies that read the operand in such a layout.
  bool restrict(mlir::OpOperand &operand,
                llvm::function_ref<bool(const Layout &)> fits);
  /// Layouts that `value` can be produced in.
  std::vector<Layout> choices(mlir::Value value) const;

  /// Strategies of the op that has most.
  int mostStrategies() const;
  /// The model with copies that are no variables.
  struct Stars {
    StarProblem problem;
    std::vector<int> values;               ///< by star, or -1
    std::vector<std::vector<int>> columns; ///< by star: layout ids
  };
  /// `exact`, or a bound of it (Conversions::leastCosts). Nothing if that takes
  /// more entries. Call before build().
  std::optional<Stars> stars(bool exact, int64_t mostEntries);
  /// Cost of an assignment where copies are layouts that its ops ask for.
  Time priceOf(const StarProblem &problem, const std::vector<int> &assignment);
  /// Forgets illegal strategies; returns the same assignment among those that
  /// are left. Call before build().
  std::vector<int> dropIllegal(std::vector<int> assignment);
  /// Keeps the strategies with a min-marginal of at most `limit`.
  void keepBelow(const std::vector<std::vector<Time>> &marginals, Time limit);
  /// The same for copies: these, and all that legal strategies ask for.
  void keepCopies(const Stars &stars,
                  const std::vector<std::vector<Time>> &marginals, Time limit);
  /// Keeps one strategy of each variable.
  void keepOnly(llvm::ArrayRef<int> assignment);
  /// All variables, operands before the ops that read them; equal places by
  /// structure. Call before build().
  std::vector<int> sequence() const;
  /// Entries of the tables that build() would make of what is legal now.
  int64_t tableEntries() const;
  /// Adds the tables. Call once, after the restrictions.
  void build();
  const Problem &problem() const { return tables; }
  /// Bytes of the same (Memory.h).
  MemoryModel memory(const PlanBudget &budget);
  bool isSequenceParallel() const { return space.isSequenceParallel(); }
  /// The layouts of an assignment.
  Plan decode(llvm::ArrayRef<int> assignment) const;
  /// The assignment that has these layouts; nothing if a strategy is not one of
  /// the space.
  std::optional<std::vector<int>> encode(const Plan &plan) const;

  /// A layout, with the cheapest strategy that has it.
  struct Alternative {
    Layout layout;
    Marginal marginal;
  };
  /// Every layout that `value` can be produced in; none of a constant.
  std::vector<Alternative> alternatives(mlir::Value value,
                                        const Marginals &marginals) const;
  /// The same for the layouts in which an operand is read.
  std::vector<Alternative> alternatives(mlir::OpOperand &operand,
                                        const Marginals &marginals) const;
  /// Every strategy of an op.
  std::vector<std::pair<const Strategy *, Marginal>>
  strategies(mlir::Operation *op, const Marginals &marginals) const;

  /// Which strategy is cheapest among those that produce `value`, or read the
  /// operand, in such a layout; nothing of a constant.
  using Fits = llvm::function_ref<bool(const Layout &)>;
  std::optional<Question> question(mlir::Value value, Fits fits) const;
  std::optional<Question> question(mlir::OpOperand &operand, Fits fits) const;
  /// Which strategy of the op is cheapest but those that `planned` has.
  std::optional<Question> question(mlir::Operation *op,
                                   const PlannedOp &planned) const;

private:
  MemoryModel memoryBound(const PlanBudget &budget);
  class Bytes;
  class ByteTables;
  class BoundTables;
  class StarTables;
  /// An op, parameter or input, or several of one structure.
  struct Unit {
    int variable = -1;
    OpSpace space;
    std::vector<int> operands, results; ///< layout ids, strategy-major
    int operandId(int strategy, unsigned index) const {
      return operands[strategy * (operands.size() / space.strategies.size()) +
                      index];
    }
    int resultId(int strategy, unsigned index) const {
      return results[strategy * (results.size() / space.strategies.size()) +
                     index];
    }
  };
  struct Use {
    mlir::OpOperand *operand = nullptr;
    int unit = -1; ///< -1: output of the function
  };
  struct ValueModel {
    mlir::Value value;
    int unit = -1; ///< -1: constant
    unsigned result = 0;
    TensorInfo info;
    int infoId = 0;
    std::vector<Use> uses;
    bool isWeight = false;     ///< a parameter that the objective wants split
    bool holdsClasses = false; ///< the objective wants them cut or whole
    int variable = -1;         ///< converted copy, if there are several uses
    struct State {
      int produced, copy; ///< indices; copy -1: none
    };
    /// Layout ids. Copies are those that legal strategies ask for, and what is
    /// here before build().
    std::vector<int> produced, copies;
    std::vector<int> producedOf; ///< by strategy of the unit
    std::vector<State> states;
  };

  /// Layouts are compared and looked up by number.
  int intern(const Layout &layout);
  Time pathCost(const ValueModel &value, int from, int to);
  Time outputCost(const ValueModel &value, int from);
  void addUnits();
  void addValues();
  void findProduced(ValueModel &value);
  void findWeights();
  uint64_t structureOf(mlir::Operation *op);
  uint64_t colorOf(mlir::Operation *op);
  Time usePenalty(const ValueModel &value, const Layout &stored,
                  const Layout &read) const;
  Time storagePenalty(const ValueModel &value, const Layout &stored) const;
  bool hasFeatures(mlir::Value value) const;
  void addSequencePenalties(mlir::Operation *op, const Unit &unit);
  bool addSource(const ValueModel &value);
  void addSingleUse(ValueModel &value);
  std::vector<int> copyKey(const ValueModel &value) const;
  void addCopy(ValueModel &value);
  void collectPairs();
  void addPair(int a, int b, llvm::function_ref<Time(int, int)> cost);
  void addUnary(int variable, int strategy, Time cost);
  int unitOf(mlir::Value value) const;
  const Unit *unitOf(mlir::Operation *op) const;

  mlir::func::FuncOp function;
  const Space &space;
  Conversions &conversions;
  Objective objective;
  GradientFlow gradients;
  llvm::StringSet<> trained; ///< initializers
  std::vector<Unit> units;
  llvm::DenseMap<mlir::Operation *, int> unitOfOp;
  llvm::DenseMap<mlir::Value, int> unitOfInput, modelOf;
  std::vector<ValueModel> values;
  std::map<std::pair<int, int>, std::vector<Time>> pairs;
  std::vector<std::vector<bool>> allowed; ///< by variable, when build() began
  llvm::DenseMap<mlir::Operation *, uint64_t> structures;
  using Colors = std::array<uint64_t, 5>; ///< by depth
  llvm::DenseMap<mlir::Operation *, Colors> colors;
  std::vector<Layout> layouts;
  std::unordered_multimap<size_t, int> idsByHash;
  std::vector<TensorInfo> infos;
  /// Of one kind of tensor: the layouts that were asked for are numbered in
  /// turn; -1 is not known yet.
  struct PathCosts {
    size_t place(int layout) {
      if (places.size() <= size_t(layout))
        places.resize(size_t(layout) + 1, -1);
      if (places[layout] < 0)
        places[layout] = count++;
      return size_t(places[layout]);
    }
    std::vector<int> places; ///< by layout id
    int count = 0;
    std::vector<std::vector<Time>> rows;
  };
  std::vector<PathCosts> costs;                  ///< by info
  std::map<std::vector<int>, int> copyVariables; ///< by producer and uses
  Problem tables;
};

} // namespace mtp::plan

#endif // MTP_COMPILER_PLAN_MODEL_H
