// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ExplainText.cpp - an explanation as text and as JSON ---------------===//
#include "compiler/plan/Explain.h"
#include "compiler/plan/Pins.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using nlohmann::json;

namespace mtp::plan {

std::string microsText(Time time) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.1f us", double(time) / 1e6);
  return text;
}

//===----------------------------------------------------------------------===//
// What the plan is made of
//===----------------------------------------------------------------------===//

namespace {
/// One part of the plan's time or of a rank's memory.
struct Part {
  std::string kind, name; ///< "compute" | collective | "weight"; op or value
  int64_t amount = 0;     ///< picoseconds or bytes
};
} // namespace

/// Equal kind and name are one part; largest first, ties by name.
static std::vector<Part> largestFirst(std::vector<Part> parts) {
  std::map<std::pair<std::string, std::string>, int64_t> sums;
  for (const Part &part : parts)
    sums[{part.kind, part.name}] += part.amount;
  parts.clear();
  for (const auto &[key, amount] : sums)
    if (amount > 0)
      parts.push_back({key.first, key.second, amount});
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const Part &a, const Part &b) { return a.amount > b.amount; });
  return parts;
}

static std::vector<Part> timeParts(const Plan &plan) {
  std::vector<Part> parts;
  for (const PlannedOp &op : plan.ops)
    parts.push_back({"compute", op.name, op.time});
  for (const PredictedCollective &c : plan.collectives)
    parts.push_back({c.kind, c.value, c.time});
  return largestFirst(std::move(parts));
}

static std::vector<Part> weightParts(const Plan &plan) {
  std::vector<Part> parts;
  for (const PredictedWeight &weight : plan.weights)
    parts.push_back({"weight", weight.name, weight.bytesPerRank});
  return largestFirst(std::move(parts));
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
/// Lines "NAME REST". Those that differ in the numbers of their names only, as
/// those of equal layers do, are one: "h.0.add (and 11 alike) REST".
class Lines {
public:
  void add(const std::string &name, const std::string &rest) {
    add(name, rest, rest);
  }
  /// The same where `rest` has names in it, too: `exact` is what must be equal.
  void add(const std::string &name, const std::string &rest,
           const std::string &exact) {
    std::string key;
    for (char c : name + '\1' + rest)
      if (c < '0' || c > '9')
        key += c;
      else if (key.empty() || key.back() != '0')
        key += '0';
    auto [it, isNew] = known.insert({key + '\1' + exact, lines.size()});
    if (isNew)
      lines.push_back({name, rest, 0});
    else
      ++lines[it->second].alike;
  }
  void print(llvm::StringRef title, llvm::raw_ostream &os) const {
    if (!lines.empty())
      os << title << "\n";
    for (const Line &line : lines) {
      os << "  " << line.name;
      if (line.alike)
        os << " (and " << line.alike << " alike)";
      os << line.rest << "\n";
    }
  }

private:
  struct Line {
    std::string name, rest;
    int alike;
  };
  std::vector<Line> lines;
  std::map<std::string, size_t> known;
};
} // namespace

/// "12.3 us more", "at least 12.3 us more".
static std::string more(Time regret, bool isBound) {
  return (isBound ? "at least " : "") + microsText(regret) + " more";
}

/// Why all strategies but the chosen one are out.
static std::string whyNone(const OpChoices &op) {
  size_t others = op.all.size() - 1, large = 0;
  const OpChoices::Choice *smallest = nullptr, *other = nullptr;
  for (const OpChoices::Choice &choice : llvm::drop_begin(op.all)) {
    (choice.neededBytes ? smallest : other) = &choice;
    large += choice.neededBytes != 0;
  }
  for (const OpChoices::Choice &choice : llvm::drop_begin(op.all))
    if (choice.neededBytes && choice.neededBytes < smallest->neededBytes)
      smallest = &choice;
  if (!smallest || !other)
    return "each of " + std::to_string(others) +
           " others is out: " + (smallest ? smallest : other)->why;
  return std::to_string(large) + " of " + std::to_string(others) +
         " others are out: the smallest " + smallest->why +
         "; the rest: " + other->why;
}

/// For every op that has a choice: what it is and what would be next best.
static void printChoices(const Plan &plan, llvm::raw_ostream &os) {
  Lines lines;
  for (const OpChoices &op : plan.choices) {
    if (op.all.size() < 2)
      continue;
    const OpChoices::Choice &next = op.all[1];
    auto text = [&](const OpChoices::Choice &choice) {
      return strategyText(choice.operands, choice.results, plan.mesh);
    };
    lines.add(op.pinName,
              " (" + op.kind + "): " + text(op.all[0]) + "; " +
                  (next.why.empty() ? "runner-up: " + text(next) + ", " +
                                          more(next.regret, next.regretIsBound)
                                    : whyNone(op)));
  }
  lines.print("choices (all strategies: --explain-json)", os);
}

static void printCollectives(const Plan &plan, llvm::raw_ostream &os) {
  Lines lines;
  for (const PredictedCollective &c : plan.collectives) {
    std::string cost =
        std::to_string(c.bytes) + " bytes, " + microsText(c.time);
    std::string text = ": " + cost + "; " + c.reason;
    if (!c.runnerUp.empty())
      text += "; runner-up: " + c.runnerUp;
    if (!c.runnerUpPin.empty()) {
      text += ", " + more(c.regret, c.regretIsBound);
      cost += more(c.regret, c.regretIsBound);
    }
    lines.add(c.phase + " " + c.op + " on " + c.axis + " of '" + c.value +
                  "' for '" + c.node + "'",
              text, cost + c.axis);
  }
  lines.print("collectives", os);
}

/// The ten largest parts.
static void printParts(llvm::StringRef title, const std::vector<Part> &parts,
                       llvm::function_ref<std::string(int64_t)> amount,
                       llvm::raw_ostream &os) {
  if (parts.empty())
    return;
  int64_t total = 0;
  for (const Part &part : parts)
    total += part.amount;
  os << title << "\n";
  for (const Part &part : llvm::ArrayRef(parts).take_front(10))
    os << "  " << part.kind << " '" << part.name << "': " << amount(part.amount)
       << llvm::format(" (%.1f %%)",
                       100.0 * double(part.amount) / double(total))
       << "\n";
}

std::string explainText(const Plan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "plan for mesh " << meshText(plan.axes) << " (" << plan.origin << ")\n";
  os << "  predicted, forward and backward: " << microsText(plan.cost)
     << "; everything replicated: " << microsText(plan.allReplicated) << "\n";
  if (plan.limit)
    os << "  layouts are the cheapest within " << plan.limit
       << " bytes a rank by the planner's sum, of which they take "
       << plan.bytes
       << "; so are all that are compared with them, but whether their program "
          "fits is counted when it is made\n";
  for (const std::string &note : plan.notes)
    os << "  " << note << "\n";
  Lines stored, weights, values;
  for (const PredictedWeight &weight : plan.weights)
    stored.add(weight.name,
               ": " + weight.how +
                   (weight.layout.empty() ? "" : "  <" + weight.layout + ">"));
  stored.print("weights", os);
  printCollectives(plan, os);
  for (const WholeValue &whole : plan.whole)
    (whole.isParameter ? weights : values)
        .add(whole.value, " on " + whole.axis + ": " + whole.why);
  weights.print("weights that stayed whole", os);
  values.print("values that stayed whole", os);
  printChoices(plan, os);
  printParts("largest parts of the time", timeParts(plan), microsText, os);
  printParts(
      "largest weights of a rank", weightParts(plan),
      [](int64_t bytes) { return std::to_string(bytes) + " bytes"; }, os);
  return text;
}

//===----------------------------------------------------------------------===//
// JSON (docs/explain-json.md)
//===----------------------------------------------------------------------===//

static json layoutTexts(llvm::ArrayRef<Layout> layouts, const MeshShape &mesh) {
  json list = json::array();
  for (const Layout &layout : layouts)
    list.push_back(layout.text(mesh));
  return list;
}

static double us(Time time) { return double(time) / 1e6; }

static json choicesJson(const Plan &plan) {
  json list = json::array();
  for (const OpChoices &op : plan.choices) {
    json all = json::array();
    for (const OpChoices::Choice &choice : op.all)
      all.push_back(
          {{"operands", layoutTexts(choice.operands, plan.mesh)},
           {"results", layoutTexts(choice.results, plan.mesh)},
           {"pin",
            op.pinName + "=" +
                strategyText(choice.operands, choice.results, plan.mesh)},
           {"regret_us", choice.why.empty() ? json(us(choice.regret)) : json()},
           {"is_bound", choice.regretIsBound},
           {"needed_bytes",
            choice.neededBytes ? json(choice.neededBytes) : json()},
           {"why", choice.why}});
    list.push_back(
        {{"name", op.name}, {"op", op.kind}, {"strategies", std::move(all)}});
  }
  return list;
}

static json opsJson(const std::vector<PlannedOp> &ops, const MeshShape &mesh) {
  json list = json::array();
  for (const PlannedOp &op : ops)
    list.push_back({{"name", op.name},
                    {"op", op.kind},
                    {"operands", layoutTexts(op.operands, mesh)},
                    {"results", layoutTexts(op.results, mesh)},
                    {"time_us", us(op.time)}});
  return list;
}

static json partsJson(const std::vector<Part> &parts, bool isTime) {
  json list = json::array();
  for (const Part &part : parts)
    list.push_back({{"kind", part.kind},
                    {"name", part.name},
                    {isTime ? "us" : "bytes",
                     isTime ? json(us(part.amount)) : json(part.amount)}});
  return list;
}

json explainJson(const Plan &plan) {
  json result = {{"format", "mtp-explain"},
                 {"version", 1},
                 {"mesh", meshText(plan.axes)},
                 {"cost_us", us(plan.cost)},
                 {"lower_bound_us", us(plan.lowerBound)},
                 {"all_replicated_us", us(plan.allReplicated)},
                 {"megatron_us", us(plan.megatron)},
                 {"solve_ms", plan.solveMs},
                 {"notes", plan.notes},
                 {"inputs", opsJson(plan.arguments, plan.mesh)},
                 {"ops", opsJson(plan.ops, plan.mesh)},
                 {"choices", choicesJson(plan)},
                 {"contributions",
                  {{"time", partsJson(timeParts(plan), true)},
                   {"memory", partsJson(weightParts(plan), false)}}},
                 {"weights", json::array()},
                 {"collectives", json::array()},
                 {"whole", json::array()}};
  if (plan.limit)
    result["layout_limit"] = {{"bytes", plan.limit}, {"used", plan.bytes}};
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
                                     {"from", c.from},
                                     {"to", c.to},
                                     {"conjugate", c.conjugate},
                                     {"reason", c.reason},
                                     {"bytes", c.bytes},
                                     {"wire_bytes", c.wireBytes},
                                     {"time_us", us(c.time)},
                                     {"runner_up", c.runnerUp},
                                     {"runner_up_pin", c.runnerUpPin},
                                     {"regret_us", us(c.regret)},
                                     {"is_bound", c.regretIsBound}});
  for (const WholeValue &whole : plan.whole)
    result["whole"].push_back({{"value", whole.value},
                               {"axis", whole.axis},
                               {"why", whole.why},
                               {"parameter", whole.isParameter}});
  return result;
}

} // namespace mtp::plan
