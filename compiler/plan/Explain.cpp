// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Explain.h"

#include "compiler/plan/Pins.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mtp::plan {

/// The cheapest alternative whose layout satisfies `wanted`; null if there is
/// none, whatever it needs.
static const Model::Alternative *
best(const std::vector<Model::Alternative> &all,
     function_ref<bool(const Layout &)> wanted) {
  const Model::Alternative *found = nullptr;
  for (const Model::Alternative &other : all)
    if ((other.marginal.fits() || other.marginal.neededBytes) &&
        wanted(other.layout) &&
        (!found || other.marginal.isBefore(found->marginal)))
      found = &other;
  return found;
}

static bool isSplitOver(const Layout &layout, const AxisGroup &group) {
  return llvm::any_of(group.parts, [&](int part) {
    return layout.states[part].kind == Kind::S;
  });
}

namespace {
/// Reads min-marginals in the words of the graph.
class Explainer {
public:
  Explainer(func::FuncOp function, const Model &model,
            const Realization &realization, Plan &plan)
      : function(function), model(model), realization(realization), plan(plan),
        names(function) {
    for (Operation &op : function.getBody().front().without_terminator())
      position[&op] = int(position.size());
  }

  /// What fill() is going to ask, the collectives first.
  std::vector<Question> questions() const;
  /// `pruned` as explain() has it.
  void fill(const Marginals &given, Time cost, bool isPruned) {
    marginals = &given;
    optimum = cost;
    pruned = isPruned;
    fillCollectives();
    fillWhole();
    fillChoices();
  }

private:
  /// A regret or, if that is no time, why there is none.
  struct Verdict {
    Time regret = 0;
    std::string why;
    bool isBound = false;
    int64_t neededBytes = 0;
  };
  Verdict verdict(const Marginal &marginal) const;
  std::string neededText(const Marginal &marginal) const;

  const PlannedOp *plannedOf(Operation *op) const {
    auto it = position.find(op);
    return it == position.end() ? nullptr : &plan.ops[it->second];
  }
  /// The layout that the use reads; null of an output.
  const Layout *readBy(OpOperand &use) const {
    const PlannedOp *user = plannedOf(use.getOwner());
    return user ? &user->operands[use.getOperandNumber()] : nullptr;
  }
  /// Values that could be split, with whether they are parameters.
  void forEachValue(function_ref<void(Value, bool)> visit) const;
  /// Groups of axes that no part of splits the value.
  std::vector<AxisGroup> wholeOn(Value value) const;
  /// What choices are listed of: a value that is stored, or an op.
  void forEachChoice(
      function_ref<void(Value stored, Operation *op, const PlannedOp &)> visit)
      const;

  void fillCollectives();
  void fillWhole();
  void fillChoices();
  std::string whyWhole(const Model::Alternative *split,
                       const AxisGroup &group) const;

  func::FuncOp function;
  const Model &model;
  const Realization &realization;
  Plan &plan;
  PinNames names;
  DenseMap<Operation *, int> position;
  const Marginals *marginals = nullptr;
  Time optimum = 0;
  bool pruned = false;
};
} // namespace

void Explainer::forEachValue(function_ref<void(Value, bool)> visit) const {
  for (BlockArgument argument : func::FuncOp(function).getArguments())
    visit(argument, false);
  for (Operation &op :
       func::FuncOp(function).getBody().front().without_terminator()) {
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (!isFreeSource(&op, *rule))
      for (Value result : op.getResults())
        visit(result, isParameter(&op, *rule));
  }
}

std::vector<AxisGroup> Explainer::wholeOn(Value value) const {
  std::vector<AxisGroup> whole;
  if (cast<RankedTensorType>(value.getType()).getNumElements() <= 1)
    return whole;
  const Layout &have = realization[value].layout;
  for (const AxisGroup &group : groupsOf(plan.mesh))
    if (group.size > 1 && !isSplitOver(have, group) &&
        llvm::none_of(group.parts, [&](int part) {
          return isPartial(have.states[part].kind);
        }))
      whole.push_back(group);
  return whole;
}

void Explainer::forEachChoice(
    function_ref<void(Value, Operation *, const PlannedOp &)> visit) const {
  func::FuncOp main = function;
  for (auto [argument, planned] :
       llvm::zip_equal(main.getArguments(), plan.arguments))
    visit(argument, nullptr, planned);
  for (auto [op, planned] :
       llvm::zip_equal(main.getBody().front().without_terminator(), plan.ops)) {
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (isFreeSource(&op, *rule))
      continue;
    if (isParameter(&op, *rule))
      visit(op.getResult(0), nullptr, planned);
    else
      visit(nullptr, &op, planned);
  }
}

std::vector<Question> Explainer::questions() const {
  std::vector<Question> all;
  auto ask = [&](std::optional<Question> question) {
    if (question)
      all.push_back(std::move(*question));
  };
  forEachConversion(function, realization,
                    [&](Value value, const ConversionStep &, OpOperand &use) {
                      const Layout &produced = realization[value].layout;
                      ask(model.question(value, [&](const Layout &layout) {
                        return layout != produced;
                      }));
                      if (const Layout *read = readBy(use))
                        ask(model.question(use, [&](const Layout &layout) {
                          return layout != *read;
                        }));
                    });
  forEachValue([&](Value value, bool) {
    for (const AxisGroup &group : wholeOn(value))
      ask(model.question(value, [&](const Layout &layout) {
        return isSplitOver(layout, group);
      }));
  });
  forEachChoice([&](Value stored, Operation *op, const PlannedOp &planned) {
    if (op)
      ask(model.question(op, planned));
    else
      ask(model.question(stored, [&](const Layout &layout) {
        return layout != planned.results[0];
      }));
  });
  return all;
}

std::string Explainer::neededText(const Marginal &marginal) const {
  return "needs at least " + std::to_string(marginal.neededBytes) +
         " bytes a rank by the planner's sum, the limit is " +
         std::to_string(plan.limit);
}

Explainer::Verdict Explainer::verdict(const Marginal &marginal) const {
  if (marginal.neededBytes)
    return {0, "does not fit: " + neededText(marginal), marginal.isBound,
            marginal.neededBytes};
  if (!marginal.fits())
    return {0, pruned ? "never cheaper" : "fits nothing around it"};
  Time regret = std::max<Time>(marginal.cost - optimum, 0);
  if (regret >= kPenalty / 2)
    return {0, "moves a weight, or leaves one whole"};
  if (model.isSequenceParallel() && regret >= kSequencePenalty / 2)
    return {0, "keeps whole activations"};
  return {regret, "", marginal.isBound};
}

/// The strategies of a use's op that read it in the layout: "*, <tp = R> -> *".
static std::string readingText(OpOperand &use, const std::string &layout) {
  std::string text;
  for (OpOperand &operand : use.getOwner()->getOpOperands())
    text += (text.empty() ? "" : ", ") + (&operand == &use ? layout : "*");
  text += " ->";
  for (unsigned i = 0; i < use.getOwner()->getNumResults(); ++i)
    text += i ? ", *" : " *";
  return text;
}

void Explainer::fillCollectives() {
  size_t next = 0;
  forEachConversion(
      function, realization,
      [&](Value value, const ConversionStep &step, OpOperand &use) {
        // Without this conversion either the value or the use has another
        // layout.
        const Layout &produced = realization[value].layout;
        Marginal least;
        std::string words, pin;
        auto take = [&](const Model::Alternative *other, const auto &describe) {
          if (!other || (!words.empty() && !other->marginal.isBefore(least)))
            return;
          least = other->marginal;
          describe(strategyText({}, other->layout, plan.mesh));
        };
        auto ofValue = model.alternatives(value, *marginals);
        take(best(ofValue,
                  [&](const Layout &layout) { return layout != produced; }),
             [&](const std::string &layout) {
               words = "'" + names[value] + "' as " + layout;
               pin = names[value] + "=" + layout;
             });
        std::vector<Model::Alternative> ofUse;
        if (const Layout *read = readBy(use)) {
          ofUse = model.alternatives(use, *marginals);
          take(best(ofUse,
                    [&](const Layout &layout) { return layout != *read; }),
               [&](const std::string &layout) {
                 std::string reader = names[use.getOwner()->getResult(0)];
                 words = "'" + reader + "' reads '" + valueName(value) +
                         "' as " + layout;
                 pin = reader + "=" + readingText(use, layout);
               });
        }
        Verdict other = verdict(least);
        if (least.neededBytes)
          words = "none: every other way " + neededText(least);
        else if (!least.fits())
          words = pruned ? "none: no other way is ever cheaper"
                         : "none: no other way is allowed";
        else if (!other.why.empty())
          words = least.cost - optimum >= kPenalty / 2
                      ? "none: every other way moves a weight"
                      : "none: every other way keeps whole activations";
        for (const Traffic *traffic : {&step.forward, &step.backward}) {
          if (collectiveName(traffic->transfer).empty())
            continue;
          PredictedCollective &mine = plan.collectives[next++];
          mine.runnerUp = words;
          mine.runnerUpPin = StringRef(words).starts_with("none") ? "" : pin;
          mine.regret = other.regret;
          mine.regretIsBound = other.isBound;
        }
      });
}

/// Every strategy of every op and storage, the chosen one first.
void Explainer::fillChoices() {
  forEachChoice([&](Value stored, Operation *op, const PlannedOp &planned) {
    OpChoices choices{planned.name,
                      planned.kind,
                      names[op ? Value(op->getResult(0)) : stored],
                      {}};
    auto add = [&](const auto &operands, const auto &results,
                   const Marginal &marginal) {
      Verdict other = verdict(marginal);
      choices.all.push_back({operands, results, other.regret, other.why,
                             other.isBound, other.neededBytes});
    };
    using Layouts = SmallVector<Layout, 3>;
    if (op)
      for (auto [strategy, marginal] : model.strategies(op, *marginals))
        add(strategy->operands, strategy->results, marginal);
    else
      for (const Model::Alternative &other :
           model.alternatives(stored, *marginals))
        add(Layouts(), Layouts{other.layout}, other.marginal);
    auto rank = [&](const OpChoices::Choice &choice) {
      bool chosen = choice.operands == planned.operands &&
                    choice.results == planned.results;
      return std::tuple(!chosen, !choice.why.empty(), choice.neededBytes != 0,
                        choice.neededBytes, choice.regret,
                        choice.regretIsBound);
    };
    llvm::stable_sort(choices.all, [&](const auto &a, const auto &b) {
      return rank(a) < rank(b);
    });
    plan.choices.push_back(std::move(choices));
  });
}

/// `split`: the best way to split it over the group; null if there is none.
std::string Explainer::whyWhole(const Model::Alternative *split,
                                const AxisGroup &group) const {
  if (!split && pruned)
    return "splitting it is never cheaper";
  if (!split)
    return group.isData ? "it has no batch dimension to split"
                        : "no dimension may be split: they are batch, tokens, "
                          "or used whole";
  Verdict other = verdict(split->marginal);
  if (other.neededBytes)
    return "splitting it " + neededText(split->marginal);
  if (!other.why.empty())
    return split->marginal.cost - optimum >= kPenalty / 2
               ? "splitting it would move a weight"
               : "splitting it would keep whole activations";
  return "splitting it, " + strategyText({}, split->layout, plan.mesh) +
         ", would cost " + (other.isBound ? "at least " : "") +
         microsText(other.regret) + " more in all";
}

void Explainer::fillWhole() {
  forEachValue([&](Value value, bool isParameter) {
    auto all = model.alternatives(value, *marginals);
    for (const AxisGroup &group : wholeOn(value)) {
      const Model::Alternative *split = best(all, [&](const Layout &layout) {
        return isSplitOver(layout, group);
      });
      plan.whole.push_back(
          {names[value], group.name, whyWhole(split, group), isParameter});
    }
  });
}

void explain(func::FuncOp function, const Model &model, const Solver &solver,
             bool pruned, Conversions &conversions, Plan &plan) {
  auto realization = Realization::of(function, plan, conversions);
  if (failed(realization))
    return;
  Explainer(function, model, *realization, plan)
      .fill(exactMarginals(solver.minMarginals()), solver.optimum(), pruned);
}

void explainWithin(func::FuncOp function, const Model &model,
                   const MemoryModel &memory, int64_t budget,
                   const ParetoResult &chosen, const SolverOptions &options,
                   const ParetoOptions &search, Conversions &conversions,
                   Plan &plan) {
  auto realization = Realization::of(function, plan, conversions);
  if (failed(realization))
    return;
  BudgetRegretOptions limits;
  limits.bounds = options;
  limits.search = search;
  limits.beyond =
      (model.isSequenceParallel() ? kSequencePenalty : kPenalty) / 2;
  std::optional<BudgetRegret> regret;
  regret.emplace(model.problem(), memory, budget, chosen, limits);
  // Runners-up are among all strategies, if those are few enough.
  bool complete = regret->bound();
  if (!complete) {
    Problem pruned = model.problem();
    removeDominated(pruned, memory);
    regret.emplace(std::move(pruned), memory, budget, chosen, limits);
    if (!regret->bound()) {
      plan.notes.push_back("the model is too large to compare other layouts "
                           "within the limit: " +
                           regret->error().message);
      return;
    }
  }
  Explainer explainer(function, model, *realization, plan);
  regret->answer(explainer.questions());
  explainer.fill(regret->marginals(), regret->optimum(), !complete);
  if (regret->unanswered())
    plan.notes.push_back(
        std::to_string(regret->unanswered()) +
        " runners-up cost at least what is said: the search for them ended "
        "after " +
        std::to_string(regret->work()) + " labels");
}

} // namespace mtp::plan
