// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/PlanReport.h"

#include "compiler/cost/Target.h"
#include "compiler/driver/Budget.h"
#include "compiler/training/OpMaker.h"
#include "runtime/artifact/Footprint.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace mtp;
using nlohmann::json;

static double inMicroseconds(plan::Time time) { return double(time) / 1e6; }

void mtp::reportPlan(const plan::Plan &plan, bool explain,
                     CompileResult &result) {
  for (const plan::PredictedWeight &weight : plan.weights)
    result.weights.push_back(
        {weight.name, weight.layout, weight.how,
         std::vector<int64_t>(weight.shape.begin(), weight.shape.end()),
         weight.bytes, weight.bytesPerRank});
  auto known = [](plan::Time time) {
    return time < plan::kIllegal ? json(inMicroseconds(time)) : json(nullptr);
  };
  result.artifact.plan = {{"cost_us", known(plan.cost)},
                          {"lower_bound_us", known(plan.lowerBound)},
                          {"all_replicated_us", known(plan.allReplicated)},
                          {"megatron_us", known(plan.megatron)},
                          {"solve_ms", plan.solveMs},
                          {"costs", plan::targetText()}};
  if (!plan.method.empty())
    result.artifact.plan["certificate"] = {
        {"method", plan.method},
        {"bound_us", known(plan.lowerBound)},
        {"cost_us", known(plan.cost)},
        {"gap_us", known(plan.cost - plan.lowerBound)},
        {"proven", plan.lowerBound == plan.cost}};
  if (plan.limit) {
    result.artifact.plan["certificate"]["within_bytes"] = plan.limit;
    result.artifact.plan["certificate"]["sum_bytes"] = plan.bytes;
  }
  result.explainJson = plan::explainJson(plan);
  if (explain)
    result.explain = plan::explainText(plan);
}

/// What a memory budget costs: against the fastest program that was tried and
/// does not fit, if it is faster than the one that was chosen. A forward
/// program would have the layouts of the objective, which are tried first.
static json constraintOf(const json &budget, bool isForward) {
  int64_t bytes = budget.at("bytes");
  auto time = [](const json &trial) {
    return trial.value("time_us", json()).is_number()
               ? trial["time_us"].get<double>()
               : HUGE_VAL;
  };
  const json *without = nullptr;
  double chosen = HUGE_VAL;
  for (const json &trial : budget.at("tried")) {
    if (!trial.contains("bytes"))
      continue;
    if (trial["bytes"] <= bytes)
      chosen = std::min(chosen, time(trial));
    else if (!without || (!isForward && time(trial) < time(*without)))
      without = &trial;
  }
  bool binds = without && (isForward || time(*without) < chosen);
  json constraint = {{"kind", "memory budget"},
                     {"bytes", bytes},
                     {"used", budget.at("used")},
                     {"binds", binds}};
  std::string text = "memory budget of " + std::to_string(bytes) + " bytes: ";
  if (!binds) {
    constraint["text"] = text + "it does not bind, the fastest program fits";
    return constraint;
  }
  const double longer = std::max(chosen - time(*without), 0.0);
  constraint["cost_us"] = longer;
  constraint["without"] = *without;
  std::string cost;
  llvm::raw_string_ostream(cost) << llvm::format("%.1f us", longer);
  constraint["text"] =
      text + "it binds, a step takes " + cost + " longer; without it '" +
      (*without)["layouts"].get<std::string>() + "' would be chosen, with " +
      (*without)["bytes"].dump() + " bytes";
  return constraint;
}

/// What the certificate does not say of the budget; "" if it says all.
static std::string bytesNote(const json &plan) {
  const json proof = plan.value("certificate", json::object());
  if (!proof.contains("within_bytes"))
    return "";
  const json &budget = plan.at("budget");
  const int64_t within = proof.at("within_bytes"), sum = proof.at("sum_bytes");
  std::string text;
  if (within < budget.at("bytes"))
    text = "the layouts are proven the cheapest of those whose sum of bytes is "
           "within " +
           std::to_string(within) + ", which is less than the budget";
  if (budget.at("chosen").at("recompute") == "none" && sum < budget.at("used"))
    text += (text.empty() ? "the" : "; the") +
            std::string(" planner's sum of ") + std::to_string(sum) +
            " bytes is less than what the program needs";
  return text;
}

/// The largest tensors that a rank holds at its peak.
static void addLargestTensors(ModuleOp module, CompileResult &result) {
  constexpr size_t most = 1000, shown = 10;
  json list = json::array();
  std::string text = "largest tensors of a rank at its peak\n";
  for (const ResidentTensor &tensor :
       largestTensors(module, result.artifact, most)) {
    std::string what = tensor.what;
    if (tensor.count > 1)
      what = std::to_string(tensor.count) + " x " + what;
    if (list.size() < shown)
      text += "  " + what + " '" + tensor.name +
              "': " + std::to_string(tensor.bytes) + " bytes\n";
    list.push_back({{"kind", tensor.what},
                    {"name", tensor.name},
                    {"count", tensor.count},
                    {"bytes", tensor.bytes}});
  }
  result.explainJson["contributions"]["memory"] = std::move(list);
  result.explain += text;
}

void mtp::reportProgram(ModuleOp module, const CompileRequest &request,
                        CompileResult &result) {
  if (request.explain)
    addLargestTensors(module, result);
  json &plan = result.artifact.plan;
  if (plan.is_object() && plan.contains("budget")) {
    if (std::string note = bytesNote(plan); !note.empty()) {
      plan["certificate"]["note"] = note;
      result.explainJson["notes"].push_back(note);
      if (!result.explain.empty())
        result.explain += "note: " + note + "\n";
    }
    result.explainJson["constraint"] =
        constraintOf(plan["budget"], /*isForward=*/!request.train.has_value());
    if (!result.explain.empty())
      result.explain +=
          "binding constraint\n  " +
          result.explainJson["constraint"]["text"].get<std::string>() + "\n";
  }
  Footprint bytes = footprintOf(result.artifact);
  result.explainJson["model"] = result.artifact.model;
  result.explainJson["memory"] = {{"parameters", bytes.parameters},
                                  {"gradients", bytes.gradients},
                                  {"optimizer", bytes.optimizer},
                                  {"activations", bytes.activations},
                                  {"workspace", bytes.workspace},
                                  {"arena", bytes.arena},
                                  {"total", bytes.total}};
}

json mtp::reportParameters(ModuleOp module) {
  std::map<std::string, std::string> layouts;
  module.walk([&](ParameterOp parameter) {
    auto type = cast<RankedTensorType>(parameter.getType());
    auto mesh = layoutOf(type) ? lookupMesh(parameter, layoutOf(type).getMesh())
                               : MeshOp();
    if (!mesh)
      return;
    MeshShape shape = mesh.getShape();
    if (FailureOr<Layout> layout = toLayout(parameter, type, shape);
        succeeded(layout))
      layouts.try_emplace(parameter.getSource().str(), layout->text(shape));
  });
  json list = json::array();
  for (InitializerOp initializer : module.getOps<InitializerOp>()) {
    auto type = cast<RankedTensorType>(initializer.getType());
    std::string name = initializer.getSymName().str();
    auto reason =
        initializer->getAttrOfType<StringAttr>(training::names::reason);
    auto tiedTo =
        initializer->getAttrOfType<StringAttr>(training::names::tiedTo);
    auto layout = layouts.find(tiedTo ? tiedTo.str() : name);
    list.push_back({{"name", name},
                    {"shape", std::vector<int64_t>(type.getShape())},
                    {"trainable", initializer.getTrainable()},
                    {"reason", reason ? reason.str() : ""},
                    {"tied_to", tiedTo ? json(tiedTo.str()) : json(nullptr)},
                    {"layout", layout == layouts.end() ? "" : layout->second}});
  }
  // What was folded or is never used.
  auto others = module->getAttrOfType<DictionaryAttr>("mtp.other_initializers");
  for (NamedAttribute other :
       others ? others : DictionaryAttr::get(module.getContext())) {
    auto type =
        cast<RankedTensorType>(cast<TypeAttr>(other.getValue()).getValue());
    bool isFloat = isa<FloatType>(type.getElementType());
    list.push_back({{"name", other.getName().str()},
                    {"shape", std::vector<int64_t>(type.getShape())},
                    {"trainable", false},
                    {"reason", !isFloat              ? "is not a float"
                               : type.getRank() == 0 ? "is a scalar"
                                                     : "nothing reads it"},
                    {"tied_to", nullptr},
                    {"layout", ""}});
  }
  return list;
}
