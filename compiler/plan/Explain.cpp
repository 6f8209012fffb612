// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/plan/Explain.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mtp::plan {

static std::string quoted(const Layout &layout, const MeshShape &mesh) {
  std::string text = layout.text(mesh);
  return text.empty() ? "invariant" : "<" + text + ">";
}

static std::string micros(Time time) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.1f us", double(time) / 1e6);
  return text;
}

/// The cheapest alternative whose layout satisfies `wanted`.
static const Model::Alternative *
best(const std::vector<Model::Alternative> &all,
     function_ref<bool(const Layout &)> wanted) {
  const Model::Alternative *found = nullptr;
  for (const Model::Alternative &alternative : all)
    if (alternative.total < kIllegal && wanted(alternative.layout) &&
        (!found || alternative.total < found->total))
      found = &alternative;
  return found;
}

static void explainCollectives(func::FuncOp function, const Model &model,
                               const Solver &solver,
                               const std::vector<std::vector<Time>> &marginals,
                               const Realization &realization, bool pruned,
                               Plan &plan) {
  DenseMap<Operation *, int> position;
  for (Operation &op : function.getBody().front().without_terminator())
    position[&op] = int(position.size());
  size_t next = 0;
  forEachConversion(
      function, realization,
      [&](Value value, const ConversionStep &step, OpOperand &use) {
        // Without this conversion either the value or the use has another
        // layout.
        const Layout &produced = realization[value].layout;
        auto ofValue = model.alternatives(value, marginals);
        const Model::Alternative *other = best(
            ofValue, [&](const Layout &layout) { return layout != produced; });
        std::string words;
        if (other)
          words = "'" + valueName(value) + "' as " +
                  quoted(other->layout, plan.mesh);
        Time total = other ? other->total : kIllegal;
        auto it = position.find(use.getOwner());
        std::vector<Model::Alternative> ofUse;
        if (it != position.end()) {
          ofUse = model.alternatives(use, marginals);
          const Layout &read =
              plan.ops[it->second].operands[use.getOperandNumber()];
          const Model::Alternative *otherRead =
              best(ofUse, [&](const Layout &layout) { return layout != read; });
          if (otherRead && otherRead->total < total) {
            total = otherRead->total;
            words = "'" + valueName(use.getOwner()->getResult(0)) +
                    "' reads '" + valueName(value) + "' as " +
                    quoted(otherRead->layout, plan.mesh);
          }
        }
        Time regret = total >= kIllegal ? kIllegal : total - solver.optimum();
        Time large =
            model.isSequenceParallel() ? kSequencePenalty / 2 : kPenalty / 2;
        if (regret >= large) {
          words = total >= kIllegal ? pruned
                                          ? "none: no other way is ever cheaper"
                                          : "none: no other way is allowed"
                  : regret >= kPenalty / 2
                      ? "none: every other way moves a weight"
                      : "none: every other way keeps whole activations";
          regret = 0;
        }
        for (const Traffic *traffic : {&step.forward, &step.backward}) {
          if (collectiveName(traffic->transfer).empty())
            continue;
          plan.collectives[next].runnerUp = words;
          plan.collectives[next].regret = regret;
          ++next;
        }
      });
}

/// What costs `total` or, if that is no time, why it is out.
static std::pair<Time, std::string> verdict(Time total, const Model &model,
                                            const Solver &solver, bool pruned) {
  if (total >= kIllegal)
    return {0, pruned ? "never cheaper" : "fits nothing around it"};
  Time regret = total - solver.optimum();
  if (regret >= kPenalty / 2)
    return {0, "moves a weight, or leaves one whole"};
  if (model.isSequenceParallel() && regret >= kSequencePenalty / 2)
    return {0, "keeps whole activations"};
  return {regret, ""};
}

/// Every strategy of every op and storage, the chosen one first.
static void explainChoices(func::FuncOp function, const Model &model,
                           const Solver &solver,
                           const std::vector<std::vector<Time>> &marginals,
                           bool pruned, Plan &plan) {
  auto finish = [&](OpChoices choices, const PlannedOp &planned) {
    auto rank = [&](const OpChoices::Choice &choice) {
      bool chosen = choice.operands == planned.operands &&
                    choice.results == planned.results;
      return std::tuple(!chosen, !choice.why.empty(), choice.regret);
    };
    llvm::stable_sort(choices.all, [&](const auto &a, const auto &b) {
      return rank(a) < rank(b);
    });
    plan.choices.push_back(std::move(choices));
  };
  auto addStorage = [&](Value value, const PlannedOp &planned) {
    OpChoices choices{planned.name, planned.kind, {}};
    for (const Model::Alternative &other :
         model.alternatives(value, marginals)) {
      auto [regret, why] = verdict(other.total, model, solver, pruned);
      choices.all.push_back({{}, {other.layout}, regret, why});
    }
    finish(std::move(choices), planned);
  };
  for (auto [argument, planned] :
       llvm::zip_equal(function.getArguments(), plan.arguments))
    addStorage(argument, planned);
  for (auto [op, planned] : llvm::zip_equal(
           function.getBody().front().without_terminator(), plan.ops)) {
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (isFreeSource(&op, *rule))
      continue;
    if (isParameter(&op, *rule)) {
      addStorage(op.getResult(0), planned);
      continue;
    }
    OpChoices choices{planned.name, planned.kind, {}};
    for (auto [strategy, total] : model.strategies(&op, marginals)) {
      auto [regret, why] = verdict(total, model, solver, pruned);
      choices.all.push_back(
          {strategy->operands, strategy->results, regret, why});
    }
    finish(std::move(choices), planned);
  }
}

/// Why a value is whole on an axis.
static void explainWhole(func::FuncOp function, const Model &model,
                         const Solver &solver,
                         const std::vector<std::vector<Time>> &marginals,
                         const Realization &realization, bool pruned,
                         Plan &plan) {
  auto explainValue = [&](Value value, bool isParameter) {
    const Layout &have = realization[value].layout;
    if (cast<RankedTensorType>(value.getType()).getNumElements() <= 1)
      return;
    auto all = model.alternatives(value, marginals);
    for (const AxisGroup &group : groupsOf(plan.mesh)) {
      if (group.size == 1 || llvm::any_of(group.parts, [&](int part) {
            return have.states[part].kind == Kind::S ||
                   isPartial(have.states[part].kind);
          }))
        continue;
      const Model::Alternative *split = best(all, [&](const Layout &layout) {
        return llvm::any_of(group.parts, [&](int part) {
          return layout.states[part].kind == Kind::S;
        });
      });
      WholeValue entry{valueName(value), group.name, "", isParameter};
      Time regret = split ? split->total - solver.optimum() : 0;
      if (!split && pruned)
        entry.why = "splitting it is never cheaper";
      else if (!split)
        entry.why = group.isData ? "it has no batch dimension to split"
                                 : "no dimension may be split: they are batch, "
                                   "tokens, or used whole";
      else if (regret >= kPenalty / 2)
        entry.why = "splitting it would move a weight";
      else if (model.isSequenceParallel() && regret >= kSequencePenalty / 2)
        entry.why = "splitting it would keep whole activations";
      else
        entry.why = "splitting it (" + split->layout.text(plan.mesh) +
                    ") would cost " + micros(regret) + " more in all";
      plan.whole.push_back(std::move(entry));
    }
  };
  for (BlockArgument argument : function.getArguments())
    explainValue(argument, false);
  for (Operation &op : function.getBody().front().without_terminator()) {
    auto rule = cast<ShardingOpInterface>(op).getShardingRule();
    if (!isFreeSource(&op, *rule))
      for (Value result : op.getResults())
        explainValue(result, isParameter(&op, *rule));
  }
}

void explain(func::FuncOp function, const Model &model, const Solver &solver,
             bool pruned, Conversions &conversions, Plan &plan) {
  auto realization = Realization::of(function, plan, conversions);
  if (failed(realization))
    return;
  auto marginals = solver.minMarginals();
  explainCollectives(function, model, solver, marginals, *realization, pruned,
                     plan);
  explainWhole(function, model, solver, marginals, *realization, pruned, plan);
  explainChoices(function, model, solver, marginals, pruned, plan);
}

} // namespace mtp::plan
