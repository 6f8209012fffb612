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
}

//===----------------------------------------------------------------------===//
// Text and JSON
//===----------------------------------------------------------------------===//

static std::string meshText(const Plan &plan) {
  std::string text;
  for (const auto &[name, size] : plan.axes)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  return text;
}

std::string explainText(const Plan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "plan for mesh " << meshText(plan) << " (" << plan.origin << ")\n";
  os << "  predicted, forward and backward: " << micros(plan.cost)
     << "; everything replicated: " << micros(plan.allReplicated) << "\n";
  for (const std::string &note : plan.notes)
    os << "  " << note << "\n";
  os << "weights\n";
  for (const PredictedWeight &weight : plan.weights)
    os << "  " << weight.name << ": " << weight.how
       << (weight.layout.empty() ? "" : "  <" + weight.layout + ">") << "\n";
  os << "collectives\n";
  for (const PredictedCollective &c : plan.collectives) {
    os << "  " << c.phase << " " << c.op << " on " << c.axis << " of '"
       << c.value << "' for '" << c.node << "': " << c.bytes << " bytes, "
       << micros(c.time) << "; " << c.reason;
    if (!c.runnerUp.empty())
      os << "; runner-up: " << c.runnerUp << ", " << micros(c.regret)
         << " more";
    os << "\n";
  }
  bool first = true;
  for (const WholeValue &whole : plan.whole) {
    if (!whole.isParameter)
      continue;
    os << (first ? "weights that stayed whole\n" : "") << "  " << whole.value
       << " on " << whole.axis << ": " << whole.why << "\n";
    first = false;
  }
  return text;
}

nlohmann::json explainJson(const Plan &plan) {
  using nlohmann::json;
  auto us = [](Time time) { return double(time) / 1e6; };
  json result = {{"mesh", meshText(plan)},
                 {"cost_us", us(plan.cost)},
                 {"lower_bound_us", us(plan.lowerBound)},
                 {"all_replicated_us", us(plan.allReplicated)},
                 {"megatron_us", us(plan.megatron)},
                 {"solve_ms", plan.solveMs},
                 {"notes", plan.notes},
                 {"weights", json::array()},
                 {"collectives", json::array()},
                 {"whole", json::array()}};
  for (const PredictedWeight &weight : plan.weights)
    result["weights"].push_back(
        {{"name", weight.name},
         {"layout", weight.layout},
         {"how", weight.how},
         {"shape",
          std::vector<int64_t>(weight.shape.begin(), weight.shape.end())},
         {"bytes", weight.bytes},
         {"bytes_per_rank", weight.bytesPerRank}});
  for (const PredictedCollective &c : plan.collectives)
    result["collectives"].push_back({{"op", c.op},
                                     {"kind", c.kind},
                                     {"axis", c.axis},
                                     {"phase", c.phase},
                                     {"value", c.value},
                                     {"node", c.node},
                                     {"dtype", c.dtype},
                                     {"reason", c.reason},
                                     {"bytes", c.bytes},
                                     {"wire_bytes", c.wireBytes},
                                     {"time_us", us(c.time)},
                                     {"runner_up", c.runnerUp},
                                     {"regret_us", us(c.regret)}});
  for (const WholeValue &whole : plan.whole)
    result["whole"].push_back({{"value", whole.value},
                               {"axis", whole.axis},
                               {"why", whole.why},
                               {"parameter", whole.isParameter}});
  return result;
}

} // namespace mtp::plan
